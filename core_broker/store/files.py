"""The file system interface of the store: every file operation of the store is one of these calls.

`DiskFiles` uses the operating system. `SimulatedFiles` (simulated_files.py) keeps files in memory,
loses unsynced writes, tears the last write and fails on command, for tests of the same store.

Durability follows POSIX: `File.sync` makes written bytes durable; `sync_dir` of a folder makes
created, renamed and removed names durable.
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

from core_broker.store.store_lock import DiskLock, Lock, PathLock

try:
    from core_broker.kernel.mapping import Mapping
    from core_broker.kernel.zeros import write_zeros
except ImportError:
    Mapping = write_zeros = None

Buffer = bytes | bytearray | memoryview

#: Linux flag of preadv2(): return EAGAIN instead of waiting for the disk.
_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
#: Zeros of one write, 64 KiB. ext4 caches one write as one folio, and a later small write into a
#: large folio is slow: 1.3 KB take 1.3 µs after writes of 64 KiB, 3 µs after writes of 1 MiB.
_ZEROS = bytes(64 * 1024)
#: Bytes evicted from the page cache per call before a file is removed, about 1 ms of work; pause
#: after each call, seconds.
EVICTED_BYTES = 4 * 1024 * 1024
EVICTION_PAUSE_S = 0.004
_CANNOT_ALLOCATE = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


class SyncFailed(OSError):
    """A sync failed: bytes written to the file may be lost, and a retry cannot detect the loss.

    Linux marks the pages clean after an error, so the next sync succeeds without the data.
    """


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Used and usable bytes of a disk, counted as `df` and RocketMQ count them."""

    used: int
    usable: int

    @property
    def ratio(self) -> float:
        """Used share of the space for unprivileged processes, 0.0 to 1.0."""
        whole = self.used + self.usable
        return self.used / whole if whole else 0.0


class File(Protocol):
    """One open file with absolute positions and without a cursor; threads may share the file."""

    def pread(self, size: int, offset: int) -> bytes:
        """Read up to `size` bytes; fewer only at the end of the file."""

    def pread_now(self, size: int, offset: int) -> bytes | bytearray | None:
        """Read as `pread` does, but return None where the read would wait for the disk."""

    def will_need(self, size: int, offset: int) -> None:
        """Start readahead of a range, without waiting."""

    def map(self, offset: int, size: int, start: int) -> "Mapping | None":
        """Map a range of the file; its first byte is offset `start` of the log.

        Returns None where mapping fails or the compiled kernel is missing.
        """

    def next_data(self, offset: int) -> int:
        """Return the first position at or behind `offset` that may hold non-zero bytes.

        Returns the size of the file when only zeros follow, and `offset` without SEEK_DATA.
        """

    def pwrite(self, data: Buffer, offset: int) -> None:
        """Write all of `data`; after OSError an unknown part of `data` is written."""

    def write_zeros(self, offset: int, size: int) -> None:
        """Write zeros to an unwritten range; errors as in `pwrite`."""

    def sync(self) -> None:
        """Return when all earlier writes are on the disk (fdatasync), or raise SyncFailed."""

    def truncate(self, size: int) -> None:
        """Set the size; added bytes read as zeros, bytes behind the new end are lost."""

    def allocate(self, offset: int, size: int) -> bool:
        """Reserve disk space for a range; return False where the file system cannot reserve."""

    def close(self) -> None:
        """Close the file; further calls fail."""


