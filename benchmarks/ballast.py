"""Free memory filled with page cache: the state of a machine on which a broker has run for a while.

A virtual machine may give free memory back to its host (free page reporting). Who then writes a
page of it first waits for the host: 10 µs a page of 4 KiB were seen, where a page that the system
takes from its oldest page cache costs 0.8 µs. A log that grows by a gigabyte a second measures the
host then. A broker that has been up for some hours has no free memory left, so before each
measurement a hole of a file is read until the system takes pages back by itself; no disk does
anything for that.
"""

import os
from pathlib import Path
from typing import Final

MEMINFO: Final = Path("/proc/meminfo")
PAGE_BYTES: Final = 4096
PIECE_BYTES: Final = 4 * 1024**2
#: Free memory is looked at after so many pieces.
STEP_PIECES: Final = 64
#: The file is this many times the memory, so that what is read again was taken back long ago.
FILE_SHARE: Final = 2


class Ballast:
    """One sparse file in a folder; whoever makes it closes it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ballast"
        self._total_bytes = memory_bytes("MemTotal")
        self._file_bytes = max(self._total_bytes * FILE_SHARE // PIECE_BYTES, 1) * PIECE_BYTES
        self._buffer = bytearray(PIECE_BYTES)
        self._offset = 0
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.ftruncate(self._fd, self._file_bytes)

    def fill(self) -> int:
        """Read until free memory hardly shrinks any more; answers how many bytes that took.

        It ends after as many bytes as the machine has, whatever that says of its memory.
        """
        filled = 0
        free = memory_bytes("MemFree")
        while filled < self._total_bytes:
            for _ in range(STEP_PIECES):
                filled += os.preadv(self._fd, [self._buffer], self._offset)
                self._offset = (self._offset + PIECE_BYTES) % self._file_bytes
            before, free = free, memory_bytes("MemFree")
            if before - free < STEP_PIECES * PIECE_BYTES // 2:
                break
        return filled

    def close(self) -> None:
        """Give the memory back."""
        os.close(self._fd)
        self.path.unlink(missing_ok=True)


def memory_bytes(name: str) -> int:
    """One of the figures of /proc/meminfo; KeyError where there is none of that name."""
    figures = dict(line.split(":") for line in MEMINFO.read_text().splitlines())
    return int(figures[name].split()[0]) * 1024
