"""The commit log: every message of the broker in the order of arrival.

    record | record | … | int bytes left, int 0xCBD43194, unspecified bytes | end of segment

A record never ends within the last 8 bytes of a segment, so that the blank record always fits; at
a blank record a reader continues in the next segment. Compatible with RocketMQ's CommitLog.

Appended bytes are staged in memory and written once per event-loop iteration; readers see written
bytes only. The log has four offsets, which never decrease while the broker runs:

    min_offset ≤ flushed ≤ written ≤ position
      oldest      on disk   in file   next record goes here
"""

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from core_broker.message.record_layout import BLANK_BYTES
from core_broker.store.entry_log import EntryLog
from core_broker.store.files import Buffer, Files
from core_broker.store.framing import ENTRIES, RECORDS, Framing
from core_broker.store.log_maps import LogMaps
from core_broker.store.segments import (
    OpenFiles,
    Segment,
    advice_on_cut_segment,
    create_segment,
    list_segments,
    open_segment,
    segment_path,
    write_again,
)

if TYPE_CHECKING:
    from core_broker.kernel.mapping import Mapping

#: Preallocated space ahead of the writer, bytes: as much as was appended since the start, within
#: these bounds.
FILL_AHEAD_MIN = 4 * 1024 * 1024
FILL_AHEAD_MAX = 64 * 1024 * 1024
#: The next segment is filled while the active one is written, since writers of zeros and of
#: messages block each other on one file. Filling starts behind 1/NEXT_AFTER of the active segment.
NEXT_AFTER = 4
#: Speed of filling relative to appending; step of filling, bytes: each step re-acquires the GIL.
NEXT_PACE = 2
NEXT_STEP = 16 * 1024 * 1024
#: Mappings of removed segments per tick; the unmapping of a segment takes under a millisecond.
UNMAPPED_PER_TICK = 2


