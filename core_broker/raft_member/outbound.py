"""The connection to one other member: a bounded queue, and a task that connects again and again.

Raft repeats what gets lost, so a full queue loses its oldest messages instead of growing, and a
slow member delays nobody. Each attempt waits longer than the one before, up to a second.
"""

import asyncio
import logging
import random
import socket
import ssl
from collections import Counter, deque

from core_broker.errors import GantryError, ProtocolError
from core_broker.raft_member.frames import Hello, encode_hello, read_hello
from core_broker.raft_member.settings import MemberAddress
from core_broker.remoting.tls_client import ClientTls, handshake_failure

#: Messages that wait for one member.
QUEUE_MESSAGES_MAX = 2_048
#: The same in bytes; above `IN_FLIGHT_BYTES_MAX` of the core.
QUEUE_BYTES_MAX = 32 * 1024 * 1024
#: Bytes handed to the socket at once.
BATCH_BYTES_MAX = 1024 * 1024
#: Maximum duration of a connection attempt, and of the exchange of hellos, seconds.
CONNECT_TIMEOUT_S = 3.0
#: Time without acknowledgement of sent bytes after which the connection counts as lost, seconds.
STALL_TIMEOUT_S = 5.0
#: Pause before the first and longest pause before a later attempt to connect, seconds.
RECONNECT_MIN_S = 0.05
RECONNECT_MAX_S = 1.0

log = logging.getLogger(__name__)


class PeerLink:
    """Sends frames to one member. Event loop only."""

    def __init__(self, own: Hello, address: MemberAddress, tls: ClientTls | None = None) -> None:
        self.address = address
        self.is_connected = False
        #: connected, failed: attempts and losses; sent, dropped: frames.
        self.counters: Counter[str] = Counter()
        self._own = own
        self._tls = tls
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._wake = asyncio.Event()
        self._last_failure = ""
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def queued(self) -> int:
        """Frames that wait."""
        return len(self._queue)

    def send(self, frame: bytes) -> None:
        """Queue a frame; without a connection it is lost, like the oldest frames above the limits.

        A member that returns thus gets no old messages, and a dead one costs no memory.
        """
        if not self.is_connected:
            self.counters["dropped"] += 1
            return
        self._queue.append(frame)
        self._queued_bytes += len(frame)
        while len(self._queue) > QUEUE_MESSAGES_MAX or self._queued_bytes > QUEUE_BYTES_MAX:
            self._take()
            self.counters["dropped"] += 1
        self._wake.set()

    async def close(self) -> None:
        """Disconnect; queued frames are lost."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _forget(self) -> None:
        self._queue.clear()
        self._queued_bytes = 0

    def _take(self) -> bytes:
        frame = self._queue.popleft()
        self._queued_bytes -= len(frame)
        return frame

    async def _run(self) -> None:
        pause_s = RECONNECT_MIN_S
        while True:
            connections = self.counters["connected"]
            try:
                await self._session()
            except (OSError, EOFError, UnicodeError, GantryError) as error:
                self._failed(error)
            if self.counters["connected"] > connections:
                pause_s = RECONNECT_MIN_S
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, RECONNECT_MAX_S)

    async def _session(self) -> None:
        """Connect, exchange hellos, and send until the connection ends; raises in any case."""
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            reader, writer = await self._connect()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                writer.write(encode_hello(self._own))
                (await read_hello(reader)).check(self._own)
            self._connected()
            await self._pump(reader, writer)
        finally:
            self.is_connected = False
            self._forget()
            writer.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(
            self.address.host, self.address.port, type=socket.SOCK_STREAM
        )
        family, kind, protocol, _, address = found[0]
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # After a partition the system would try for minutes to deliver old bytes.
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                stall_ms = int(STALL_TIMEOUT_S * 1000)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, stall_ms)
            await loop.sock_connect(sock, address)
            if self._tls is None:
                return await asyncio.open_connection(sock=sock)
            return await asyncio.open_connection(
                sock=sock, ssl=self._tls.context(), server_hostname=self.address.host
            )
        except BaseException:
            sock.close()
            raise

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        end = asyncio.get_running_loop().create_task(reader.read(1))
        end.add_done_callback(lambda _: self._wake.set())
        try:
            while not end.done():
                if not self._queue:
                    self._wake.clear()
                    await self._wake.wait()
                    continue
                size = 0
                while self._queue and size < BATCH_BYTES_MAX:
                    frame = self._take()
                    size += len(frame)
                    writer.write(frame)
                    self.counters["sent"] += 1
                async with asyncio.timeout(STALL_TIMEOUT_S):
                    await writer.drain()
            if end.result():
                raise ProtocolError("the peer sent bytes behind its hello")
            raise ConnectionResetError("the peer closed the connection")
        finally:
            end.cancel()
            await asyncio.gather(end, return_exceptions=True)

    def _connected(self) -> None:
        self.is_connected = True
        self._last_failure = ""
        self.counters["connected"] += 1
        log.info("member %d: connected to member %d", self._own.source, self._own.target)

    def _failed(self, error: Exception) -> None:
        """Count a failure, and log it unless it repeats the last one."""
        self.counters["failed"] += 1
        failure = str(error) or type(error).__name__
        if isinstance(error, ssl.SSLError):
            failure = handshake_failure(error)
        if failure != self._last_failure:
            self._last_failure = failure
            place = (self._own.source, self._own.target, self.address.host, self.address.port)
            log.warning("member %d: no connection to member %d at %s:%d: %s", *place, failure)
