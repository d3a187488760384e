"""Replaces a file as a whole: a crash or a power cut leaves the old or the new content.

The functions block, so an event loop calls them in a thread. The store has its own functions, on
top of `store/files.py`.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

#: Maximum parts of one system call: IOV_MAX of Linux.
PARTS_PER_WRITE_MAX = 1_024
_OWNER_ONLY = 0o600


def replace_file(
    path: Path,
    parts: Sequence[bytes],
    before_rename: Callable[[], None] | None = None,
    *,
    is_private: bool = False,
) -> None:
    """Replace a file by the joined `parts`, without a copy, with the GIL released.

    Writes and syncs a .tmp file beside the file, renames the .tmp file and syncs the folder, which
    is created when missing. Only the owner can read a private file. `before_rename` runs when the
    .tmp file is on disk. Raises OSError; the old content stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".tmp")
    try:
        with fresh.open("wb", buffering=0) as file:
            if is_private:
                os.fchmod(file.fileno(), _OWNER_ONLY)
            for start in range(0, len(parts), PARTS_PER_WRITE_MAX):
                _write(file.fileno(), parts[start : start + PARTS_PER_WRITE_MAX])
            os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):  # on a full disk, the unfinished file would need space
            fresh.unlink()
        raise
    if before_rename is not None:
        before_rename()
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _write(fd: int, parts: Sequence[bytes]) -> None:
    written = os.writev(fd, parts)
    missing = sum(map(len, parts)) - written
    if missing:
        # A short write: the disk is nearly full, or the file is very large.
        rest = memoryview(b"".join(parts))[written:]
        while rest:
            rest = rest[os.write(fd, rest) :]
