"""The compiled fast path of a server: handlers by request code, and connections.

The module imports from core_broker/kernel, and so needs the compiled kernel.
"""

import asyncio
from collections.abc import Callable
from typing import cast

from core_broker.fastpath.heartbeats import FastHeartbeats
from core_broker.fastpath.lent_transport import LentTransport
from core_broker.fastpath.polled_reads import PolledReads
from core_broker.fastpath.pulls import FastPulls
from core_broker.fastpath.sends import FastSends
from core_broker.fastpath.writer_thread import WriterThread
from core_broker.kernel.connection_state import ConnectionState
from core_broker.kernel.fast_path import FastPath
from core_broker.kernel.fast_protocol import FastProtocol
from core_broker.kernel.guard import Guard
from core_broker.processors.context import BrokerContext
from core_broker.processors.table import RequestTable
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import READ_BUFFER_BYTES, Endpoint
from core_broker.remoting.iteration import AnswerWriter


class CompiledFastPath:
    """The kernel's request handlers with shells, its poller, and a writer thread for long answers.

    The FrontStage of a server (remoting/intake.py), and two steps of the end of an iteration.
    """

    def __init__(self, ctx: BrokerContext, requests: RequestTable) -> None:
        self.sends = FastSends(ctx, requests.turn)
        self.pulls = FastPulls(ctx, requests.pulls, requests.flow)
        self.heartbeats = FastHeartbeats(ctx, requests.clients)
        self._ctx = ctx
        admissions = None if ctx.gate is None else ctx.gate.admissions
        self._kernel = FastPath(
            memoryview(bytearray(READ_BUFFER_BYTES)),
            {
                Code.SEND_MESSAGE_V2.value: self.sends.taker,
                Code.SEND_BATCH_MESSAGE.value: self.sends.taker,
                Code.PULL_MESSAGE.value: self.pulls.taker,
                Code.LITE_PULL_MESSAGE.value: self.pulls.taker,
                Code.UPDATE_CONSUMER_OFFSET.value: self.pulls.commits,
                Code.HEART_BEAT.value: self.heartbeats.taker,
            },
            None if admissions is None else Guard(admissions),
        )
        self.writer_thread = WriterThread(self._kernel.writes)
        self.polled_reads = PolledReads(self._kernel)
        #: Lets the next read begin an iteration: takers call `begin` of the shells again.
        self.end_iteration: Callable[[], None] = self._kernel.writes.end_iteration
        #: Writes to the connections with answers, partly by the writer thread.
        self.write: Callable[[list[AnswerWriter]], None] = self._kernel.writes.flush

    def accept(self, endpoint: Endpoint) -> asyncio.BaseProtocol | None:
        """Make a connection with a compiled protocol; None while kernelEnable is false."""
        if not self._ctx.config.kernel_enable:
            return None
        connection = Connection(endpoint, cast("ConnectionState", ConnectionState()))
        reads = self.polled_reads if self._ctx.config.kernel_poll_enable else None
        return CompiledProtocol(self._kernel, connection, self.writer_thread, reads)

    def stop(self) -> None:
        """End the writer thread and the poller; the last connection is gone."""
        self.writer_thread.stop()
        self.polled_reads.stop()

    @property
    def pulls_missed(self) -> int:
        """Pulls taken that found no message: answered without messages, or held."""
        return self.pulls.taker.missed


class CompiledProtocol(FastProtocol, asyncio.BufferedProtocol):  # type: ignore[misc]
    """The asyncio protocol of a connection: the kernel handles reads, the connection other events.

    asyncio recognises protocols with their own read buffer by the base class BufferedProtocol.
    """

    connection: Connection

    def __init__(
        self,
        kernel: FastPath,
        connection: Connection,
        writer_thread: WriterThread,
        polled_reads: PolledReads | None,
    ) -> None:
        super().__init__(kernel, connection, connection.iteration)
        self._writer_thread = writer_thread
        #: None where the event loop reads.
        self._polled_reads: PolledReads | None = None
        self._offered_reads = polled_reads

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open; without TLS the kernel may use the socket."""
        stream, descriptor = cast("asyncio.Transport", transport), -1
        sock = transport.get_extra_info("socket")
        if sock is not None and transport.get_extra_info("sslcontext") is None:
            self._writer_thread.start()
            descriptor = sock.fileno()
            stream = LentTransport(stream, self)
            # Event loops begin to read after the call.
            asyncio.get_running_loop().call_soon(
                self._take_over, cast("asyncio.Transport", transport)
            )
        self.connection.writer = self
        self.connection.connection_made(stream)
        self.opened(transport, descriptor)

    def _take_over(self, transport: asyncio.Transport) -> None:
        """Let the kernel read in place of the event loop, at once or after a stall."""
        self._polled_reads = self._offered_reads
        if not (self.state.is_closing or self.state.is_stalled) and self.resume_reading():
            transport.pause_reading()

    def pause_reading(self) -> bool:
        """Stop the kernel's reads; False when the kernel does not read."""
        return self._polled_reads is not None and self._polled_reads.end(self)

    def resume_reading(self) -> bool:
        """Let the kernel read; False when the event loop must."""
        reads = self._polled_reads
        return reads is not None and reads.begin(self, self.connection.iteration)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is lost; asyncio closes the socket after the call."""
        self.pause_reading()
        self.settle()
        self.connection.connection_lost(exc)
        self.connection.writer = None

    def pause_writing(self) -> None:
        """The peer reads too slowly."""
        self.connection.pause_writing()

    def resume_writing(self) -> None:
        """The peer has caught up."""
        self.connection.resume_writing()

    def eof_received(self) -> bool:
        """The peer sends no more."""
        return self.connection.eof_received()
