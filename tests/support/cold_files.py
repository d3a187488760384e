"""Files that have left the memory of the machine, and come back when they are read in earnest."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from core_broker.store.files import DiskFile, DiskFiles

if TYPE_CHECKING:
    from core_broker.kernel.mapping import Mapping

PAGE_BYTES = 4096


class ColdFiles(DiskFiles):
    """The real files, but which pages are in memory is told by the test."""

    def __init__(self) -> None:
        #: Cleared to let the disk stall.
        self.runs = threading.Event()
        self.runs.set()
        #: Raised by reads of what is cold.
        self.error: OSError | None = None
        #: Path, size and offset of what was asked for ahead.
        self.ahead: list[tuple[Path, int, int]] = []
        #: Cold reads so far.
        self.reads = 0
        self._warm: dict[Path, set[int]] | None = None
        self._evicted: tuple[Path, ...] = ()

    def evict(self, *paths: Path) -> None:
        """From now on only what was read since is in memory; of these files, or of all."""
        self._warm = {}
        self._evicted = paths

    def open(self, path: Path, *, create: bool = False) -> "ColdFile":
        """Open for reading and writing."""
        return ColdFile(self, path, super().open(path, create=create))

    def is_warm(self, path: Path, pages: range) -> bool:
        """Tell whether all these pages are in memory."""
        if self._warm is None or self.is_never_cold(path):
            return True
        return self._warm.get(path, set()).issuperset(pages)

    def is_never_cold(self, path: Path) -> bool:
        """Tell whether other files were evicted, and not this one."""
        return bool(self._evicted) and path not in self._evicted

    def fetch(self, path: Path, pages: range) -> None:
        """Bring pages into memory, as slowly as the disk is."""
        if self.is_warm(path, pages) or self._warm is None:
            return
        self.reads += 1
        assert self.runs.wait(30)
        if self.error is not None:
            raise self.error
        self._warm.setdefault(path, set()).update(pages)

    def wrote(self, path: Path, pages: range) -> None:
        """What is written is in memory."""
        if self._warm is not None:
            self._warm.setdefault(path, set()).update(pages)


class ColdFile(DiskFile):
    """One open file."""

    __slots__ = ("_files", "_path", "_real")

    def __init__(self, files: ColdFiles, path: Path, real: DiskFile) -> None:
        self._files, self._path, self._real = files, path, real

    def pread(self, size: int, offset: int) -> bytes:
        """Read, waiting for the disk where needed."""
        data = self._real.pread(size, offset)
        self._files.fetch(self._path, _pages(len(data), offset))
        return data

    def pread_now(self, size: int, offset: int) -> bytes | None:
        """Read if it is in memory."""
        data = self._real.pread(size, offset)
        return data if self._files.is_warm(self._path, _pages(len(data), offset)) else None

    def will_need(self, size: int, offset: int) -> None:
        """Note what was asked for ahead."""
        self._files.ahead.append((self._path, size, offset))

    def map(self, offset: int, size: int, start: int) -> "Mapping | None":
        """What is in memory is told by the test; the kernel sees what never leaves it."""
        return (
            self._real.map(offset, size, start) if self._files.is_never_cold(self._path) else None
        )

    def next_data(self, offset: int) -> int:
        """Do as a real file does."""
        return self._real.next_data(offset)

    def pwrite(self, data: bytes | bytearray | memoryview, offset: int) -> None:
        """Write all of `data`."""
        self._real.pwrite(data, offset)
        self._files.wrote(self._path, _pages(len(data), offset))

    def write_zeros(self, offset: int, size: int) -> None:
        """Write zeros."""
        self._real.write_zeros(offset, size)
        self._files.wrote(self._path, _pages(size, offset))

    def sync(self) -> None:
        """Do as a real file does."""
        self._real.sync()

    def truncate(self, size: int) -> None:
        """Set the size."""
        self._real.truncate(size)

    def allocate(self, offset: int, size: int) -> bool:
        """Do as a real file does."""
        return self._real.allocate(offset, size)

    def close(self) -> None:
        """Close it."""
        self._real.close()


def _pages(size: int, offset: int) -> range:
    return range(offset // PAGE_BYTES, -(-(offset + size) // PAGE_BYTES))