class Files(Protocol):
    """One file system."""

    def open(self, path: Path, *, create: bool = False) -> File: ...

    def exists(self, path: Path) -> bool: ...

    def size(self, path: Path) -> int: ...

    def modified_ms(self, path: Path) -> int: ...

    def names(self, folder: Path) -> list[str]:
        """Return the sorted names in a folder; an empty list without the folder."""

    def make_dir(self, folder: Path) -> None:
        """Create a folder and missing parents."""

    def remove(self, path: Path) -> None:
        """Remove one file; a missing file is no error."""

    def remove_slowly(self, path: Path) -> None:
        """Remove one file in small steps, so that other threads and processes never wait long."""

    def remove_tree(self, folder: Path) -> None:
        """Remove a folder with its contents; a missing folder is no error."""

    def rename(self, source: Path, target: Path) -> None:
        """Rename atomically; an existing target file is replaced."""

    def sync_dir(self, folder: Path) -> None:
        """Return when the names of a folder are on the disk, or raise SyncFailed."""

    def usage(self, folder: Path) -> DiskUsage: ...

    def lock(self, path: Path) -> Lock:
        """Lock byte 0 of a file against other processes, or raise StoreLocked."""

    def lock_path(self, path: Path) -> Lock:
        """Lock an existing folder or file, without other files, or raise StoreLocked."""

    def boot_id(self) -> str:
        """Return the boot id of the operating system, "" without one.

        While the boot id is the same, all written bytes can be read, synced or not.
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
        """Read as `pread` does, but return None where the read would wait for the disk.

        File systems without RWF_NOWAIT, such as tmpfs, read as `pread` does.
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
        """Start readahead of a range, without waiting."""
        if sys.platform != "darwin":
            os.posix_fadvise(self._fd, offset, size, os.POSIX_FADV_WILLNEED)

    def map(self, offset: int, size: int, start: int) -> "Mapping | None":
        """Map a range of the file; its first byte is offset `start` of the log."""
        if Mapping is None:
            return None
        try:
            return Mapping(self._fd, offset, size, start)
        except OSError:
            return None

    def next_data(self, offset: int) -> int:
        """Return the first position at or behind `offset` that may hold non-zero bytes."""
        try:
            return os.lseek(self._fd, offset, os.SEEK_DATA)
        except OSError as error:
            size = os.fstat(self._fd).st_size
            return max(offset, size) if error.errno == errno.ENXIO else offset

    def pwrite(self, data: Buffer, offset: int) -> None:
        """Write all of `data`; after OSError an unknown part of `data` is written."""
        written = os.pwrite(self._fd, data, offset)
        while written < len(data):
            written += os.pwrite(self._fd, memoryview(data)[written:], offset + written)

    def write_zeros(self, offset: int, size: int) -> None:
        """Write zeros to an unwritten range; errors as in `pwrite`."""
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
        """The file descriptor."""
        return self._fd

    def sync(self) -> None:
        """Return when all earlier writes are on the disk; releases the GIL."""
        try:
            _fdatasync(self._fd)
        except OSError as error:
            raise SyncFailed(error.errno, error.strerror) from error

    def truncate(self, size: int) -> None:
        """Set the size; added bytes read as zeros, bytes behind the new end are lost."""
        os.ftruncate(self._fd, size)

    def allocate(self, offset: int, size: int) -> bool:
        """Reserve disk space for a range; return False where the file system cannot reserve."""
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
        """Close the file; a second call does nothing."""
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
        """Return whether a file or folder of this name exists."""
        return path.exists()

    def size(self, path: Path) -> int:
        """Return the size of a file in bytes."""
        return path.stat().st_size

    def modified_ms(self, path: Path) -> int:
        """Return when a file was last written, in milliseconds since 1970."""
        return path.stat().st_mtime_ns // 1_000_000

    def names(self, folder: Path) -> list[str]:
        """Return the sorted names in a folder; an empty list without the folder."""
        if not folder.is_dir():
            return []
        return sorted(entry.name for entry in folder.iterdir())

    def make_dir(self, folder: Path) -> None:
        """Create a folder and missing parents."""
        folder.mkdir(parents=True, exist_ok=True)

    def remove(self, path: Path) -> None:
        """Remove one file; a missing file is no error."""
        path.unlink(missing_ok=True)

    def remove_slowly(self, path: Path) -> None:
        """Remove one file in small steps, so that other threads and processes never wait long.

        Evicting the pages of a large file from the page cache takes long and blocks other writers.
        """
        if sys.platform != "darwin":
            with suppress(FileNotFoundError):
                self._evict(path)
        path.unlink(missing_ok=True)

    def _evict(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for at in range(0, os.fstat(fd).st_size, EVICTED_BYTES):
                os.posix_fadvise(fd, at, EVICTED_BYTES, os.POSIX_FADV_DONTNEED)
                time.sleep(EVICTION_PAUSE_S)
        finally:
            os.close(fd)

    def remove_tree(self, folder: Path) -> None:
        """Remove a folder with its contents; a missing folder is no error."""
        if folder.exists():
            shutil.rmtree(folder)

    def rename(self, source: Path, target: Path) -> None:
        """Rename atomically; an existing target file is replaced."""
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
        """Return the usage of the disk of a folder, which may be missing."""
        while not folder.exists():
            folder = folder.parent
        stat = os.statvfs(folder)
        used = (stat.f_blocks - stat.f_bfree) * stat.f_frsize
        return DiskUsage(used, stat.f_bavail * stat.f_frsize)

    def boot_id(self) -> str:
        """Return the boot id of the operating system, "" without one."""
        try:
            return _BOOT_ID.read_text().strip()
        except OSError:
            return ""

    def lock(self, path: Path) -> DiskLock:
        """Lock byte 0 of a file against other processes, or raise StoreLocked."""
        return DiskLock(path)

    def lock_path(self, path: Path) -> PathLock:
        """Lock an existing folder or file, without other files, or raise StoreLocked."""
        return PathLock(path)


def _fdatasync(fd: int) -> None:
    if sys.platform == "darwin":
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # on macOS, fsync() does not flush the disk's cache
    else:
        os.fdatasync(fd)


def replace_file(files: Files, path: Path, data: bytes) -> None:
    """Replace the content of a file atomically: a crash leaves the old or the new content."""
    fresh = path.with_name(path.name + ".tmp")
    file = files.open(fresh, create=True)
    try:
        file.truncate(0)
        file.pwrite(data, 0)
        file.sync()
    except OSError:
        with suppress(OSError):  # on a full disk, the unfinished file would need space
            files.remove(fresh)
        raise
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
