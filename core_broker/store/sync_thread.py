"""A thread that syncs files without ever acquiring the GIL, next to an I/O thread.

Linux with the compiled kernel only; elsewhere the I/O thread runs each sync as an ordinary job.
"""

import asyncio
import os
import select
import threading
from collections.abc import Callable
from typing import Any, TypeGuard

from core_broker.store.files import DiskFile, File, SyncFailed

try:
    from core_broker.kernel.syncing import Syncer
except ImportError:
    Syncer = None


def can_sync(file: File) -> TypeGuard[DiskFile]:
    """Return whether a SyncThread can sync this file on this system."""
    return Syncer is not None and hasattr(os, "eventfd") and type(file) is DiskFile


class SyncThread:
    """Syncs one file at a time and notifies the event loop. Event loop only."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self._request_fd = os.eventfd(0, os.EFD_CLOEXEC)
        try:
            self._done_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        except OSError:
            os.close(self._request_fd)
            raise
        self._syncer: Any = Syncer(self._request_fd, self._done_fd)
        self._done: Callable[[Exception | None], None] | None = None
        self._loop = loop
        self._thread = threading.Thread(target=self._syncer.run, name=name, daemon=True)
        self._thread.start()
        loop.add_reader(self._done_fd, self._deliver)

    def sync(self, file: DiskFile, done: Callable[[Exception | None], None]) -> None:
        """Sync a file, then call `done` with SyncFailed or None; the file stays open until then."""
        self._done = done
        self._syncer.ask(file.descriptor)

    def close(self) -> None:
        """Return when the current sync, and syncs started by its callback, have finished."""
        self._loop.remove_reader(self._done_fd)
        while self._done is not None:
            poll = select.poll()  # select() supports the first 1024 descriptors only
            poll.register(self._done_fd, select.POLLIN)
            poll.poll()
            self._deliver()
        self._syncer.stop()
        self._thread.join()
        os.close(self._request_fd)
        os.close(self._done_fd)

    def _deliver(self) -> None:
        number = self._syncer.outcome()
        done, self._done = self._done, None
        if done is not None:
            done(SyncFailed(number, os.strerror(number)) if number else None)