class CommitLog:
    """The segments of the log, its staging buffer and its offsets. Event loop only."""

    def __init__(
        self,
        files: Files,
        folder: Path,
        segment_size: int,
        open_files: OpenFiles,
        entries: EntryLog | None = None,
    ) -> None:
        #: The entries of DLedger that hold the records; None for records without entries.
        self.entries = entries
        self.framing: Framing = RECORDS if entries is None else ENTRIES
        self.folder = folder
        self.segment_size = segment_size
        self.min_offset = 0
        self.flushed = 0
        self.written = 0
        self.position = 0
        #: Offset of the newest written record, -1 without records.
        self.last_record = -1
        self._files = files
        self._open_files = open_files
        self._paths: dict[int, Path] = {}
        #: Segments with unflushed bytes; the active segment comes last.
        self._writing: list[Segment] = []
        #: Empty segments for later use.
        self._spare: deque[Segment] = deque()
        self._staged: list[Buffer] = []
        self._staged_from, self._newest = 0, -1
        #: Segments ended in this event-loop iteration, with start and bytes of their last write.
        self._rolled: list[tuple[Segment, int, list[Buffer]]] = []
        self._opened_at = self._warmed_at = 0
        #: Range to write again, from `end_at` to `prepare`; segment, from `prepare` to `activate`.
        self._to_sync: tuple[int, int] | None = None
        self._prepared: Segment | None = None
        self._maps = LogMaps(open_files, segment_size)

    # -- life --

    def load(self, *, mends_last: bool = False) -> None:
        """Find the segments; the end is unknown until `open_at`.

        With `mends_last` the last segment may be truncated.
        """
        self._files.make_dir(self.folder)
        starts = list_segments(
            self._files,
            self.folder,
            self.segment_size,
            "mappedFileSizeCommitLog",
            mends_last=mends_last,
            advice=advice_on_cut_segment(self.folder, self.segment_size),
        )
        self._paths = {start: segment_path(self.folder, start) for start in starts}
        self.min_offset = starts[0] if starts else 0
        self.written = self.loaded_end

    @property
    def is_empty(self) -> bool:
        """True without any segment."""
        return not self._paths

    @property
    def loaded_end(self) -> int:
        """The end of the last segment, including its unused part."""
        return max(self._paths) + self.segment_size if self._paths else self.min_offset

    def open_at(
        self, end: int, *, last_record: int = -1, synced_until: int, must_cut: bool
    ) -> None:
        """Open the log for appending: `end_at`, then `prepare`, then `activate`."""
        self.end_at(end, last_record=last_record, synced_until=synced_until, must_cut=must_cut)
        self.prepare()
        self.activate()

    def end_at(self, end: int, *, last_record: int = -1, synced_until: int, must_cut: bool) -> None:
        """Set the end of the log, behind the last record; from now on the log can be read.

        With `must_cut`, after a crash, `prepare` zeroes the bytes behind `end`, and writes the
        bytes from `synced_until` on again.
        """
        start = end - end % self.segment_size
        for later in sorted((each for each in self._paths if each > start), reverse=True):
            self._open_files.forget(self._paths[later])
            self._files.remove(self._paths.pop(later))
        self.min_offset = min(self._paths, default=start)
        self.flushed = self.written = self.position = self._staged_from = end
        self._opened_at = self._warmed_at = end
        self.last_record = self._newest = last_record
        self._to_sync = (synced_until, end) if must_cut else None

    def prepare(self) -> None:
        """Prepare the active segment; afterwards all bytes before the end are on the disk.

        Waits for the disk, and may run off the loop. Raises OSError on a full disk, and may be
        called again; until `activate`, the log is read-only.
        """
        if self._to_sync is not None:
            write_again(self._files, self.folder, self.segment_size, *self._to_sync)
        start = self.written - self.written % self.segment_size
        if start in self._paths:
            segment = open_segment(self._files, self.folder, start, self.segment_size)
            segment.filled = self.written
        else:
            segment = create_segment(self._files, self.folder, start, self.segment_size)
        try:
            if self._to_sync is not None:
                segment.cut(self.written)
            self._files.sync_dir(self.folder)
        except OSError:
            segment.file.close()
            raise
        segment.is_name_synced = True
        self._prepared = segment

    def activate(self) -> None:
        """Start to append to the segment of `prepare`."""
        assert self._prepared is not None
        segment, self._prepared = self._prepared, None
        self._open_files.know(segment.path)
        self._paths[segment.start] = segment.path
        self._writing = [segment]

    def close(self) -> None:
        """Close the files; the caller has flushed all data to keep."""
        self._maps.close()
        for segment in (*self._writing, *self._spare):
            segment.file.close()
        self._writing.clear()
        self._spare.clear()

    # -- append --

    @property
    def active(self) -> Segment:
        """The segment of the next record."""
        return self._writing[-1]

    def fits(self, size: int) -> bool:
        """Return whether records of `size` bytes in total fit into the active segment."""
        return self.position + size + BLANK_BYTES <= self._writing[-1].end

    def stage(self, record: bytes) -> None:
        """Append one record that fits and is encoded for `position`."""
        self._staged.append(record)
        self._newest = self.position
        self.position += len(record)

    def stage_many(self, records: Buffer, newest: int) -> None:
        """Append records that fit and are encoded for `position`; the last begins at `newest`.

        The caller does not change `records` before `write_staged` or `discard_staged`.
        """
        self._staged.append(records)
        self._newest = newest
        self.position += len(records)

    def roll(self, blank: Buffer | None = None) -> None:
        """End the active segment with a blank record, or a given one, and go to the next."""
        following = self._spare.popleft() if self._spare else self._create(self.active.end)
        if blank is None:
            blank = self.framing.blank(self.active.end - self.position)
        self._staged.append(blank)
        self._rolled.append((self.active, self._staged_from, self._staged))
        self._writing.append(following)
        self._staged = []
        self.position = self._staged_from = following.start

    def reserve_staged(self) -> None:
        """Reserve disk space for the staged bytes; raises OSError without free space."""
        for segment, _, _ in self._rolled:
            segment.reserve(segment.end)
        self.active.reserve(self.position)

    def write_staged(self) -> None:
        """Write the staged bytes; `reserve_staged` must have succeeded.

        After OSError the bytes behind `written` are undefined until a restart recovers the log.
        """
        for segment, start, records in self._rolled:
            segment.write(_joined(records), start)
            segment.seal()
        if self._staged:
            self.active.write(_joined(self._staged), self._staged_from)
        for segment, _, _ in self._rolled:
            self._paths[segment.end] = segment_path(self.folder, segment.end)
        self._rolled.clear()
        self._staged.clear()
        if self.entries is not None:
            self.entries.write_staged()
        self.written = self._staged_from = self.position
        self.last_record = self._newest

    def discard_staged(self) -> None:
        """Discard the staged bytes."""
        for _ in self._rolled:
            self._spare.appendleft(self._writing.pop())
        self._rolled.clear()
        self._staged.clear()
        if self.entries is not None:
            self.entries.discard_staged()
        self.position = self._staged_from = self.written
        self._newest = self.last_record

    def begin_at(self, start: int) -> None:
        """Let a log without a byte begin with the segment of `start`; OSError changes nothing."""
        present = (*self._writing, *self._spare)
        prepared = next((each for each in present if each.start == start), None)
        segment = prepared or self._create(start)
        for unused in (each for each in present if each is not prepared):
            unused.seal()  # ends the preallocation
            unused.file.close()
            self._maps.forget(unused.start)
            self._open_files.forget(unused.path)
            self._files.remove(unused.path)
        self._spare.clear()
        self._writing, self._paths = [segment], {start: segment.path}
        self.min_offset = self.flushed = self.written = self.position = start
        self._staged_from = self._opened_at = self._warmed_at = start

    def _create(self, start: int) -> Segment:
        segment = create_segment(self._files, self.folder, start, self.segment_size)
        self._open_files.know(segment.path)
        return segment

    # -- space ahead of the writer --

    def to_fill(self) -> tuple[Segment, int] | None:
        """Return a segment to preallocate and the target end of its space; None without need.

        Creates the next segment when filling must start; raises OSError when that fails.
        """
        active = self.active
        appended = self.written - self._opened_at
        ahead = min(max(appended, FILL_AHEAD_MIN), FILL_AHEAD_MAX)
        wanted = self.position + ahead
        if active.filled < min(wanted - ahead // 2, active.end):
            return active, min(wanted, active.end)
        begun = self.position - active.start - self.segment_size // NEXT_AFTER
        in_next = max(wanted - active.end, min(NEXT_PACE * begun, NEXT_PACE * appended))
        if in_next <= 0:
            return None
        if not self._spare:
            self._spare.append(self._create(active.end))
        following = self._spare[0]
        wanted = min(following.start + in_next, following.end)
        is_much = wanted - following.filled >= NEXT_STEP or wanted == following.end
        return (following, wanted) if is_much and following.filled < wanted else None

    def to_warm(self) -> tuple[Segment, int, int] | None:
        """Return a range ahead of the writer to read into the page cache, at intervals; else None.

        The range is segment, first byte within the segment, and size. The kernel may have evicted
        zeros written long ago; a partial write to an evicted page waits until the page is read.
        """
        within = self.position - self.active.start
        if not self.active.has_zeros or abs(self.position - self._warmed_at) < FILL_AHEAD_MAX // 2:
            return None
        self._warmed_at = self.position
        return self.active, within, min(FILL_AHEAD_MAX, self.segment_size - within)

    # -- flush --

    def unflushed(self) -> list[Segment]:
        """Return the segments to sync for a flush up to `written`."""
        return [each for each in self._writing if each.start <= self.written]

    def mark_flushed(self, end: int) -> None:
        """Record that all bytes before `end` are on the disk."""
        self.flushed = max(self.flushed, end)
        while self._writing[0].end <= self.flushed and len(self._writing) > 1:
            self._writing.pop(0).file.close()

    # -- read --

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of one segment; fewer than `size` at the end of segment or log."""
        return bytes(self.read_span(offset, size))

    def read_span(self, offset: int, size: int) -> bytes | bytearray:
        """Return the bytes as `read` does, without copying them."""
        size = min(size, self.written - offset)
        within = offset % self.segment_size
        path = self._paths.get(offset - within)
        if path is None or size <= 0 or offset < 0:
            return b""
        return self._open_files.read(path, min(size, self.segment_size - within), within)

    def mapping(self, offset: int) -> "Mapping | None":
        """Return a mapping that contains an offset, valid for this event-loop iteration.

        A record at the offset may extend beyond the mapping.
        """
        start = offset - offset % self.segment_size
        path = self._paths.get(start)
        return self._maps.get(path, start, offset) if path is not None else None

    def next_data(self, offset: int) -> int:
        """Return the next offset in the segment that may hold non-zero bytes, or the segment's end.

        For recovery: the call may wait for the disk.
        """
        within = offset % self.segment_size
        path = self._paths.get(offset - within)
        if path is None:
            return offset
        return offset - within + min(self._open_files.next_data(path, within), self.segment_size)

    def segment_end(self, offset: int) -> int:
        """Return the end of the segment that contains an offset."""
        return offset - offset % self.segment_size + self.segment_size

    def path_of(self, offset: int) -> Path:
        """Return the path of the segment that contains an offset, for error messages."""
        return segment_path(self.folder, offset - offset % self.segment_size)

    # -- retention --

    def removable(self) -> list[Path]:
        """Return the segments that may be deleted, oldest first: flushed ones except the last."""
        last = max(self._paths, default=0)
        return [
            self._paths[start]
            for start in sorted(self._paths)
            if start != last and start + self.segment_size <= self.flushed
        ]

    def let_go(self) -> bool:
        """Unmap a few pieces of forgotten segments; return True when none is left.

        Their files must not be removed earlier: the munmap() of the last piece of a removed file
        waits until the operating system has freed all cached pages of the file.
        """
        return self._maps.let_go(UNMAPPED_PER_TICK)

    def forget_oldest(self) -> Path:
        """Remove the oldest segment from the log; the caller removes the file."""
        path = self._paths.pop(self.min_offset)
        self._maps.forget(self.min_offset)
        self._open_files.forget(path)
        self.min_offset = min(self._paths)
        return path


def _joined(parts: list[Buffer]) -> Buffer:
    """Join the parts; a single part is not copied."""
    return parts[0] if len(parts) == 1 else b"".join(parts)
