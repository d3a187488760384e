"""Segment files: one sequence of bytes, split into files of equal size.

    folder/00000000000000000000   bytes 0 … size-1
    folder/00000000001073741824   bytes size … 2*size-1

The name is the offset of the first byte, as 20 digits. Every file has its full size from the
start. Compatible with RocketMQ's MappedFileQueue.
"""

import logging
import shlex
import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from core_broker.errors import StoreCorrupt
from core_broker.store.cold_reads import ColdRead
from core_broker.store.files import Buffer, File, Files

if TYPE_CHECKING:
    from core_broker.kernel.mapping import Mapping

NAME_DIGITS = 20
#: Largest accepted offset; offsets are signed 64-bit numbers.
OFFSET_MAX = 2**62
#: Step of writing zeros ahead, bytes; a writer that catches up waits for one step.
ZERO_STEP = 1024 * 1024
#: Step of reserving blocks ahead, bytes. fallocate() writes nothing, so the steps are large: each
#: return re-acquires the GIL, and the event loop waits for it.
ALLOCATED_STEP = 16 * 1024 * 1024
_ZEROS = bytes(ZERO_STEP)
#: Chunk size for rewriting records after a crash, bytes.
COPY_BYTES = 1024 * 1024
#: Size of a block of a file system, bytes.
BLOCK_BYTES = 4096
#: First bytes of a segment, of which at least one is not zero in a used segment.
_HEAD_BYTES = 8

log = logging.getLogger(__name__)


def segment_path(folder: Path, start: int) -> Path:
    """Return the path of the segment that begins at `start`."""
    return folder / f"{start:0{NAME_DIGITS}d}"


def list_segments(
    files: Files,
    folder: Path,
    size: int,
    setting: str,
    *,
    mends_last: bool = False,
    advice: str = "",
) -> list[int]:
    """Return the start offsets of the segments of a folder, in order and without gaps.

    Removes an empty last file, which a crash may leave. With `mends_last` the last used file is
    extended to full size if truncated. Raises StoreCorrupt when the size of a file differs from
    `setting`, or when a file between two others is missing; for a short last file, the error ends
    with `advice`.
    """
    names = [each for each in files.names(folder) if len(each) == NAME_DIGITS and each.isdecimal()]
    if names and files.size(folder / names[-1]) == 0:
        files.remove(folder / names.pop())
    if mends_last:
        _mend_last(files, [folder / each for each in names], size)
    for name in names:
        actual = files.size(folder / name)
        if actual != size:
            reason = f"it has {actual} bytes, but {setting} is {size}"
            if advice and name == names[-1] and actual < size:
                reason += f"; {advice}"
            raise StoreCorrupt(str(folder / name), 0, reason)
    starts = [int(each) for each in names]
    if starts and starts[-1] > OFFSET_MAX:
        raise StoreCorrupt(str(folder / names[-1]), 0, "its name is too large for an offset")
    for index, start in enumerate(starts):
        expected = starts[0] + index * size
        if start != expected or start % size:
            reason = f"a segment beginning at {expected} is missing"
            raise StoreCorrupt(str(segment_path(folder, start)), 0, reason)
    return starts


def advice_on_cut_segment(folder: Path, size: int) -> str:
    """Return what to do about a last segment of a commit log that is too short."""
    command = f"mqstore verify DIR --store-path-commit-log {shlex.quote(str(folder))}"
    if folder.name == "commitlog":
        command = f"mqstore verify {shlex.quote(str(folder.parent))}"
    return (
        "if the file was cut, keep a copy of the store and run"
        f" {command} --mapped-file-size-commit-log {size}"
        " for the list of whole and lost records"
    )


def _mend_last(files: Files, paths: list[Path], size: int) -> None:
    for path in reversed(paths):
        file = files.open(path)
        try:
            if (actual := files.size(path)) < size:
                log.warning(
                    "%s was truncated to %d bytes and is extended to %d bytes", path, actual, size
                )
                file.truncate(size)
            if any(file.pread(_HEAD_BYTES, 0)):
                return
        finally:
            file.close()


