"""A fixed range of the commit log, for scans in an I/O thread."""

from pathlib import Path

from core_broker.store.files import File, Files
from core_broker.store.framing import RECORDS, Framing
from core_broker.store.segments import segment_path


class LogSnapshot:
    """The log from `start` to `end`; a deleted segment reads as empty. One thread at a time."""

    def __init__(
        self,
        files: Files,
        folder: Path,
        segment_size: int,
        start: int,
        end: int,
        framing: Framing = RECORDS,
    ) -> None:
        self.segment_size = segment_size
        self.framing = framing
        self.start = start
        self.end = end
        self._files = files
        self._folder = folder
        self._file: File | None = None
        self._file_start = -1

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of one segment; fewer than `size` at the end of segment or range."""
        within = offset % self.segment_size
        size = min(size, self.end - offset, self.segment_size - within)
        if size <= 0 or offset < self.start:
            return b""
        file = self._segment(offset - within)
        return file.pread(size, within) if file is not None else b""

    def next_data(self, offset: int) -> int:
        """Return the next offset in the segment that may hold non-zero bytes, or its end."""
        within = offset % self.segment_size
        file = self._segment(offset - within)
        if file is None:
            return offset
        return offset - within + min(file.next_data(within), self.segment_size)

    def close(self) -> None:
        """Close the open segment."""
        if self._file is not None:
            self._file.close()
        self._file, self._file_start = None, -1

    def _segment(self, start: int) -> File | None:
        if start != self._file_start:
            self.close()
            try:
                self._file = self._files.open(segment_path(self._folder, start))
            except FileNotFoundError:
                return None
            self._file_start = start
        return self._file
