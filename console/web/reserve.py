"""Reserved space for the side files of SQLite: a program can open the database on a full disk.

Who opens a database in WAL mode makes the write-ahead log and its index. On a full disk both fail,
and nothing can be read. The file `NAME-reserve` beside the database occupies RESERVE_BYTES. A
program that starts on a full disk deletes the file; a program that starts with free space makes it
again. The console then keeps the index (`wal_index`).
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from console.frame.own_disks import SIDE_FILES_BYTES, database_disk, database_file

#: Size of the reserve, bytes: log and index of several programs, and some sign-ins.
RESERVE_BYTES: Final = 4 * 1024 * 1024


def prepare_space() -> None:
    """Delete the reserve on a full disk, make it on another; nothing without a file of SQLite."""
    path, disk = database_file(), database_disk()
    if path is None or disk is None or not path.is_file():
        return
    reserve = path.with_name(f"{path.name}-reserve")
    with suppress(OSError):  # the program starts without a reserve
        if disk.free_bytes < SIDE_FILES_BYTES:
            reserve.unlink(missing_ok=True)
        elif disk.free_after(RESERVE_BYTES).is_full or _size(reserve) == RESERVE_BYTES:
            return
        else:
            _write(reserve)


def _write(reserve: Path) -> None:
    """Write random bytes, which no file system compresses."""
    try:
        reserve.write_bytes(os.urandom(RESERVE_BYTES))
    except OSError:
        reserve.unlink(missing_ok=True)
        raise


def _size(reserve: Path) -> int:
    return reserve.stat().st_size if reserve.exists() else 0
