"""A thread that syncs files beside an executor, without ever waiting for the interpreter.

Linux only, and with the kernel; elsewhere executors sync as they run any other job.
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
    """Whether such a thread can sync this file here."""
    return Syncer is not None and hasattr(os, "eventfd") and type(file) is DiskFile


class SyncThread:
    """Syncs one file at a time, and tells the event loop. Event loop only."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self._asked = os.eventfd(0, os.EFD_CLOEXEC)
        try:
            self._told = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        except OSError:
            os.close(self._asked)
            raise
        self._syncer: Any = Syncer(self._asked, self._told)
        self._done: Callable[[Exception | None], None] | None = None
        self._loop = loop
        self._thread = threading.Thread(target=self._syncer.run, name=name, daemon=True)
        self._thread.start()
        loop.add_reader(self._told, self._deliver)

    def sync(self, file: DiskFile, done: Callable[[Exception | None], None]) -> None:
        """Sync a file, which stays open meanwhile, then call `done` with SyncFailed or None."""
        self._done = done
        self._syncer.ask(file.descriptor)

    def close(self) -> None:
        """Return when the sync under way, and those that follow from it, are done and told."""
        self._loop.remove_reader(self._told)
        while self._done is not None:
            told = select.poll()  # select knows the first thousand descriptors only
            told.register(self._told, select.POLLIN)
            told.poll()
            self._deliver()
        self._syncer.stop()
        self._thread.join()
        os.close(self._asked)
        os.close(self._told)

    def _deliver(self) -> None:
        number = self._syncer.outcome()
        done, self._done = self._done, None
        if done is not None:
            done(SyncFailed(number, os.strerror(number)) if number else None)
