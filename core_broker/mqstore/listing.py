"""`ls`: the contents of a store folder."""

import stat
from collections.abc import Callable
from pathlib import Path

import msgspec

from core_broker.mqstore.file_checks import checkpoint_times
from core_broker.mqstore.folder import (
    DataFile,
    QueueFolder,
    StoreFolder,
    UnexpectedEntry,
    data_files,
    read_range,
    tree_bytes,
)
from core_broker.mqstore.log_view import LogView
from core_broker.mqstore.report import display_name, escaped
from core_broker.mqstore.sizes import Sizes
from core_broker.store.checkpoint import CHECKPOINT_BYTES, parse_checkpoint
from core_broker.store.index_layout import HEADER
from core_broker.store.log_scan import LogScan
from core_broker.store.segments import NAME_DIGITS
from core_broker.store.unit_layout import BLANK_SIZE, UNIT, UNIT_BYTES


class SegmentInfo(msgspec.Struct, frozen=True, rename="camel"):
    """One file of the commit log."""

    file: str
    size: int
    #: Allocated disk space, bytes; smaller than `size` for a sparse file.
    used: int
    first_offset: int
    end_offset: int
    #: Store time of the first record, ms since 1970.
    begin_timestamp: int | None


class QueueInfo(msgspec.Struct, frozen=True, rename="camel"):
    """One consume queue. Offsets are None for unreadable files; `used` is disk space in bytes."""

    topic: str
    queue_id: int
    min_offset: int | None
    max_offset: int | None
    files: int
    used: int


class IndexInfo(msgspec.Struct, frozen=True, rename="camel"):
    """One index file with the values of its header."""

    file: str
    size: int
    begin_timestamp: int
    end_timestamp: int
    begin_offset: int
    end_offset: int
    slots_used: int
    items: int


class Listing(msgspec.Struct, frozen=True, rename="camel"):
    """A whole folder."""

    folder: str
    is_in_use: bool
    has_abort: bool
    #: Store times by RocketMQ's names, ms since 1970; None without a checkpoint.
    checkpoint: dict[str, int] | None
    min_offset: int
    #: End offset of the last record; None when damage precedes the end of the log.
    max_offset: int | None
    segments: list[SegmentInfo]
    queues: list[QueueInfo]
    index: list[IndexInfo]
    #: Size of each file in config/, bytes.
    config: dict[str, int]
    #: Size of each file or folder of RocketMQ 5, bytes.
    extras: dict[str, int]
    #: Reason for each unexpected file or folder.
    unexpected: dict[str, str] = msgspec.field(name="odd")


def list_folder(folder: StoreFolder, sizes: Sizes) -> Listing:
    """Return the listing of a folder; the folder stays unchanged."""
    root = folder.root
    files, unexpected = folder.segments()
    log = LogView(folder.log_path, files, sizes.segment)
    queue_folders, unexpected_queues = folder.queues()
    index_files, unexpected_index = folder.index_files()
    queues = []
    newest = 0
    for queue_folder in queue_folders:
        queue, offset = _queue(queue_folder, sizes.queue_file, log.min_offset, unexpected)
        queues.append(queue)
        newest = max(newest, offset)
    index = [info for file in index_files if (info := _index(file, unexpected, root)) is not None]
    all_unexpected: list[UnexpectedEntry] = [*unexpected, *unexpected_queues, *unexpected_index]
    return Listing(
        folder=escaped(folder.root),
        is_in_use=folder.is_in_use(),
        has_abort=folder.paths.abort.exists(),
        checkpoint=_checkpoint(folder.paths.checkpoint),
        min_offset=log.min_offset,
        max_offset=_log_end(log, newest),
        segments=[_segment(file, log, root) for file in files],
        queues=queues,
        index=index,
        config={escaped(path.name): tree_bytes(path) for path in folder.config_files()},
        extras={escaped(path.name): tree_bytes(path) for path in folder.extras()},
        unexpected={display_name(root, entry.path): entry.reason for entry in all_unexpected},
    )


def _segment(file: DataFile, log: LogView, root: Path) -> SegmentInfo:
    return SegmentInfo(
        display_name(root, file.path),
        file.size,
        disk_bytes(file.path),
        file.start,
        file.start + file.size,
        _first_time(log, file.start),
    )


