"""The audit file: lines are appended by an I/O thread, and full files are rotated.

    access.log     the newest lines
    access.log.1   … access.log.N, older files; the oldest is deleted

The event loop only queues lines. A line is lost only when the queue is full or the disk fails; lost
lines are counted, and the next written line reports their number.
"""

import logging
import os
from pathlib import Path

import msgspec

from core_broker.store.io_threads import SerialExecutor

log = logging.getLogger(__name__)

#: Maximum queued lines; further lines are dropped and counted.
QUEUED_LINES_MAX = 10_000


class AuditLog:
    """Appends lines to a file of `bytes_max` bytes, and keeps `files_max` older files.

    `write` is for the event loop. The file belongs to the executor's jobs.
    """

    def __init__(
        self, path: Path, bytes_max: int, files_max: int, executor: SerialExecutor
    ) -> None:
        self.path = path
        #: Lines that were not written.
        self.lost = 0
        self._bytes_max = bytes_max
        self._files_max = files_max
        self._executor = executor
        self._lines: list[bytes] = []
        self._unreported = 0
        self._is_writing = False
        self._has_failed = False

    def write(self, line: bytes) -> None:
        """Queue a line."""
        if len(self._lines) >= QUEUED_LINES_MAX:
            self._lose(1)
            return
        self._lines.append(line)
        if not self._is_writing:
            self._submit()

    def _submit(self) -> None:
        lines, self._lines = self._lines, []
        reported, self._unreported = self._unreported, 0
        report = msgspec.json.encode({"event": "lost", "lines": reported}) + b"\n"
        content = b"".join([*lines, report] if reported else lines)
        self._is_writing = True

        def written(error: Exception | None) -> None:
            self._is_writing = False
            if error is not None:
                self._lose(len(lines))
                self._unreported += reported
                if not self._has_failed:
                    log.error("%s cannot be written: %s; see accessLogPath", self.path, error)
            self._has_failed = error is not None
            if self._lines:
                self._submit()

        self._executor.submit(lambda: self._append(content), written)

    def _lose(self, count: int) -> None:
        self.lost += count
        self._unreported += count

    def _append(self, content: bytes) -> None:
        """Append lines to the file; runs in the executor."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self._size() and self._size() + len(content) > self._bytes_max:
            self._rotate()
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(content)

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def _rotate(self) -> None:
        for number in range(self._files_max, 0, -1):
            newer = self._numbered(number - 1) if number > 1 else self.path
            if newer.exists():
                newer.replace(self._numbered(number))
        if not self._files_max:
            self.path.unlink()

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")
