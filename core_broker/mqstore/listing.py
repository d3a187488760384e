"""`ls`: what lies in a store folder."""

import stat
from collections.abc import Callable
from pathlib import Path

import msgspec

from core_broker.mqstore.file_checks import checkpoint_times
from core_broker.mqstore.folder import (
    DataFile,
    Odd,
    QueueFolder,
    StoreFolder,
    data_files,
    read_range,
    tree_bytes,
)
from core_broker.mqstore.log_view import LogView
from core_broker.mqstore.report import Report, visible
from core_broker.mqstore.sizes import Sizes
from core_broker.store.checkpoint import CHECKPOINT_BYTES, parse_checkpoint
from core_broker.store.consume_queue import BLANK_SIZE, UNIT, UNIT_BYTES
from core_broker.store.index_layout import HEADER
from core_broker.store.log_scan import LogScan
from core_broker.store.segments import NAME_DIGITS


class SegmentInfo(msgspec.Struct, frozen=True, rename="camel"):
    """One file of the commit log."""

    file: str
    size: int
    #: Bytes that the file really takes on the disk.
    used: int
    first_offset: int
    end_offset: int
    #: Store time of its first record, in ms.
    begin_timestamp: int | None


class QueueInfo(msgspec.Struct, frozen=True, rename="camel"):
    """One consume queue. Offsets are None when its files cannot tell."""

    topic: str
    queue_id: int
    min_offset: int | None
    max_offset: int | None
    files: int
    used: int


class IndexInfo(msgspec.Struct, frozen=True, rename="camel"):
    """One index file, as its header has it."""

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
    #: RocketMQ's names and store times in ms; None without a checkpoint.
    checkpoint: dict[str, int] | None
    min_offset: int
    #: Behind the last record; None when the last segment cannot be read up to there.
    max_offset: int | None
    segments: list[SegmentInfo]
    queues: list[QueueInfo]
    index: list[IndexInfo]
    #: Name in config/ and size.
    config: dict[str, int]
    #: What RocketMQ 5 keeps besides, with its size.
    extras: dict[str, int]
    #: What should not be where it is, with the reason.
    odd: dict[str, str]


def list_folder(folder: StoreFolder, sizes: Sizes) -> Listing:
    """Look at a folder; changes nothing."""
    names = Report(folder.root)
    files, odd = folder.segments()
    log = LogView(folder.log_path, files, sizes.segment)
    queue_folders, odd_queues = folder.queues()
    index_files, odd_index = folder.index_files()
    queues = []
    newest = 0
    for each in queue_folders:
        queue, offset = _queue(each, sizes.queue_file, log.min_offset, odd)
        queues.append(queue)
        newest = max(newest, offset)
    index = [found for file in index_files if (found := _index(file, odd, names)) is not None]
    everything_odd: list[Odd] = [*odd, *odd_queues, *odd_index]
    return Listing(
        folder=visible(folder.root),
        is_in_use=folder.is_in_use(),
        has_abort=folder.paths.abort.exists(),
        checkpoint=_checkpoint(folder.paths.checkpoint),
        min_offset=log.min_offset,
        max_offset=_log_end(log, newest),
        segments=[_segment(each, log, names) for each in files],
        queues=queues,
        index=index,
        config={visible(each.name): tree_bytes(each) for each in folder.config_files()},
        extras={visible(each.name): tree_bytes(each) for each in folder.extras()},
        odd={names.name(each.path): each.reason for each in everything_odd},
    )


def _segment(file: DataFile, log: LogView, names: Report) -> SegmentInfo:
    return SegmentInfo(
        names.name(file.path),
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
    """Find the end of the log: from the newest message of all queues on, if that is in order.

    Otherwise the last segment that begins with a record is read.
    """
    scan = LogScan(log, newest, check_crc=False)
    if _run_through(scan) and scan.end > newest:
        return scan.end
    for start in sorted(log.starts, reverse=True):
        scan = LogScan(log, start, check_crc=False)
        if not _run_through(scan):
            return None
        if scan.end > start:
            return scan.end
    return log.min_offset


def _run_through(scan: LogScan) -> bool:
    """Read all records; tell whether they simply end."""
    for _ in scan:
        pass
    return scan.flaw is None


def _queue(
    queue: QueueFolder, file_size: int, min_physical: int, odd: list[Odd]
) -> tuple[QueueInfo, int]:
    """Return a queue, and where its newest message lies in the log."""
    files, odd_files = data_files(queue.path, NAME_DIGITS)
    odd += odd_files
    used = sum(disk_bytes(each.path) for each in files)
    low: int | None = None
    high: int | None = None
    newest = 0
    try:
        low, high, newest = _queue_range(files, file_size, min_physical)
    except OSError as error:
        odd.append(Odd(queue.path, f"it cannot be read: {error.strerror}"))
    return QueueInfo(visible(queue.topic), queue.queue_id, low, high, len(files), used), newest


def _queue_range(files: list[DataFile], file_size: int, min_physical: int) -> tuple[int, int, int]:
    """Return the first unit whose message is in the log, the end of the units, and where the
    newest message lies in the log."""
    if not files:
        return 0, 0, 0
    per_file = file_size // UNIT_BYTES
    firsts = {each.start // UNIT_BYTES: each.path for each in files}

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
    """Return the first number for which a condition holds, which then holds for all later ones."""
    while low < high:
        middle = (low + high) // 2
        if is_behind(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _index(file: DataFile, odd: list[Odd], names: Report) -> IndexInfo | None:
    try:
        data = read_range(file.path, 0, HEADER.size)
    except OSError as error:
        odd.append(Odd(file.path, f"it cannot be read: {error.strerror}"))
        return None
    if len(data) < HEADER.size:
        odd.append(Odd(file.path, "it is too short for a header"))
        return None
    begin, end, begin_offset, end_offset, used, next_item = HEADER.unpack(data)
    return IndexInfo(
        names.name(file.path),
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
    """Return what a file really takes on the disk; sparse files take less than their size."""
    try:
        found = path.stat()
    except OSError:
        return 0
    return found.st_blocks * 512 if stat.S_ISREG(found.st_mode) else 0
