"""The seam to the disk: everything the store does to files goes through these calls.

`DiskFiles` is the real one. `SimulatedFiles` (simulated_files.py) is its twin in memory, which
loses unsynced writes, tears the last one and fails on command, so that the same store runs under
test.

Durability is as on POSIX: written bytes are safe after `File.sync`, a created, renamed or removed
name is safe after `sync_dir` of its folder.
"""

import errno
import fcntl
import os
import shutil
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from core_broker.store.store_lock import DiskLock, Lock

try:
    from core_broker.kernel.mapping import Mapping
    from core_broker.kernel.zeros import write_zeros
except ImportError:
    Mapping = write_zeros = None

Buffer = bytes | bytearray | memoryview

#: Linux: read only what is in memory.
_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
#: ext4 keeps what one call wrote together in memory, and small writes into large pieces are slow:
#: 1.3 KB take 1.3 us where zeros came in pieces of 64 KiB, 3 us where they came in MiB.
_ZEROS = bytes(64 * 1024)
#: So much of a file leaves the memory at once before it is removed, which takes a millisecond, and
#: so long others go on after each.
FORGOTTEN_BYTES = 4 * 1024 * 1024
FORGOTTEN_PAUSE_S = 0.004
_CANNOT_ALLOCATE = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


class SyncFailed(OSError):
    """What was written to a file, by whomever, may be lost; trying again would not tell.

    Linux marks the pages clean after an error, so the next sync succeeds without the data.
    """


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """How full a disk is, counted as `df` and RocketMQ count it."""

    used: int
    usable: int

    @property
    def ratio(self) -> float:
        """Used share of what ordinary processes may use, 0.0 to 1.0."""
        whole = self.used + self.usable
        return self.used / whole if whole else 0.0


class File(Protocol):
    """One open file; positions are absolute and there is no cursor, so threads may share it."""

    def pread(self, size: int, offset: int) -> bytes:
        """Read up to `size` bytes; fewer only at the end of the file."""

    def pread_now(self, size: int, offset: int) -> bytes | bytearray | None:
        """Read as `pread` does, but return None when the disk would have to be waited for."""

    def will_need(self, size: int, offset: int) -> None:
        """Let the system begin to read what will be asked for soon; does not wait for it."""

    def map(self, offset: int, size: int, start: int) -> "Mapping | None":
        """Map a piece of the file, which stands for bytes from `start` on of a log.

        None where that is not possible, or where the kernel that reads it is not compiled.
        """

    def next_data(self, offset: int) -> int:
        """Return from where on there may be more than zeros, at or behind an offset.

        The size of the file when only zeros follow; where the file system cannot tell, `offset`.
        """

    def pwrite(self, data: Buffer, offset: int) -> None:
        """Write all of `data`, or raise OSError with an unknown part of it written."""

    def write_zeros(self, offset: int, size: int) -> None:
        """Write zeros where there was nothing yet; otherwise as `pwrite`."""

    def sync(self) -> None:
        """Return when everything written before is on the disk (fdatasync), or raise SyncFailed."""

    def truncate(self, size: int) -> None:
        """Set the size; what is added reads as zeros, what is cut off is gone."""

    def allocate(self, offset: int, size: int) -> bool:
        """Make sure that a range can be written without ENOSPC; False where that cannot be."""

    def close(self) -> None:
        """Close it; further calls fail."""


