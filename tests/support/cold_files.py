"""Files whose pages are not in memory until a blocking read fetches them."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from core_broker.store.files import DiskFile, DiskFiles

if TYPE_CHECKING:
    from core_broker.kernel.mapping import Mapping

PAGE_BYTES = 4096


class ColdFiles(DiskFiles):
    """Real files with simulated residency: the test decides about the pages in memory."""

    def __init__(self) -> None:
        #: Cleared by a test to make the disk stall.
        self.runs = threading.Event()
        self.runs.set()
        #: Error of reads from the disk.
        self.error: OSError | None = None
        #: Path, size and offset of readahead requests.
        self.ahead: list[tuple[Path, int, int]] = []
        #: Number of reads from the disk.
        self.reads = 0
        self._warm: dict[Path, set[int]] | None = None
        self._evicted: tuple[Path, ...] = ()

    def evict(self, *paths: Path) -> None:
        """Evict all pages of the given files, or of all files."""
        self._warm = {}
        self._evicted = paths

    def open(self, path: Path, *, create: bool = False) -> "ColdFile":
        """Open for reading and writing."""
        return ColdFile(self, path, super().open(path, create=create))

    def is_warm(self, path: Path, pages: range) -> bool:
        """True when all pages are in memory."""
        if self._warm is None or self.is_never_cold(path):
            return True
        return self._warm.get(path, set()).issuperset(pages)

    def is_never_cold(self, path: Path) -> bool:
        """True when only other files were evicted."""
        return bool(self._evicted) and path not in self._evicted

    def fetch(self, path: Path, pages: range) -> None:
        """Bring pages into memory; blocks while the disk stalls."""
        if self.is_warm(path, pages) or self._warm is None:
            return
        self.reads += 1
        assert self.runs.wait(30)
        if self.error is not None:
            raise self.error
        self._warm.setdefault(path, set()).update(pages)

    def wrote(self, path: Path, pages: range) -> None:
        """Mark written pages as in memory."""
        if self._warm is not None:
            self._warm.setdefault(path, set()).update(pages)


class ColdFile(DiskFile):
    """An open file."""

    __slots__ = ("_files", "_path", "_real")

    def __init__(self, files: ColdFiles, path: Path, real: DiskFile) -> None:
        self._files, self._path, self._real = files, path, real

    def pread(self, size: int, offset: int) -> bytes:
        """Read, waiting for the disk where needed."""
        data = self._real.pread(size, offset)
        self._files.fetch(self._path, _pages(len(data), offset))
        return data

    def pread_now(self, size: int, offset: int) -> bytes | None:
        """Read data in memory; None for data on disk."""
        data = self._real.pread(size, offset)
        return data if self._files.is_warm(self._path, _pages(len(data), offset)) else None

    def will_need(self, size: int, offset: int) -> None:
        """Record a readahead request."""
        self._files.ahead.append((self._path, size, offset))

    def map(self, offset: int, size: int, start: int) -> "Mapping | None":
        """Map only files that are never evicted, because the kernel reads mappings directly."""
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
        """Close the file."""
        self._real.close()


def _pages(size: int, offset: int) -> range:
    return range(offset // PAGE_BYTES, -(-(offset + size) // PAGE_BYTES))
