"""The hot path of a broker's server: which requests the kernel takes, and its connections.

kernel/fast_path.py   finds for each frame of a read the kind of request that takes it
hot_sends.py         sends: what the broker decides once a turn, and where the result goes
hot_pulls.py         pulls and commits of offsets
hot_beats.py         heartbeats that say nothing new
writer_thread.py     the thread that sends the answers of busy turns
express_sends.py     usual sends that no kernel takes, in plain Python; express_line.py, their
                     connections
"""

import asyncio
from typing import cast

from core_broker.fastpath.heartbeats import FastHeartbeats
from core_broker.fastpath.pulls import FastPulls
from core_broker.fastpath.python_intake import PythonConnection
from core_broker.fastpath.python_sends import PythonSends
from core_broker.fastpath.sends import FastSends
from core_broker.fastpath.writer_thread import WriterThread
from core_broker.processors.context import BrokerContext
from core_broker.processors.table import RequestTable
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Endpoint
from core_broker.remoting.server import RemotingServer

try:
    from core_broker.kernel.fast_path import FastLine
    from core_broker.kernel.fast_path import FastPath as Kernel
except ImportError:
    FastLine = Kernel = None


class CompiledFastPath:
    """What takes the usual requests of one server, with and without the kernel."""

    def __init__(
        self,
        ctx: BrokerContext,
        requests: RequestTable,
        server: RemotingServer,
        *,
        is_compiled: bool = Kernel is not None,
    ) -> None:
        self.sends: FastSends | None = None
        self.pulls: FastPulls | None = None
        self.beats: FastHeartbeats | None = None
        self.writing: WriterThread | None = None
        self._ctx = ctx
        self.express = FastSends(ctx, requests.turn, is_compiled=False)
        server.connection_class = self._connection
        server.on_turn_end = self._end_turn
        if not is_compiled:
            return
        self.sends = FastSends(ctx, requests.turn, is_compiled=True)
        self.pulls = FastPulls(ctx, requests.pulls, requests.flow)
        self.beats = FastHeartbeats(ctx, requests.clients)
        kinds = {
            Code.SEND_MESSAGE_V2: self.sends.kernel,
            Code.SEND_BATCH_MESSAGE: self.sends.kernel,
            Code.PULL_MESSAGE: self.pulls.kernel,
            Code.LITE_PULL_MESSAGE: self.pulls.kernel,
            Code.UPDATE_CONSUMER_OFFSET: self.pulls.commits,
            Code.HEART_BEAT: self.beats.kernel,
        }
        self._kernel = Kernel(server, {int(code): kind for code, kind in kinds.items()})
        self.writing = WriterThread(self._kernel)
        server.flush = self._kernel.flush
        server.on_closed = self.writing.stop

    def _end_turn(self) -> None:
        self.express.kernel.look_again()
        if self.sends is not None:
            self._kernel.end_turn()

    @property
    def messages_sent(self) -> int:
        """Messages that the kernel took."""
        return self.sends.messages if self.sends is not None else 0

    @property
    def messages_pulled(self) -> int:
        """Messages that the kernel handed out."""
        return int(self.pulls.kernel.messages) if self.pulls is not None else 0

    @property
    def polls_taken(self) -> int:
        """Pulls that went this way and found nothing: answered so, or held."""
        return int(self.pulls.kernel.missed) if self.pulls is not None else 0

    @property
    def beats_taken(self) -> int:
        """Heartbeats that went this way."""
        return int(self.beats.kernel.beats) if self.beats is not None else 0

    def _connection(self, endpoint: Endpoint) -> Connection:
        if self.sends is None or not self._ctx.config.kernel_enable:
            return PythonConnection(endpoint, self.express.kernel)
        assert self.writing is not None
        connection = HotConnection(endpoint, self.express.kernel, self.writing)
        connection.use(self._kernel)
        return cast("Connection", connection)


if FastLine is not None:

    class HotConnection(FastLine, PythonConnection):  # type: ignore[misc]
        """A connection whose reads go the hot way first."""

        def __init__(self, endpoint: Endpoint, sends: PythonSends, writing: WriterThread) -> None:
            super().__init__(endpoint, sends)
            self._writing = writing

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            """The connection is open; without TLS a writer may send to the socket itself."""
            super().connection_made(transport)
            sock = transport.get_extra_info("socket")
            if sock is not None and transport.get_extra_info("sslcontext") is None:
                self._writing.start()
                self.send_through(sock.fileno())

        def connection_lost(self, exc: Exception | None) -> None:
            """The connection is gone; its socket is closed when this returns."""
            self.settle()
            super().connection_lost(exc)

        def hold(self, request: RemotingCommand) -> None:
            """Count a request that the kernel took among those to be answered later."""
            request.held = True
            self._held += 1

        # What the kernel leaves to the plain path.

        def _look_at_backlog(self, nbytes: int) -> None:
            self.arrived = self._age.since(self._transport, nbytes, self.arrived)
            self._has_backlog = self._age.pending > 0

        def _take_plain(self, data: memoryview) -> None:
            self._take(data)
            self._cut = self._splitter.release()
            self._is_collecting = self._splitter.pending_bytes > 0

        def _flush_plain(self) -> None:
            Connection.flush(self)

        def _end_write(self) -> None:
            if self._reads_too_slowly():
                self._cut_off()
