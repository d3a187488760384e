"""Truncates a store: drops all records at or behind an offset, and everything derived from them.

    pause · begin: check, sync, write truncation.json · reload: cut the log, recover · tables · end

A broker that rejoins its replicas drops the records that the elected master does not have. From
`begin` on the truncation is decided: a start after a crash repeats `resume`, which cuts the end of
the log and its epochs; the recovery then cuts queues and index as after any crash. The owner of the
tables takes back consumer offsets and other progress, and calls `end`. Until then the store does
not start. Compatible with RocketMQ's DefaultMessageStore.truncateFiles, which is not crash-safe.
"""

import errno
import logging
import os
from collections.abc import Iterator

from core_broker.errors import TruncationRefused
from core_broker.message.record_layout import BLANK_BYTES
from core_broker.store.abort_file import write_abort_file
from core_broker.store.checkpoint import DispatchCheckpoint, QueueRanges, save_dispatch_checkpoint
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.files import Files
from core_broker.store.log_scan import LogRecord, LogScan, find_record
from core_broker.store.segments import NAME_DIGITS, segment_path, zero_from
from core_broker.store.truncation import (
    QueueEnds,
    Rollback,
    Truncation,
    load_truncation,
    remove_truncation,
    save_truncation,
)
from core_broker.store.unit_layout import BLANK_SIZE
from core_broker.store.workers import Workers

log = logging.getLogger(__name__)


