"""The Unix socket of the Spark service: one service per socket path, for one user."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from core_broker.errors import GantryError

SOCKET_MODE: Final = 0o600
#: Time for an ending service to release the path, seconds.
LOCK_TIMEOUT_S: Final = 15.0
BACKLOG: Final = 16
_POLL_S: Final = 0.1


class ServiceRunsError(GantryError):
    """Another service has the socket."""


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """Listen at `path` for a `with` block, with SOCKET_MODE.

    A file lock beside the socket is held until the process ends, so a second service starts after
    the Spark session of the first has ended. Raises ServiceRunsError when the lock is not released.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _lock(path.with_name(f"{path.name}.lock"))
    path.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    listener = socket.socket(socket.AF_UNIX)
    try:
        os.fchmod(listener.fileno(), SOCKET_MODE)  # Linux: bind() creates the file with this mode
        # A path through the descriptor: socket addresses have 107 bytes at most.
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
        listener.listen(BACKLOG)
        yield listener
    finally:
        with suppress(OSError):
            path.unlink()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        listener.close()
        os.close(folder)


def _lock(path: Path) -> None:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, SOCKET_MODE)
    deadline_s = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline_s:
                os.close(handle)
                raise ServiceRunsError(f"Another Spark service holds {path}.") from None
            time.sleep(_POLL_S)
        else:
            return