def _first_time(log: LogView, start: int) -> int | None:
    record = next(iter(LogScan(log, start, check_crc=False)), None)
    return record.store_timestamp if record is not None else None


def _log_end(log: LogView, newest: int) -> int | None:
    """Return the end of the log; None when damage precedes the end.

    The first scan starts at the newest message of all queues. After damage, or where no record
    begins, the last segment that begins with a record is scanned.
    """
    newest = max(log.min_offset, newest - log.framing.header_bytes)
    scan = LogScan(log, newest, check_crc=False)
    if _read_to_end(scan) and scan.end > newest:
        return scan.end
    for start in sorted(log.starts, reverse=True):
        scan = LogScan(log, start, check_crc=False)
        if not _read_to_end(scan):
            return None
        if scan.end > start:
            return scan.end
    return log.min_offset


def _read_to_end(scan: LogScan) -> bool:
    """Read all records of a scan; return True when the scan ends without damage."""
    for _ in scan:
        pass
    return scan.flaw is None


def _queue(
    queue: QueueFolder, file_size: int, min_physical: int, unexpected: list[UnexpectedEntry]
) -> tuple[QueueInfo, int]:
    """Return a queue, and the physical offset of the newest message."""
    files, unexpected_files = data_files(queue.path, NAME_DIGITS)
    unexpected += unexpected_files
    used = sum(disk_bytes(file.path) for file in files)
    low: int | None = None
    high: int | None = None
    newest = 0
    try:
        low, high, newest = _queue_range(files, file_size, min_physical)
    except OSError as error:
        unexpected.append(
            UnexpectedEntry(queue.path, f"the queue cannot be read: {error.strerror}")
        )
    return QueueInfo(escaped(queue.topic), queue.queue_id, low, high, len(files), used), newest


def _queue_range(files: list[DataFile], file_size: int, min_physical: int) -> tuple[int, int, int]:
    """Return the first unit with a message in the log, the end of the units, and the physical
    offset of the newest message."""
    if not files:
        return 0, 0, 0
    per_file = file_size // UNIT_BYTES
    firsts = {file.start // UNIT_BYTES: file.path for file in files}

    def unit(number: int) -> tuple[int, int]:
        path = firsts.get(number - number % per_file)
        at = number % per_file * UNIT_BYTES
        data = read_range(path, at, UNIT_BYTES) if path is not None else b""
        offset, size, _ = UNIT.unpack(data) if len(data) == UNIT_BYTES else (0, 0, 0)
        return offset, size

    start, last = min(firsts), max(firsts)
    high = _first(last, last + per_file, lambda number: unit(number)[1] <= 0)
    low = _first(
        start,
        high,
        lambda number: unit(number)[1] != BLANK_SIZE and unit(number)[0] >= min_physical,
    )
    return low, high, unit(high - 1)[0]


def _first(low: int, high: int, is_behind: Callable[[int], bool]) -> int:
    """Return the first number with a true condition, by bisection.

    A condition that is true for a number must be true for all higher numbers.
    """
    while low < high:
        middle = (low + high) // 2
        if is_behind(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _index(file: DataFile, unexpected: list[UnexpectedEntry], root: Path) -> IndexInfo | None:
    try:
        data = read_range(file.path, 0, HEADER.size)
    except OSError as error:
        unexpected.append(UnexpectedEntry(file.path, f"the file cannot be read: {error.strerror}"))
        return None
    if len(data) < HEADER.size:
        unexpected.append(UnexpectedEntry(file.path, "the file is too short for a header"))
        return None
    begin, end, begin_offset, end_offset, used, next_item = HEADER.unpack(data)
    return IndexInfo(
        display_name(root, file.path),
        file.size,
        begin,
        end,
        begin_offset,
        end_offset,
        used,
        max(next_item - 1, 0),
    )


def _checkpoint(path: Path) -> dict[str, int] | None:
    try:
        return checkpoint_times(parse_checkpoint(read_range(path, 0, CHECKPOINT_BYTES)))
    except OSError:
        return None


def disk_bytes(path: Path) -> int:
    """Return the allocated disk space of a file, bytes; less than the size for a sparse file."""
    try:
        status = path.stat()
    except OSError:
        return 0
    return status.st_blocks * 512 if stat.S_ISREG(status.st_mode) else 0