class Truncator:
    """Truncates the store while it is paused. All calls wait for the disk."""

    def __init__(self, workers: Workers, files: Files) -> None:
        #: The truncation that is under way; None while the store may start.
        self.pending: Truncation | None = None
        parts = workers.parts
        self._log, self._queues, self._index = parts.log, parts.queues, parts.index
        self._dispatcher = workers.dispatcher
        self._checkpointer = workers.checkpointer
        self._appender = workers.appender
        self._epochs = workers.epochs
        self._health = workers.health
        self._files = files
        self._paths = workers.paths

    # -- what is lost --

    def queue_ends(self, offset: int) -> QueueEnds:
        """Return the queues that lose messages by a truncation, and their new ends."""
        ends: QueueEnds = {}
        for queue in self._queues:
            if queue.end_physical > offset:
                ends.setdefault(queue.topic, {})[queue.queue_id] = _end_at(queue, offset)
        return ends

    def tail(self, offset: int) -> Iterator[LogRecord]:
        """Yield the records that a truncation drops; damaged ones are skipped."""
        at: int | None = offset
        while at is not None and at < self._log.written:
            scan = LogScan(self._log, at, check_crc=False)
            yield from scan
            at = find_record(self._log, scan.end + 1, self._log.written)

    def first_unit(self, topic: str, queue_id: int, offset: int) -> int:
        """Return the offset in a queue of its first message at or behind an offset of the log."""
        queue = self._queues.get(topic, queue_id)
        if queue is None:
            return 0
        return queue.first_not_before(offset, queue.min_offset, queue.max_offset)

    # -- the steps --

    def begin(self, offset: int, confirm_offset: int, rollback: Rollback) -> None:
        """Decide a truncation; the store is paused, and `reload` follows.

        Raises TruncationRefused, with nothing changed, when a record before `confirm_offset` would
        be dropped, or when no record begins or ends at the offset; and OSError.
        """
        self._check(offset, confirm_offset)
        self._dispatcher.settle()
        self._checkpointer.run_now(self._appender.store_timestamp)
        truncation = Truncation(
            offset, confirm_offset, self._checkpoint(offset), self.queue_ends(offset), rollback
        )
        save_truncation(self._files, self._paths.truncation, truncation)
        self.pending = truncation
        log.warning(
            "Truncating the commit log from %d to %d; the elected master does not have the rest",
            self._log.written,
            offset,
        )

    def resume(self) -> None:
        """Load the epochs, and cut the files of a truncation that is under way.

        The recovery of the store follows.

        Raises StoreCorrupt for a damaged truncation.json, and OSError; may be repeated.
        """
        self._epochs.load()
        self.pending = truncation = load_truncation(self._files, self._paths.truncation)
        if truncation is None:
            return
        # The recovery is that after a crash: it cuts queues and index, and trusts no unsynced byte.
        if not self._files.exists(self._paths.abort):
            write_abort_file(self._files, self._paths.abort)
        save_dispatch_checkpoint(
            self._files, self._paths.dispatch_checkpoint, truncation.checkpoint
        )
        self._cut_log(truncation.offset_physical)
        self._epochs.truncate(truncation.offset_physical)

    def end(self) -> None:
        """End the truncation: the tables on the disk agree with the truncated log.

        Raises OSError, also on a full disk, since the files derived from the log must be complete;
        the truncation then stays under way.
        """
        if self._health.has_postponed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._paths.root))
        self._dispatcher.settle()
        self._checkpointer.run_now(self._appender.store_timestamp)
        folders = {queue.folder for queue in self._queues} | {self._index.folder, self._log.folder}
        for folder in folders:
            if self._files.exists(folder):
                self._files.sync_dir(folder)
        remove_truncation(self._files, self._paths.truncation)
        self.pending = None

    # -- checks --

    def _check(self, offset: int, confirm_offset: int) -> None:
        if offset < confirm_offset:
            reason = f"replicas confirmed all messages before {confirm_offset}"
        elif not self._log.min_offset <= offset <= self._log.written:
            reason = f"the log has the offsets {self._log.min_offset} to {self._log.written}"
        elif self._health.has_failed or self._health.has_postponed:
            reason = self._health.reason or ""
        elif self._log.flushed < self._log.written:
            reason = "the log cannot be flushed"
        elif not self._is_border(offset):
            reason = "no record ends there"
        else:
            return
        raise TruncationRefused(offset, reason)

    def _is_border(self, offset: int) -> bool:
        """Return whether a record begins or ends at an offset."""
        start = self._log.segment_end(offset) - self._log.segment_size
        if offset in (start, self._log.written):
            return True
        head, left = self._log.read(offset, BLANK_BYTES), self._log.segment_end(offset) - offset
        if len(head) == BLANK_BYTES and self._log.framing.is_blank(head, 0, left):
            return True
        if next(iter(LogScan(self._log, offset, check_crc=True)), None) is not None:
            return True
        # The record at the offset is damaged: the records before tell where it begins.
        scan = LogScan(self._log, max(start, self._log.min_offset), check_crc=False)
        for _ in scan:
            if scan.end >= offset:
                break
        return scan.end == offset

    def _checkpoint(self, offset: int) -> DispatchCheckpoint:
        """Return the checkpoint in front of an offset: behind the last message of any queue."""
        ranges: QueueRanges = {}
        point, last_record = self._log.min_offset, -1
        for queue in self._queues:
            end = _end_at(queue, offset)
            if end:
                ranges.setdefault(queue.topic, {})[queue.queue_id] = (queue.min_offset, end)
            unit = queue.unit(end - 1) if end > queue.min_offset else None
            if unit is None or unit.size == BLANK_SIZE:
                continue
            if unit.offset_physical + unit.size > point:
                last_record = unit.offset_physical
                point = unit.offset_physical + unit.size
        index_ends = {name: end for name, end in self._index.ends().items() if end < point}
        return DispatchCheckpoint(
            min(point, offset),
            self._log.min_offset,
            last_record,
            ranges,
            index_ends,
            self._log.segment_size,
        )

    # -- the files --

    def _cut_log(self, offset: int) -> None:
        """Remove the segments behind an offset, the last one first, and zero the rest of its own.

        Each removal is synced, so that a power cut leaves no gap between segments.
        """
        folder, size = self._log.folder, self._log.segment_size
        start = offset - offset % size
        for name in reversed(self._files.names(folder)):
            if len(name) == NAME_DIGITS and name.isdecimal() and int(name) > start:
                self._files.remove(folder / name)
                self._files.sync_dir(folder)
        path = segment_path(folder, start)
        if not self._files.exists(path):
            return  # the log ended with the segment before
        file = self._files.open(path)
        try:
            zero_from(file, offset - start, size)
            file.sync()
        finally:
            file.close()


def _end_at(queue: ConsumeQueue, offset: int) -> int:
    """Return the end of a queue without the messages at or behind a physical offset."""
    if queue.end_physical <= offset:
        return queue.max_offset
    return queue.first_not_before(offset, queue.min_offset, queue.max_offset)
