"""The port of a member: connections from other members, one of each.

A peer must be allowed by its address, and must begin with a hello of a known member of the same
cluster. Any other byte closes the connection; the log has the first closings of each minute.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

from core_broker.errors import GantryError, ProtocolError
from core_broker.raft.messages import AnyMessage
from core_broker.raft_member.admission import Admission
from core_broker.raft_member.frames import (
    FRAME_BYTES_MAX,
    Hello,
    decode_payload,
    encode_hello,
    read_frame,
    read_hello,
)
from core_broker.remoting.addresses import host_port
from core_broker.remoting.endpoint import Counters, Limits
from core_broker.remoting.frame_faults import FrameFaultLog
from core_broker.remoting.ports import Ports
from core_broker.remoting.tls_listener import Admission as EarlyAdmission
from core_broker.remoting.tls_server import ServerTls

#: Connections without a valid hello; a further one takes the place of the oldest.
UNPROVEN_MAX = 32
#: Maximum wait for a hello, seconds.
HELLO_TIMEOUT_S = 3.0

log = logging.getLogger(__name__)


class Inbound:
    """Accepts members and hands their messages on. Event loop only."""

    def __init__(
        self,
        own_hello: Callable[[int], Hello | None],
        admission: Admission,
        deliver: Callable[[list[AnyMessage]], None],
        tls: ServerTls | None = None,
    ) -> None:
        """`own_hello` returns the hello for a member, None for an unknown one."""
        #: accepted connections; closings by refused (address), fault, lost and displaced; received
        #: frames.
        self.counters: Counter[str] = Counter()
        self._own_hello = own_hello
        self._admission = admission
        self._deliver = deliver
        self._faults = FrameFaultLog("raft", faults="of faults of peers")
        self._ports = Ports(
            self._protocol,
            tls,
            Limits(idle_close_s=HELLO_TIMEOUT_S, handshakes_max=UNPROVEN_MAX),
            Counters(),
            EarlyAdmission(lambda: UNPROVEN_MAX, displaces_silent=True),
        )
        self._is_open = False
        self._unproven: dict[asyncio.StreamWriter, None] = {}
        self._members: dict[int, asyncio.StreamWriter] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port. Raises OSError."""
        self._is_open = True
        return await self._ports.listen(host, port)

    def _protocol(self) -> asyncio.StreamReaderProtocol:
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(), self._accept)

    async def close(self) -> None:
        """Stop listening and close all connections."""
        self._is_open = False
        self._ports.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._is_open:
            writer.transport.abort()
            return
        if len(self._unproven) >= UNPROVEN_MAX:
            # Connections without a hello must not lock out members.
            self._displace(next(iter(self._unproven)))
        self._unproven[writer] = None
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _displace(self, writer: asyncio.StreamWriter) -> None:
        self._unproven.pop(writer, None)
        self.counters["displaced"] += 1
        writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = host_port(writer.get_extra_info("peername"))
        source: int | None = None
        try:
            source = await self._prove(host, reader, writer)
            await self._receive(source, reader)
        except GantryError as fault:
            self.counters["fault"] += 1
            self._faults.write(f"{host}:{port}", fault)
        except (OSError, EOFError):
            self.counters["lost"] += 1
        finally:
            self._unproven.pop(writer, None)
            if source is not None and self._members.get(source) is writer:
                del self._members[source]
            writer.transport.abort()

    async def _prove(
        self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> int:
        """Exchange hellos; return the member. Raises ProtocolError, TimeoutError, EOFError."""
        async with asyncio.timeout(HELLO_TIMEOUT_S):
            if not await self._admission.is_allowed(host):
                self.counters["refused"] += 1
                raise ProtocolError("the address is not one of a member and not in the allow list")
            hello = await read_hello(reader)
            own = self._own_hello(hello.source)
            if own is None:
                raise ProtocolError(f"the peer is member {hello.source}, which has no address here")
            writer.write(encode_hello(own))  # also to a wrong peer: its log names both
            await writer.drain()
            hello.check(own)
        self._unproven.pop(writer, None)
        before = self._members.get(hello.source)
        if before is not None:
            self._displace(before)
        self._members[hello.source] = writer
        self.counters["accepted"] += 1
        return hello.source

    async def _receive(self, source: int, reader: asyncio.StreamReader) -> None:
        own = self._own_hello(source)
        assert own is not None
        while True:
            payload = await read_frame(reader, FRAME_BYTES_MAX)
            self.counters["received"] += 1
            self._deliver(decode_payload(payload, source, own.source))
            await asyncio.sleep(0)  # a peer with much to say does not hold the loop
