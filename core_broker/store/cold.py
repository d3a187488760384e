"""Reading what is not in memory: off the event loop first, then once more on it.

While the broker serves, a read on the event loop asks the memory only (`File.pread_now`). Where the
disk would have to be asked it raises ColdRead. Whoever wanted the data lets `ColdReads` read it in
a lane, which brings it into the page cache of the operating system, and then asks again. So a hot
read takes no detour, and no state of the store is touched by two threads.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from core_broker.errors import StoreBusy
from core_broker.store.files import Files
from core_broker.store.lanes import Done, Job, Lane

#: A cold read brings at least so much into memory, since most readers go on behind it; one of a
#: few bytes, which looks something up, brings less.
WARM_BYTES = 128 * 1024
LOOK_UP_BYTES = 16 * 1024
LOOK_UP_SIZE_MAX = 512
#: Behind the last piece of a cold read that is no look-up, the system reads so much ahead.
AHEAD_BYTES = 1024 * 1024
#: So many cold reads run at a time.
READ_LANES = 4
#: So many wait at most; one more is refused.
WAITING_MAX = 1_000

_PAGE_BYTES = 4096
T = TypeVar("T")


class ColdRead(Exception):
    """What is to be read is not in memory: let it be warmed, then ask again."""

    def __init__(self, files: Files, path: Path, size: int, offset: int) -> None:
        super().__init__(f"{size} bytes at {offset} of {path} are not in memory")
        #: Path, size and offset of each piece.
        self.spans = [(path, size, offset)]
        #: It was read, but the file system still says that it is not in memory.
        self.is_in_vain = False
        self._files = files

    def add(self, other: "ColdRead") -> "ColdRead":
        """Take in what another read lacks, so that one trip brings both."""
        self.spans += other.spans
        return self

    def warm(self) -> None:
        """Bring it into memory; runs off the loop. A file that is gone is the reader's affair."""
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
    """Return all answers; when some lack something, raise one ColdRead for all that is lacking."""
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
    """The lanes for cold reads. Event loop only, except the jobs."""

    def __init__(
        self, lanes: Sequence[Lane], on_warm: Callable[[ColdRead], None], waiting_max: int
    ) -> None:
        self.waiting = 0
        self._lanes = itertools.cycle(lanes)
        self._on_warm = on_warm
        self._waiting_max = waiting_max

    def warm(self, cold: ColdRead, then: Done) -> None:
        """Read what was cold; `then` hears on the loop how that went, and asks again."""

        def warmed(error: Exception | None) -> None:
            if error is None:
                self._on_warm(cold)
            then(error)

        self.run(cold.warm, warmed)

    def run(self, job: Job, then: Done) -> None:
        """Run a job that reads; `then` hears StoreBusy at once when too many wait already."""
        if self.waiting >= self._waiting_max:
            then(StoreBusy(self.waiting))
            return
        self.waiting += 1

        def done(error: Exception | None) -> None:
            self.waiting -= 1
            then(error)

        next(self._lanes).submit(job, done)

    async def ran(self, job: Job) -> None:
        """Wait until a job has run; raises what it raised, or StoreBusy."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: Exception | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self.run(job, done)
        await future

    async def warmed(self, cold: ColdRead) -> None:
        """Wait until what was cold has been read; raises OSError or StoreBusy."""
        await self.ran(cold.warm)
        self._on_warm(cold)

    async def when_warm(self, ask: Callable[[], T]) -> T:
        """Return what `ask` returns, however often something must be read for it first.

        Raises OSError when that fails and StoreBusy when too many wait for the disk.
        """
        while True:
            try:
                return ask()
            except ColdRead as cold:
                await self.warmed(cold)
