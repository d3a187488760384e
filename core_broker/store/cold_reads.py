"""Cold reads: data outside the page cache is read in an I/O thread first, then on the event loop.

While the broker serves, reads on the event loop use the page cache only (`File.pread_now`) and
raise ColdRead when the disk would have to be read. The caller then passes the ColdRead to
`ColdReads`: an I/O thread reads the range, which brings it into the page cache, and the caller
repeats the read. Reads from memory take no detour, and only one thread touches the store's state.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from core_broker.errors import StoreBusy
from core_broker.store.files import Files
from core_broker.store.io_threads import Done, Job, SerialExecutor

#: Minimum size of a cold read, bytes: most readers continue behind the requested range. A lookup,
#: a read of at most LOOK_UP_SIZE_MAX bytes, has a smaller minimum.
WARM_BYTES = 128 * 1024
LOOK_UP_BYTES = 16 * 1024
LOOK_UP_SIZE_MAX = 512
#: Readahead beyond the last range of a cold read that is no lookup, bytes.
AHEAD_BYTES = 1024 * 1024
#: Number of threads for cold reads.
READ_THREADS = 4
#: Maximum number of pending cold reads; further reads are refused.
WAITING_MAX = 1_000

_PAGE_BYTES = 4096
T = TypeVar("T")


class Repair(Protocol):
    """Work of a read that met damage (unit_repairs.py)."""

    def run(self) -> None:
        """Run off the loop."""

    def apply(self) -> None:
        """Apply the result on the loop, after `run`; may raise OSError."""


class ColdRead(Exception):
    """The requested range is not in memory: call `warm` off the loop, then repeat the read."""

    def __init__(self, files: Files, path: Path, size: int, offset: int) -> None:
        super().__init__(f"{size} bytes at {offset} of {path} are not in memory")
        #: Path, size and offset of each requested range.
        self.spans = [(path, size, offset)]
        #: Repairs that must follow before the read is repeated.
        self.repairs: list[Repair] = []
        #: True when the range was read, but RWF_NOWAIT still reports it as not in memory.
        self.is_in_vain = False
        self._files = files

    def add(self, other: "ColdRead") -> "ColdRead":
        """Add the ranges and repairs of another cold read, for a common job."""
        self.spans += other.spans
        self.repairs += other.repairs
        return self

    def warm(self) -> None:
        """Read all ranges into the page cache, and run the repairs.

        Runs off the loop; skips deleted files.
        """
        for repair in self.repairs:
            repair.run()
        for number, (path, size, offset) in enumerate(self.spans, 1):
            try:
                file = self._files.open(path)
            except FileNotFoundError:
                continue
            try:
                start = offset - offset % _PAGE_BYTES
                is_look_up = size <= LOOK_UP_SIZE_MAX
                least = LOOK_UP_BYTES if is_look_up else WARM_BYTES
                count = max(offset + size - start, least)
                file.pread(count, start)
                if not is_look_up and number == len(self.spans):
                    file.will_need(AHEAD_BYTES, start + count)
                self.is_in_vain |= file.pread_now(size, offset) is None
            finally:
                file.close()


def ask_all(asks: Iterable[Callable[[], T]]) -> list[T]:
    """Return the results of all calls; raise one ColdRead with all missing ranges."""
    answers: list[T] = []
    cold: ColdRead | None = None
    for ask in asks:
        try:
            answers.append(ask())
        except ColdRead as missing:
            cold = missing if cold is None else cold.add(missing)
    if cold is not None:
        raise cold
    return answers


class ColdReads:
    """Runs cold reads in I/O threads. Event loop only, except the jobs."""

    def __init__(
        self,
        executors: Sequence[SerialExecutor],
        repairing: SerialExecutor,
        on_warm: Callable[[ColdRead], None],
        waiting_max: int,
    ) -> None:
        self.waiting = 0
        self._executors = itertools.cycle(executors)
        #: Runs repairs one by one: a repair scans the log, and must not delay cold reads.
        self._repairing = repairing
        self._on_warm = on_warm
        self._waiting_max = waiting_max

    def warm(self, cold: ColdRead, then: Done) -> None:
        """Run a cold read, then `then` on the loop with its exception or None."""

        def warmed(error: Exception | None) -> None:
            if error is None:
                try:
                    self.finish(cold)
                except OSError as raised:
                    error = raised
            then(error)

        self.run(cold.warm, warmed, self._executor_of(cold))

    def _executor_of(self, cold: ColdRead) -> SerialExecutor | None:
        return self._repairing if cold.repairs else None

    def finish(self, cold: ColdRead) -> None:
        """Note a finished cold read."""
        self._on_warm(cold)
        for repair in cold.repairs:
            repair.apply()

    def run(self, job: Job, then: Done, executor: SerialExecutor | None = None) -> None:
        """Run a reading job; `then` gets StoreBusy immediately when too many reads are pending."""
        if self.waiting >= self._waiting_max:
            then(StoreBusy(self.waiting))
            return
        self.waiting += 1

        def done(error: Exception | None) -> None:
            self.waiting -= 1
            then(error)

        (executor or next(self._executors)).submit(job, done)

    async def ran(self, job: Job, executor: SerialExecutor | None = None) -> None:
        """Wait until a job has run; raises the exception of the job, or StoreBusy."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: Exception | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self.run(job, done, executor)
        await future

    async def warmed(self, cold: ColdRead) -> None:
        """Wait until a cold read has finished; raises OSError or StoreBusy."""
        await self.ran(cold.warm, self._executor_of(cold))
        self.finish(cold)

    async def when_warm(self, ask: Callable[[], T]) -> T:
        """Return the result of `ask`, repeated after each ColdRead once its ranges are in memory.

        Raises OSError when a read fails and StoreBusy when too many reads are pending.
        """
        while True:
            try:
                return ask()
            except ColdRead as cold:
                await self.warmed(cold)
