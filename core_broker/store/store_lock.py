"""The lock on a store folder: byte 0 of the file `lock`, as RocketMQ locks it."""

import fcntl
import os
import struct
import sys
from pathlib import Path
from typing import Protocol

from core_broker.errors import StoreLocked

#: RocketMQ's content of the file.
LOCK_TEXT = b"lock"
#: `struct flock` of 64-bit Linux: type, whence, start, length, pid.
FLOCK = struct.Struct("hhqqi0q")


class Lock(Protocol):
    """A held lock on the store folder."""

    def release(self) -> None:
        """Release the lock."""


class DiskLock:
    """A lock that ends with the process. Raises StoreLocked when another holder exists."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            _lock_first_byte(self._fd)
        except OSError as error:
            self.release()
            raise StoreLocked(str(path.parent)) from error
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, LOCK_TEXT, 0)

    def release(self) -> None:
        """Release the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _lock_first_byte(fd: int) -> None:
    """Exclude other processes and, unlike plain POSIX locks, a second store in this process.

    Open-file-description locks conflict with the POSIX lock that Java takes.
    """
    if sys.platform == "linux":
        request = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, request)
    else:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
