"""The thread of a server's writer, which sends the answers of busy turns (kernel/writer.py)."""

import os
import threading
from typing import Any

try:
    from core_broker.kernel.writer import Writer
except ImportError:
    Writer = None


class WriterThread:
    """Begun with the first connection that has a socket, ended with the server."""

    def __init__(self, path: Any) -> None:
        self._path = path
        self._writer: Any = None
        self._thread: threading.Thread | None = None
        self._is_needed = _processors() > 1

    @property
    def batches(self) -> int:
        """How often the thread was given something to send."""
        return 0 if self._writer is None else int(self._writer.batches)

    def start(self) -> None:
        """Send with the thread from now on, unless it would take the loop's own time."""
        if self._thread is not None or not self._is_needed:
            return
        try:
            self._writer = Writer()
        except OSError:  # no semaphores here: the loop sends everything
            self._is_needed = False
            return
        self._thread = threading.Thread(target=self._writer.run, name="answers", daemon=True)
        self._thread.start()
        self._path.write_with(self._writer)

    def stop(self) -> None:
        """Send what is under way, and end the thread."""
        if self._thread is not None:
            self._path.write_with(None)
            self._writer.stop()
            self._thread.join()
            self._thread = None


def _processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
