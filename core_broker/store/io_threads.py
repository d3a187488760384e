"""I/O threads: run calls that may block on the disk, in order, off the event loop."""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Protocol

from core_broker.store.files import File
from core_broker.store.sync_thread import SyncThread, can_sync

#: Runs off the loop, and touches its arguments only.
Job = Callable[[], None]
#: Runs on the loop with the exception of the job, or None.
Done = Callable[[Exception | None], None]


class SerialExecutor(Protocol):
    """Runs jobs one at a time, in order; before `start` and after `close` inline, in `submit`."""

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to run jobs off the loop."""

    def submit(self, job: Job, done: Done) -> None:
        """Run `job` after all earlier jobs, then `done` on the event loop."""

    def sync(self, file: File, done: Done) -> None:
        """Submit `file.sync`; no other job of this executor may be under way."""

    def close(self) -> None:
        """Return when all jobs and their `done` callbacks have run."""


#: Makes an executor, given its name.
ExecutorMaker = Callable[[str], SerialExecutor]


class IoThread:
    """An executor with its own thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._jobs: queue.SimpleQueue[tuple[Job, Done] | None] = queue.SimpleQueue()
        self._finished: queue.SimpleQueue[tuple[Done, Exception | None]] = queue.SimpleQueue()
        self._syncs: SyncThread | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to run jobs off the loop."""
        self._loop = loop
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def submit(self, job: Job, done: Done) -> None:
        """Run `job` after all earlier jobs, then `done` on the event loop."""
        if self._thread is None:
            done(_outcome(job))
        else:
            self._jobs.put((job, done))

    def sync(self, file: File, done: Done) -> None:
        """Submit `file.sync`; no other job of this executor may be under way."""
        if self._loop is None or not can_sync(file):
            self.submit(file.sync, done)
            return
        if self._syncs is None:
            try:
                self._syncs = SyncThread(f"{self._name}-sync", self._loop)
            except OSError:  # out of file descriptors: this thread syncs
                self.submit(file.sync, done)
                return
        self._syncs.sync(file, done)

    def close(self) -> None:
        """Return when all jobs and their `done` callbacks have run."""
        if self._syncs is not None:
            self._syncs.close()
            self._syncs = None
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = self._loop = None
            self._deliver()

    def _run(self) -> None:
        while (entry := self._jobs.get()) is not None:
            job, done = entry
            self._finished.put((done, _outcome(job)))
            loop = self._loop
            if loop is not None and not loop.is_closed():
                loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        while not self._finished.empty():
            done, error = self._finished.get()
            done(error)


def _outcome(job: Job) -> Exception | None:
    try:
        job()
    except Exception as error:  # noqa: BLE001 - `done` handles every failure of a job
        return error
    return None