class Files(Protocol):
    """One file system."""

    def open(self, path: Path, *, create: bool = False) -> File: ...

    def exists(self, path: Path) -> bool: ...

    def size(self, path: Path) -> int: ...

    def modified_ms(self, path: Path) -> int: ...

    def names(self, folder: Path) -> list[str]:
        """Return the sorted names in a folder; none when it does not exist."""

    def make_dir(self, folder: Path) -> None:
        """Create a folder and its parents where missing."""

    def remove(self, path: Path) -> None:
        """Remove one file; it is no error when it is gone already."""

    def remove_slowly(self, path: Path) -> None:
        """Do as `remove` does, in pieces so small that nobody else waits for it."""

    def remove_tree(self, folder: Path) -> None:
        """Remove a folder with everything in it; it is no error when it is gone already."""

    def rename(self, source: Path, target: Path) -> None:
        """Rename at once; an existing target file is replaced."""

    def sync_dir(self, folder: Path) -> None:
        """Return when the names of a folder are on the disk, or raise SyncFailed."""

    def usage(self, folder: Path) -> DiskUsage: ...

    def lock(self, path: Path) -> Lock:
        """Lock byte 0 of a file against other processes, or raise StoreLocked."""

    def boot_id(self) -> str:
        """Name this run of the operating system, "" when it has no name.

        As long as it is the same, everything written can be read, synced or not.
        """