class OpenFiles:
    """Open files by path, at most `limit`; the least recently used file is closed first.

    Event loop only. Other threads open their own files.
    """

    def __init__(self, files: Files, limit: int) -> None:
        #: True while the broker serves: a read raises ColdRead instead of waiting for the disk.
        self.is_serving = False
        self._files = files
        self._limit = limit
        self._open: OrderedDict[Path, File] = OrderedDict()
        #: Files opened before: reopening these files does not wait for the disk.
        self._known: set[Path] = set()

    def read(self, path: Path, size: int, offset: int) -> bytes | bytearray:
        """Read from a file; fewer than `size` bytes only at the end of the file."""
        if not self.is_serving:
            return self.get(path).pread(size, offset)
        if path in self._known:
            data = self.get(path).pread_now(size, offset)
            if data is not None:
                return data
        raise ColdRead(self._files, path, size, offset)

    def map(self, path: Path, offset: int, size: int, start: int) -> "Mapping | None":
        """Map a range of a file opened before; None where mapping fails."""
        return self.get(path).map(offset, size, start) if path in self._known else None

    def next_data(self, path: Path, offset: int) -> int:
        """Return the next position in a file that may hold non-zero bytes."""
        return self.get(path).next_data(offset)

    def warmed(self, cold: ColdRead) -> None:
        """Record a finished cold read."""
        self._known.update(path for path, _, _ in cold.spans)
        if cold.is_in_vain:
            log.warning(
                "The file system does not support RWF_NOWAIT reads; reads may block the event loop"
            )
            self.is_serving = False

    def know(self, path: Path) -> None:
        """Record a file that was just created."""
        self._known.add(path)

    def get(self, path: Path) -> File:
        """Return the file, opened when needed; valid until the next call."""
        file = self._open.get(path)
        if file is not None:
            self._open.move_to_end(path)
            return file
        file = self._files.open(path)
        self._open[path] = file
        self._known.add(path)
        if len(self._open) > self._limit:
            _, oldest = self._open.popitem(last=False)
            oldest.close()
        return file

    def forget(self, path: Path) -> None:
        """Close a file before its removal or renaming."""
        self._known.discard(path)
        file = self._open.pop(path, None)
        if file is not None:
            file.close()

    def close(self) -> None:
        """Close all files."""
        while self._open:
            self._open.popitem()[1].close()


