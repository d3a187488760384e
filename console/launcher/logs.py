"""Output of one program: a bounded log file, the last lines, and relayed important lines."""

import re
from collections import deque
from collections.abc import Callable
from pathlib import Path

LOG_BYTES_MAX = 10 * 1024 * 1024
LOG_FILES_OLD = 3  # rotated files, name.log.1 … name.log.3
LINE_BYTES_MAX = 8 * 1024  # a longer line is split
LAST_LINES = 12


class ProgramLog:
    """Receives a program's output in chunks of any size; a file never exceeds LOG_BYTES_MAX.

    `path` None writes no file: the output of the set-up step contains a password.
    """

    def __init__(
        self, path: Path | None, relay: Callable[[str], None], *, important: re.Pattern[str]
    ) -> None:
        self._path = path
        self._relay = relay
        self._important = important
        self._file = None if path is None else path.open("ab", buffering=0)
        self._size = 0 if path is None else path.stat().st_size
        self._partial = b""
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._awaited: tuple[re.Pattern[str], Callable[[], None]] | None = None

    @property
    def last_lines(self) -> list[str]:
        return list(self._last)

    def begin(self, *, awaited: re.Pattern[str] | None, on_seen: Callable[[], None]) -> None:
        """Reset for a new run of the program; `on_seen` is called at the first line that matches
        `awaited`.
        """
        self._last.clear()
        self._partial = b""
        self._awaited = None if awaited is None else (awaited, on_seen)

    def feed(self, data: bytes) -> None:
        *lines, rest = (self._partial + data).split(b"\n")
        while len(rest) > LINE_BYTES_MAX:
            lines.append(rest[:LINE_BYTES_MAX])
            rest = rest[LINE_BYTES_MAX:]
        self._partial = rest
        for line in lines:
            self._take(line)

    def end(self) -> None:
        """Process an incomplete last line after the program's exit."""
        if self._partial:
            self._take(self._partial)
            self._partial = b""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _take(self, raw: bytes) -> None:
        self._write(raw + b"\n")
        line = raw.decode("utf-8", "replace").rstrip()
        if not line:
            return
        self._last.append(line)
        if self._awaited and self._awaited[0].search(line):
            self._awaited[1]()
            self._awaited = None
        if self._important.search(line):
            self._relay(line)

    def _write(self, data: bytes) -> None:
        if self._file is None or self._path is None:
            return
        if self._size + len(data) > LOG_BYTES_MAX:
            self._file.close()
            rotate(self._path)
            self._file = self._path.open("ab", buffering=0)
            self._size = 0
        try:
            self._file.write(data)
        except OSError:
            return  # a full disk must not stop the programs; the terminal still gets the last lines
        self._size += len(data)


def rotate(path: Path) -> None:
    """Rename name.log to name.log.1 and so on; the oldest file is overwritten."""
    for number in range(LOG_FILES_OLD, 0, -1):
        older = path.with_name(f"{path.name}.{number - 1}") if number > 1 else path
        if older.exists():
            older.replace(path.with_name(f"{path.name}.{number}"))
