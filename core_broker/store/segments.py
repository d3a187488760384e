"""Segment files: one long sequence of bytes, cut into files of equal size.

    folder/00000000000000000000   bytes 0 … size-1
    folder/00000000001073741824   bytes size … 2*size-1

The name is the offset of the first byte, as 20 digits. Every file has its full size from the
start. Compatible with RocketMQ's MappedFileQueue.
"""

import logging
import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

from core_broker.errors import StoreCorrupt
from core_broker.store.cold_reads import ColdRead
from core_broker.store.files import Buffer, File, Files

if TYPE_CHECKING:
    from core_broker.kernel.mapping import Mapping

NAME_DIGITS = 20
#: Offsets are signed 64-bit numbers; nobody will come near this one.
OFFSET_MAX = 2**62
#: The helper writes zeros in steps of this size; a writer that has caught up with it waits for one.
ZERO_STEP = 1024 * 1024
#: It reserves blocks in larger ones: that writes nothing, and after each it asks for the
#: interpreter, for which the event loop then waits.
ALLOCATED_STEP = 16 * 1024 * 1024
_ZEROS = bytes(ZERO_STEP)
#: Whatever a segment holds, its first bytes are not zeros then.
_HEAD_BYTES = 8

log = logging.getLogger(__name__)


def segment_path(folder: Path, start: int) -> Path:
    """Return the path of the segment that begins at `start`."""
    return folder / f"{start:0{NAME_DIGITS}d}"


def list_segments(
    files: Files, folder: Path, size: int, setting: str, *, mends_last: bool = False
) -> list[int]:
    """Return where the segments of a folder begin, in order and without a hole.

    Removes an empty last file, which a crash may leave. With `mends_last` the last file that holds
    anything gets its full size again if it was cut off. Raises StoreCorrupt when a file has not
    exactly the size of the `setting`, or one is missing between two others.
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


def _mend_last(files: Files, paths: list[Path], size: int) -> None:
    for path in reversed(paths):
        file = files.open(path)
        try:
            if (actual := files.size(path)) < size:
                log.warning("%s was cut off at %d; it gets %d bytes again", path, actual, size)
                file.truncate(size)
            if any(file.pread(_HEAD_BYTES, 0)):
                return
        finally:
            file.close()


class OpenFiles:
    """Open files by path, at most `limit`; the one not used for longest is closed first.

    Event loop only. Other threads open files of their own.
    """

    def __init__(self, files: Files, limit: int) -> None:
        #: While the broker serves, a read does not wait for the disk but raises ColdRead.
        self.is_serving = False
        self._files = files
        self._limit = limit
        self._open: OrderedDict[Path, File] = OrderedDict()
        #: Files that were opened before: opening them again does not wait for the disk.
        self._known: set[Path] = set()

    def read(self, path: Path, size: int, offset: int) -> bytes | bytearray:
        """Read from a file; fewer than `size` bytes only at its end."""
        if not self.is_serving:
            return self.get(path).pread(size, offset)
        if path in self._known:
            data = self.get(path).pread_now(size, offset)
            if data is not None:
                return data
        raise ColdRead(self._files, path, size, offset)

    def map(self, path: Path, offset: int, size: int, start: int) -> "Mapping | None":
        """Map a piece of a file that was opened before; None where that is not possible."""
        return self.get(path).map(offset, size, start) if path in self._known else None

    def next_data(self, path: Path, offset: int) -> int:
        """Return from where on a file may hold more than zeros."""
        return self.get(path).next_data(offset)

    def warmed(self, cold: ColdRead) -> None:
        """Take note that a cold read was done."""
        self._known.update(path for path, _, _ in cold.spans)
        if cold.is_in_vain:
            log.warning("The file system does not tell what is in memory; reads may wait for it")
            self.is_serving = False

    def know(self, path: Path) -> None:
        """Take note of a file that was just made."""
        self._known.add(path)

    def get(self, path: Path) -> File:
        """Return the file, opened when needed; it stays valid until the next call."""
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
        """Close a file that is going to be removed or renamed."""
        self._known.discard(path)
        file = self._open.pop(path, None)
        if file is not None:
            file.close()

    def close(self) -> None:
        """Close them all."""
        while self._open:
            self._open.popitem()[1].close()


class Segment:
    """A commit log file that is being written.

    A helper thread prepares it ahead of the writer, with zeros or with reserved blocks. `filled` is
    where that ends: the helper only works behind it, and a writer that has caught up reserves space
    and moves it, both under one lock.
    """

    def __init__(self, path: Path, file: File, start: int, size: int, *, is_new: bool) -> None:
        self.path = path
        self.file = file
        self.start = start
        self.end = start + size
        self.filled = start
        #: Blocks ahead may have been written; to write a part of one, the rest of it must be read.
        self.has_zeros = not is_new
        #: The name of a new file must reach the disk before anything in it counts as flushed.
        self.is_name_synced = not is_new
        self._growing = threading.Lock()

    def reserve(self, end: int) -> None:
        """Make sure that writing up to an absolute offset finds room; OSError when it does not."""
        if end > self.filled:
            with self._growing:
                if end > self.filled:
                    self.file.allocate(self.filled - self.start, end - self.filled)
                    self.filled = end

    def write(self, data: Buffer, offset: int) -> None:
        """Write at an absolute offset what was reserved; all of it, or OSError."""
        self.file.pwrite(data, offset - self.start)

    def fill_step(self, limit: int) -> bool:
        """Write and sync the next zeros up to `limit`; False when there are none to do.

        Runs off the loop. A failing sync may have lost messages, too.
        """
        with self._growing:
            count = self._next_step(limit, ZERO_STEP)
            if count:
                self._fill(count)
                self.file.sync()
                self.filled += count
        return count > 0

    def allocate_step(self, limit: int) -> bool:
        """Reserve the next blocks up to `limit`; False when there are none to do.

        Runs off the loop. Where a file system reserves none, zeros do.
        """
        with self._growing:
            count = self._next_step(limit, ALLOCATED_STEP)
            if count:
                self.filled += self._allocate(count)
        return count > 0

    def _allocate(self, count: int) -> int:
        """Reserve some of the next `count` bytes; answers how many."""
        at, least = self.filled - self.start, min(count, ZERO_STEP)
        try:
            if self.file.allocate(at, count):
                return count
        except OSError:
            # The last of a disk is taken in small steps.
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
        """Keep the helper out: nothing more will be written, and the file may be closed."""
        with self._growing:
            self.filled = self.end

    def cut(self, offset: int) -> None:
        """Make everything from an absolute offset on zeros, and that durable."""
        zero_from(self.file, offset - self.start, self.end - self.start)
        self.file.sync()
        self.filled = offset


def zero_from(file: File, start: int, size: int) -> None:
    """Overwrite a file of this size with zeros from `start` on, where it is anything else.

    The size never changes, so that a crash in between leaves a file that is still a segment.
    """
    while (start := file.next_data(start)) < size:
        zeros = _ZEROS[: min(ZERO_STEP, size - start)]
        if file.pread(len(zeros), start) != zeros:
            file.pwrite(zeros, start)
        start += len(zeros)


def create_segment(files: Files, folder: Path, start: int, size: int) -> Segment:
    """Create a sparse file of full size; whatever a crash left under its name is replaced."""
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
