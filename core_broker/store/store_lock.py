"""Locks on folders and files of a store.

The lock on the store folder is the folder, and byte 0 of the file `lock`, as RocketMQ locks it.
The lock on the file excludes Java brokers. The lock on the folder excludes a second Gantry broker
also after the removal of the file, when the second broker would create and lock another file.
store_locks.py lists the locks of a store.
"""

import contextlib
import errno
import fcntl
import os
import struct
import sys
from pathlib import Path
from typing import Protocol

from core_broker.errors import StoreLocked
from core_broker.store.full_disk import is_disk_full

#: RocketMQ's content of the file.
LOCK_TEXT = b"lock"
#: `struct flock` of 64-bit Linux: type, whence, start, length, pid.
FLOCK = struct.Struct("hhqqi0q")


class Lock(Protocol):
    """A held lock."""

    def covers(self, folder: Path) -> bool:
        """Return True when the lock is on this existing folder, whatever the path is."""

    def release(self) -> None:
        """Release the lock."""


class DiskLock:
    """A lock that ends with the process. Raises StoreLocked when another holder exists."""

    def __init__(self, path: Path) -> None:
        self._fds = [os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        try:
            _lock_alone(self._fds[0])
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._fds.append(file)
            try:
                _lock_first_byte(file)
            except OSError as error:
                raise StoreLocked(str(path.parent)) from error
            if os.pread(file, len(LOCK_TEXT) + 1, 0) != LOCK_TEXT:
                _write_text(file)
        except BlockingIOError as error:
            self.release()
            raise StoreLocked(str(path.parent)) from error
        except BaseException:
            self.release()
            raise

    def covers(self, folder: Path) -> bool:
        """Return True for the store folder, also as a symbolic link or below another mount."""
        return os.path.samestat(os.fstat(self._fds[0]), folder.stat())

    def release(self) -> None:
        """Release the lock."""
        while self._fds:
            os.close(self._fds.pop())


class PathLock:
    """A lock on an existing folder or file alone, which ends with the process.

    Raises StoreLocked when another holder exists. Programs of RocketMQ do not see the lock.
    """

    def __init__(self, path: Path) -> None:
        # NFS locks a file only through a descriptor that may write.
        access = os.O_RDONLY if path.is_dir() else os.O_RDWR
        self._fd = os.open(path, access | os.O_CLOEXEC)
        try:
            _lock_alone(self._fd)
            _mark(self._fd)
        except BlockingIOError as error:
            self.release()
            raise StoreLocked(str(path)) from error
        except BaseException:
            self.release()
            raise

    def covers(self, folder: Path) -> bool:
        """Return True for the locked folder, also as a symbolic link or below another mount."""
        return os.path.samestat(os.fstat(self._fd), folder.stat())

    def release(self) -> None:
        """Release the lock."""
        os.close(self._fd)


def is_locked(path: Path) -> bool:
    """Return True when a process holds the store's lock file, or a PathLock on the path.

    The lock is tested, not taken: no start of a broker fails because of the test.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        request = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        code = getattr(fcntl, "F_OFD_GETLK", fcntl.F_GETLK)
        kind: int = FLOCK.unpack(fcntl.fcntl(fd, code, request))[0]
    except OSError:
        return False
    finally:
        os.close(fd)
    return kind != fcntl.F_UNLCK


def _mark(fd: int) -> None:
    """Share a lock on byte 0, which is_locked() sees; a lock of flock() cannot be tested.

    Where a file system refuses the mark, the lock is complete without it.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 1, 0))


def _lock_alone(fd: int) -> None:
    """Raise BlockingIOError when another holder has the folder or file locked.

    Network file systems may refuse locks on folders; there the lock on a file must suffice.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP):
            raise


def _write_text(file: int) -> None:
    """Write RocketMQ's content; a full disk is no error, since only the lock counts."""
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, LOCK_TEXT, 0)
    except OSError as error:
        if not is_disk_full(error):
            raise


def _lock_first_byte(fd: int) -> None:
    """Exclude other processes and, unlike plain POSIX locks, a second store in this process.

    Open-file-description locks conflict with the POSIX lock that Java takes.
    """
    if sys.platform == "linux":
        request = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, request)
    else:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
