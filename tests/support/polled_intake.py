"""The kernel's reads in front of a server whose requests all take the slow path."""

import asyncio
from typing import cast

from core_broker.fastpath.compiled import CompiledProtocol
from core_broker.fastpath.polled_reads import PolledReads
from core_broker.fastpath.writer_thread import WriterThread
from core_broker.kernel.connection_state import ConnectionState
from core_broker.kernel.fast_path import FastPath
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import READ_BUFFER_BYTES, Endpoint
from core_broker.remoting.iteration import IterationEnd


class PolledIntake:
    """A compiled fast path without handlers."""

    def __init__(self) -> None:
        kernel = FastPath(memoryview(bytearray(READ_BUFFER_BYTES)), {})
        self.polled_reads = PolledReads(kernel)
        self.writer_thread = WriterThread(kernel.writes)
        self._kernel = kernel

    def accept(self, endpoint: Endpoint) -> asyncio.BaseProtocol:
        """Make a connection that the kernel reads."""
        connection = Connection(endpoint, cast("ConnectionState", ConnectionState()))
        return CompiledProtocol(self._kernel, connection, self.writer_thread, self.polled_reads)

    def end(self, end: IterationEnd) -> IterationEnd:
        """The end of the server's iterations: the kernel writes."""
        writes = self._kernel.writes
        return end._replace(always=(*end.always, writes.end_iteration), write=writes.flush)

    def stop(self) -> None:
        """The last connection is gone."""
        self.writer_thread.stop()
        self.polled_reads.stop()
