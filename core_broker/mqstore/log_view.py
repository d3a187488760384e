"""The commit log of a folder: reading it, and walking over all records whatever lies between."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path

from core_broker.mqstore.folder import DataFile, next_data, read_range
from core_broker.store.log_scan import Flaw, LogRecord, LogScan, find_record
from core_broker.store.segments import segment_path

#: Called with how many bytes of the log are done.
OnProgress = Callable[[int], None]
#: Called with where damage begins and ends, and what is wrong.
OnDamage = Callable[[int, int, str], None]
#: Progress is told each time so many bytes were read.
PROGRESS_BYTES = 8 * 1024 * 1024


class LogView:
    """Files of the log that have the right size, as the scan of the store wants them."""

    def __init__(self, folder: Path, segments: list[DataFile], segment_size: int) -> None:
        self.folder = folder
        self.segment_size = segment_size
        self._paths = {each.start: each.path for each in segments}
        #: Segments that cannot be read, with the reason.
        self.unreadable: dict[int, str] = {}

    @property
    def min_offset(self) -> int:
        """Where the oldest segment begins."""
        return min(self._paths, default=0)

    @property
    def end(self) -> int:
        """The end of the last segment, however much of it holds records."""
        return max(self._paths) + self.segment_size if self._paths else 0

    @property
    def starts(self) -> list[int]:
        """Where the segments begin."""
        return sorted(self._paths)

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield where segments without a hole between them begin and end."""
        first = None
        for start in self.starts:
            if first is None:
                first = start
            if start + self.segment_size not in self._paths:
                yield first, start + self.segment_size
                first = None

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of one segment; none where it is missing or cannot be read."""
        within = offset % self.segment_size
        path = self._paths.get(offset - within)
        if path is None or size <= 0 or offset < 0:
            return b""
        try:
            return read_range(path, within, min(size, self.segment_size - within))
        except OSError as error:
            self.unreadable[offset - within] = error.strerror or str(error)
            return b""

    def next_data(self, offset: int) -> int:
        """Return from where on the segment of an offset may hold more than zeros, or its end."""
        within = offset % self.segment_size
        path = self._paths.get(offset - within)
        if path is None:
            return offset
        try:
            return offset - within + min(next_data(path, within), self.segment_size)
        except OSError:
            return offset  # `read` says why

    def place(self, offset: int) -> tuple[Path, int]:
        """Return the file that holds an offset of the log, and the offset within it."""
        within = offset % self.segment_size
        return segment_path(self.folder, offset - within), within


class LogWalk:
    """All records of a log in order; `end` is behind the last one when the walk is over."""

    def __init__(
        self, log: LogView, on_damage: OnDamage, on_progress: OnProgress, *, start: int = 0
    ) -> None:
        self.end = log.min_offset
        self._log = log
        self._on_damage = on_damage
        self._on_progress = on_progress
        self._start = start

    def __iter__(self) -> Iterator[LogRecord]:
        done = 0
        for start, end in self._log.runs():
            at: int | None = max(start, self._start)
            while at is not None and at < end:
                scan = LogScan(self._log, at, check_crc=True)
                told = at
                for record in scan:
                    yield record
                    if record.offset - told >= PROGRESS_BYTES:
                        told = record.offset
                        self._on_progress(done + told - start)
                self.end = scan.end
                at = self._behind(scan, end) if scan.end < end else None
            done += end - start
            self._on_progress(done)

    def _behind(self, scan: LogScan, end: int) -> int | None:
        """Return where records go on behind what stopped a scan, and report the damage."""
        segment = scan.end - scan.end % self._log.segment_size
        reason = self._log.unreadable.get(segment)
        if reason is not None:
            behind = segment + self._log.segment_size
            self._on_damage(scan.end, behind, f"the file cannot be read: {reason}")
            return behind
        flaw = scan.flaw
        following = find_record(self._log, scan.end + 1, end)
        if flaw is None and following is None:
            return None
        if flaw is None:
            flaw = Flaw(scan.end, f"there is nothing, but a record lies at {following} again")
        self._on_damage(scan.end, end if following is None else following, flaw.reason)
        return following


class Damage:
    """The damaged ranges of the log; what points there is no problem of its own."""

    #: Beyond so many, the last one grows.
    RANGES_MAX = 10_000

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> None:
        """Note a range; they come in the order of the log."""
        if len(self._starts) < self.RANGES_MAX:
            self._starts.append(start)
            self._ends.append(end)
        else:
            self._ends[-1] = end

    def __contains__(self, offset: int) -> bool:
        index = bisect_right(self._starts, offset) - 1
        return index >= 0 and offset < self._ends[index]