class DiskFile:
    """A file of the operating system."""

    __slots__ = ("_can_ask_memory", "_fd")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._can_ask_memory = _NOWAIT != 0

    def pread(self, size: int, offset: int) -> bytes:
        """Read up to `size` bytes; fewer only at the end of the file."""
        data = os.pread(self._fd, size, offset)
        while 0 < len(data) < size:  # a signal or a network file system may cut a read short
            more = os.pread(self._fd, size - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def pread_now(self, size: int, offset: int) -> bytes | bytearray | None:
        """Read as `pread` does, but return None when the disk would have to be waited for.

        File systems that cannot tell, such as those in memory, read as always.
        """
        if not self._can_ask_memory:
            return self.pread(size, offset)
        data = bytearray(size)
        try:
            read = os.preadv(self._fd, (data,), offset, _NOWAIT)
            while 0 < read < size:
                more = os.preadv(self._fd, (memoryview(data)[read:],), offset + read, _NOWAIT)
                if not more:
                    break
                read += more
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            self._can_ask_memory = False
            return self.pread(size, offset)
        return data if read == size else data[:read]

    def will_need(self, size: int, offset: int) -> None:
        """Let the system begin to read what will be asked for soon; does not wait for it."""
        if sys.platform != "darwin":
            os.posix_fadvise(self._fd, offset, size, os.POSIX_FADV_WILLNEED)

    def map(self, offset: int, size: int, start: int) -> "Mapping | None":
        """Map a piece of the file, which stands for bytes from `start` on of a log."""
        if Mapping is None:
            return None
        try:
            return Mapping(self._fd, offset, size, start)
        except OSError:
            return None

    def next_data(self, offset: int) -> int:
        """Return from where on there may be more than zeros, at or behind an offset."""
        try:
            return os.lseek(self._fd, offset, os.SEEK_DATA)
        except OSError as error:
            size = os.fstat(self._fd).st_size
            return max(offset, size) if error.errno == errno.ENXIO else offset

    def pwrite(self, data: Buffer, offset: int) -> None:
        """Write all of `data`, or raise OSError with an unknown part of it written."""
        written = os.pwrite(self._fd, data, offset)
        while written < len(data):
            written += os.pwrite(self._fd, memoryview(data)[written:], offset + written)

    def write_zeros(self, offset: int, size: int) -> None:
        """Write zeros where there was nothing yet; otherwise as `pwrite`."""
        if write_zeros is not None:
            write_zeros(self._fd, offset, size, _ZEROS)
            return
        end = offset + size
        while offset < end:
            count = min(len(_ZEROS) - offset % len(_ZEROS), end - offset)
            self.pwrite(_ZEROS[:count], offset)
            offset += count

    @property
    def descriptor(self) -> int:
        """The open file, as the system knows it."""
        return self._fd

    def sync(self) -> None:
        """Return when everything written before is on the disk; does not hold the GIL."""
        try:
            _fdatasync(self._fd)
        except OSError as error:
            raise SyncFailed(error.errno, error.strerror) from error

    def truncate(self, size: int) -> None:
        """Set the size; what is added reads as zeros, what is cut off is gone."""
        os.ftruncate(self._fd, size)

    def allocate(self, offset: int, size: int) -> bool:
        """Make sure that a range can be written without ENOSPC; False where that cannot be."""
        if sys.platform == "darwin":
            return False
        try:
            os.posix_fallocate(self._fd, offset, size)
        except OSError as error:
            if error.errno not in _CANNOT_ALLOCATE:
                raise
            return False
        return True

    def close(self) -> None:
        """Close it; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class DiskFiles:
    """The file system of this machine."""

    def open(self, path: Path, *, create: bool = False) -> DiskFile:
        """Open for reading and writing."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return DiskFile(os.open(path, flags, 0o644))

    def exists(self, path: Path) -> bool:
        """Tell whether there is a file or folder of this name."""
        return path.exists()

    def size(self, path: Path) -> int:
        """Return the size of a file in bytes."""
        return path.stat().st_size

    def modified_ms(self, path: Path) -> int:
        """Return when a file was last written, in milliseconds since 1970."""
        return path.stat().st_mtime_ns // 1_000_000

    def names(self, folder: Path) -> list[str]:
        """Return the sorted names in a folder; none when it does not exist."""
        if not folder.is_dir():
            return []
        return sorted(entry.name for entry in folder.iterdir())

    def make_dir(self, folder: Path) -> None:
        """Create a folder and its parents where missing."""
        folder.mkdir(parents=True, exist_ok=True)

    def remove(self, path: Path) -> None:
        """Remove one file; it is no error when it is gone already."""
        path.unlink(missing_ok=True)

    def remove_slowly(self, path: Path) -> None:
        """Do as `remove` does, in pieces so small that nobody else waits for it.

        What takes long is to take a file out of memory, during which the others are held up.
        """
        if sys.platform != "darwin":
            with suppress(FileNotFoundError):
                self._leave_memory(path)
        path.unlink(missing_ok=True)

    def _leave_memory(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for at in range(0, os.fstat(fd).st_size, FORGOTTEN_BYTES):
                os.posix_fadvise(fd, at, FORGOTTEN_BYTES, os.POSIX_FADV_DONTNEED)
                time.sleep(FORGOTTEN_PAUSE_S)
        finally:
            os.close(fd)

    def remove_tree(self, folder: Path) -> None:
        """Remove a folder with everything in it; it is no error when it is gone already."""
        if folder.exists():
            shutil.rmtree(folder)

    def rename(self, source: Path, target: Path) -> None:
        """Rename at once; an existing target file is replaced."""
        source.replace(target)

    def sync_dir(self, folder: Path) -> None:
        """Return when the names of a folder are on the disk."""
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        except OSError as error:
            raise SyncFailed(error.errno, error.strerror, str(folder)) from error
        finally:
            os.close(fd)

    def usage(self, folder: Path) -> DiskUsage:
        """Return how full the disk under a folder is."""
        stat = os.statvfs(folder)
        used = (stat.f_blocks - stat.f_bfree) * stat.f_frsize
        return DiskUsage(used, stat.f_bavail * stat.f_frsize)

    def boot_id(self) -> str:
        """Name this run of the operating system, "" when it has no name."""
        try:
            return _BOOT_ID.read_text().strip()
        except OSError:
            return ""

    def lock(self, path: Path) -> DiskLock:
        """Lock byte 0 of a file against other processes, or raise StoreLocked."""
        return DiskLock(path)


def _fdatasync(fd: int) -> None:
    if sys.platform == "darwin":
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # only this reaches the disk there
    else:
        os.fdatasync(fd)


def replace_file(files: Files, path: Path, data: bytes) -> None:
    """Put new content in the place of a file so that a crash leaves the old or the new one."""
    fresh = path.with_name(path.name + ".tmp")
    file = files.open(fresh, create=True)
    try:
        file.truncate(0)
        file.pwrite(data, 0)
        file.sync()
    finally:
        file.close()
    files.rename(fresh, path)
    files.sync_dir(path.parent)


def read_file(files: Files, path: Path) -> bytes:
    """Return the whole content of a small file."""
    file = files.open(path)
    try:
        return file.pread(files.size(path), 0)
    finally:
        file.close()
