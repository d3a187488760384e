"""The thread that runs the kernel's Writer, which sends the answers of busy iterations."""

import os
import threading

from core_broker.kernel.fast_path import FastPath
from core_broker.kernel.writer import Writer


class WriterThread:
    """Started with the first connection that has a socket, stopped with the server.

    On one processor no thread is started: a thread would take time from the event loop.
    """

    def __init__(self, kernel: FastPath) -> None:
        self._kernel = kernel
        self._writer: Writer | None = None
        self._thread: threading.Thread | None = None
        self._is_useful = _processors() > 1

    @property
    def batches(self) -> int:
        """Batches of answers that the thread has got since the start."""
        return 0 if self._writer is None else int(self._writer.batches)

    def start(self) -> None:
        """Start the thread, unless it runs or is of no use here."""
        if self._thread is not None or not self._is_useful:
            return
        try:
            writer = Writer()
        except OSError:  # no semaphores on this system: the event loop sends everything
            self._is_useful = False
            return
        self._writer = writer
        self._thread = threading.Thread(target=writer.run, name="answers", daemon=True)
        self._thread.start()
        self._kernel.lend_to(writer)

    def stop(self) -> None:
        """Send what is under way, and end the thread."""
        if self._thread is not None and self._writer is not None:
            self._kernel.lend_to(None)
            self._writer.stop()
            self._thread.join()
            self._thread = None


def _processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
