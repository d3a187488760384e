"""The commit log of a folder: reads, and a walk over all records that steps over damage."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path

from core_broker.mqstore.folder import DataFile, next_data, read_range
from core_broker.store.framing import ENTRIES, RECORDS, Framing, parse_entry_header
from core_broker.store.log_scan import Flaw, LogRecord, LogScan, find_record
from core_broker.store.segments import segment_path

#: Called with the number of bytes read so far.
OnProgress = Callable[[int], None]
#: Called with the number of bytes of the log read so far, and the total.
Progress = Callable[[int, int], None]
#: Called with begin and end of a damaged range of the log, and the reason.
OnDamage = Callable[[int, int, str], None]
#: Interval between two progress calls, bytes.
PROGRESS_BYTES = 8 * 1024 * 1024


def no_progress(done: int, total: int) -> None:
    """Ignore the progress."""


class LogView:
    """Segments of equal size as a log source for `LogScan` and `find_record`."""

    def __init__(self, folder: Path, segments: list[DataFile], segment_size: int) -> None:
        self.folder = folder
        self.segment_size = segment_size
        self._paths = {segment.start: segment.path for segment in segments}
        #: Reason of each unreadable segment, by start offset.
        self.unreadable: dict[int, str] = {}
        #: Records, or entries of DLedger when the log begins with one.
        self.framing: Framing = RECORDS
        start = self.min_offset
        if parse_entry_header(self.read(start, ENTRIES.header_bytes), 0, start) is not None:
            self.framing = ENTRIES

    @property
    def min_offset(self) -> int:
        """Start offset of the oldest segment."""
        return min(self._paths, default=0)

    @property
    def end(self) -> int:
        """End offset of the last segment, including the part after the last record."""
        return max(self._paths) + self.segment_size if self._paths else 0

    @property
    def starts(self) -> list[int]:
        """Start offsets of the segments, sorted."""
        return sorted(self._paths)

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield start and end of each range of adjacent segments."""
        first = None
        for start in self.starts:
            if first is None:
                first = start
            if start + self.segment_size not in self._paths:
                yield first, start + self.segment_size
                first = None

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of one segment; no bytes for a missing or unreadable segment."""
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
        """Return the first offset that can hold other data than zeros, or the segment's end."""
        within = offset % self.segment_size
        path = self._paths.get(offset - within)
        if path is None:
            return offset
        try:
            return offset - within + min(next_data(path, within), self.segment_size)
        except OSError:
            return offset  # `read` records the reason

    def locate(self, offset: int) -> tuple[Path, int]:
        """Return the path of an offset's segment, and the offset within the segment."""
        within = offset % self.segment_size
        return segment_path(self.folder, offset - within), within


class LogWalk:
    """Iterates over all records of a log in order; afterwards `end` is the last record's end."""

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
                reported = at
                for record in scan:
                    yield record
                    if record.offset - reported >= PROGRESS_BYTES:
                        reported = record.offset
                        self._on_progress(done + reported - start)
                self.end = scan.end
                at = self._skip_damage(scan, end) if scan.end < end else None
            done += end - start
            self._on_progress(done)

    def _skip_damage(self, scan: LogScan, end: int) -> int | None:
        """Report the damage at a scan's end; return the next record's offset, None at the end."""
        segment = scan.end - scan.end % self._log.segment_size
        reason = self._log.unreadable.get(segment)
        if reason is not None:
            next_segment = segment + self._log.segment_size
            self._on_damage(scan.end, next_segment, f"the file cannot be read: {reason}")
            return next_segment
        flaw = scan.flaw
        following = find_record(self._log, scan.end + 1, end)
        if flaw is None and following is None:
            return None
        if flaw is None:
            flaw = Flaw(scan.end, f"no record here, but a record follows at {following}")
        self._on_damage(scan.end, end if following is None else following, flaw.reason)
        return following


class Damage:
    """The damaged ranges of the log. References into a damaged range are not reported again."""

    #: Maximum number of ranges; later damage extends the last range.
    RANGES_MAX = 10_000

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> None:
        """Add a range; ranges must be added in the order of the log."""
        if len(self._starts) < self.RANGES_MAX:
            self._starts.append(start)
            self._ends.append(end)
        else:
            self._ends[-1] = end

    def __contains__(self, offset: int) -> bool:
        index = bisect_right(self._starts, offset) - 1
        return index >= 0 and offset < self._ends[index]