class Segment:
    """A commit log file that is being written.

    An I/O thread preallocates space ahead of the writer, as zeros or reserved blocks. `filled` is
    the end of the preallocated space: the I/O thread works behind `filled` only, and a writer that
    catches up reserves space and advances `filled`; both hold one lock.
    """

    def __init__(self, path: Path, file: File, start: int, size: int, *, is_new: bool) -> None:
        self.path = path
        self.file = file
        self.start = start
        self.end = start + size
        self.filled = start
        #: True when pages ahead may be on the disk: a partial write must read the page first.
        self.has_zeros = not is_new
        #: True when the file's name is durable; before, none of its bytes counts as flushed.
        self.is_name_synced = not is_new
        self._fill_lock = threading.Lock()

    def reserve(self, end: int) -> None:
        """Reserve space up to an absolute offset; raises OSError on a full disk."""
        if end > self.filled:
            with self._fill_lock:
                if end > self.filled:
                    self.file.allocate(self.filled - self.start, end - self.filled)
                    self.filled = end

    def write(self, data: Buffer, offset: int) -> None:
        """Write to reserved space at an absolute offset; all of `data`, or OSError."""
        self.file.pwrite(data, offset - self.start)

    def fill_step(self, limit: int) -> bool:
        """Write and sync the next zeros up to `limit`; return False at the limit.

        Runs off the loop. A failed sync may lose messages, too.
        """
        with self._fill_lock:
            count = self._next_step(limit, ZERO_STEP)
            if count:
                self._fill(count)
                self.file.sync()
                self.filled += count
        return count > 0

    def allocate_step(self, limit: int) -> bool:
        """Reserve the next blocks up to `limit`; return False at the limit.

        Runs off the loop. On a file system without fallocate(), zeros are written.
        """
        with self._fill_lock:
            count = self._next_step(limit, ALLOCATED_STEP)
            if count:
                self.filled += self._allocate(count)
        return count > 0

    def _allocate(self, count: int) -> int:
        """Reserve a part of the next `count` bytes; return its size."""
        at, least = self.filled - self.start, min(count, ZERO_STEP)
        try:
            if self.file.allocate(at, count):
                return count
        except OSError:
            # Near a full disk, reserve in small steps.
            if count == least:
                raise
            if self.file.allocate(at, least):
                return least
        self._fill(least)
        return least

    def _next_step(self, limit: int, step: int) -> int:
        return max(min(step, min(limit, self.end) - self.filled), 0)

    def _fill(self, count: int) -> None:
        self.file.write_zeros(self.filled - self.start, count)
        self.has_zeros = True

    def seal(self) -> None:
        """Stop preallocation: the segment is complete, and the file may be closed."""
        with self._fill_lock:
            self.filled = self.end

    def cut(self, offset: int) -> None:
        """Zero and sync all bytes from an absolute offset on."""
        zero_from(self.file, offset - self.start, self.end - self.start)
        self.file.sync()
        self.filled = offset


def zero_from(file: File, start: int, size: int) -> None:
    """Overwrite non-zero bytes of a file of `size` bytes with zeros from `start` on.

    The size never changes, so that a crash in between leaves a valid segment. Only blocks with
    non-zero bytes are written: a write to an unwritten block would need space.
    """
    while (start := file.next_data(start)) < size:
        count = min(ZERO_STEP, size - start)
        data = file.pread(count, start)
        if data != _ZEROS[:count]:
            for at, length in _used_runs(data, start):
                file.pwrite(_ZEROS[:length], at)
        start += count


def _used_runs(data: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Yield position and size of each run of blocks with a non-zero byte; `data` is at `start`."""
    run, at, end = start, start, start + len(data)
    while at < end:
        after = min(end, at - at % BLOCK_BYTES + BLOCK_BYTES)
        if not any(data[at - start : after - start]):
            if at > run:
                yield run, at - run
            run = after
        at = after
    if end > run:
        yield run, end - run


def write_again(files: Files, folder: Path, size: int, start: int, end: int) -> None:
    """Rewrite and sync a range that may be in the page cache only; skips deleted segments.

    After a flush that failed before a crash, the page cache holds the data as clean pages, and the
    disk does not have the data. `size` is the size of a segment.
    """
    while start < end:
        within = start % size
        stop = min(size, within + end - start)
        start += stop - within
        try:
            file = files.open(segment_path(folder, start - stop))
        except FileNotFoundError:
            continue
        try:
            for at in range(within, stop, COPY_BYTES):
                file.pwrite(file.pread(min(COPY_BYTES, stop - at), at), at)
            file.sync()
        finally:
            file.close()


def create_segment(files: Files, folder: Path, start: int, size: int) -> Segment:
    """Create a sparse file of full size; a leftover file of a crash is replaced."""
    path = segment_path(folder, start)
    file = files.open(path, create=True)
    try:
        file.truncate(0)
        file.truncate(size)
    except OSError:
        file.close()
        raise
    return Segment(path, file, start, size, is_new=True)


def open_segment(files: Files, folder: Path, start: int, size: int) -> Segment:
    """Open an existing segment for further writing."""
    path = segment_path(folder, start)
    return Segment(path, files.open(path), start, size, is_new=False)
