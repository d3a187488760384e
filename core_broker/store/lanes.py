"""Lanes: where calls run that may wait for the disk, one after the other, off the event loop."""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Protocol

#: Runs off the loop; it touches nothing but what it was given.
Job = Callable[[], None]
#: Runs on the loop with what the job raised, or None.
Done = Callable[[Exception | None], None]


class Lane(Protocol):
    """One line of jobs. Before `start` and after `close` jobs run at once, in `submit`."""

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to run jobs off the loop."""

    def submit(self, job: Job, done: Done) -> None:
        """Run `job` behind those submitted before, then `done` on the event loop."""

    def close(self) -> None:
        """Return when all jobs and their `done` have run."""


#: Makes the lane of a name.
LaneMaker = Callable[[str], Lane]


class ThreadLane:
    """A lane with a thread of its own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._jobs: queue.SimpleQueue[tuple[Job, Done] | None] = queue.SimpleQueue()
        self._finished: queue.SimpleQueue[tuple[Done, Exception | None]] = queue.SimpleQueue()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to run jobs off the loop."""
        self._loop = loop
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def submit(self, job: Job, done: Done) -> None:
        """Run `job` behind those submitted before, then `done` on the event loop."""
        if self._thread is None:
            done(_outcome(job))
        else:
            self._jobs.put((job, done))

    def close(self) -> None:
        """Return when all jobs and their `done` have run."""
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
    except Exception as error:  # noqa: BLE001 - the shell of all jobs; their `done` decides
        return error
    return None
