"""The thread of the kernel's Writer, for sending the answers of busy iterations."""

import os
import threading

from core_broker.kernel.fast_connection import FastWrites
from core_broker.kernel.writer import Writer


class WriterThread:
    """Started with the first connection on a plain socket, stopped with the server.

    With a single processor no thread is started: a thread would take time from the event loop.
    """

    def __init__(self, writes: FastWrites) -> None:
        self._writes = writes
        self._writer: Writer | None = None
        self._thread: threading.Thread | None = None
        self._is_useful = _processors() > 1

    @property
    def batches(self) -> int:
        """Batches of answers given to the thread since the start."""
        return 0 if self._writer is None else int(self._writer.batches)

    def start(self) -> None:
        """Start the thread, unless the thread runs or is of no use."""
        if self._thread is not None or not self._is_useful:
            return
        try:
            writer = Writer()
        except OSError:  # no semaphores: the event loop sends all answers
            self._is_useful = False
            return
        self._writer = writer
        self._thread = threading.Thread(target=writer.run, name="answers", daemon=True)
        self._thread.start()
        self._writes.lend_to(writer)

    def stop(self) -> None:
        """Send the answers given to the thread, and end the thread."""
        if self._thread is not None and self._writer is not None:
            self._writes.lend_to(None)
            self._writer.stop()
            self._thread.join()
            self._thread = None


def _processors() -> int:
    """Return the number of processors available to the process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
