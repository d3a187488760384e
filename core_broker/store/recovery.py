"""Recovers a store folder at the start.

The commit log is the source; queues and index are derived. Before the recovery point, given by the
newest checkpoint, log, queues and index are on the disk. From the recovery point on, recovery reads
the log and rebuilds queues and index. The log ends with the last whole record; following bytes are
zeroed. When a queue or the index lacks messages before the recovery point, recovery reads the whole
log. Damage before whole records is reported and skipped; only writes lost in a power cut end the
log (log_end.py). Compatible with RocketMQ's CommitLog.recoverNormally and recoverAbnormally, and
with RocketMQ's checkpoint rules where Gantry's own checkpoint is missing.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from core_broker.config import BrokerConfig
from core_broker.errors import StoreFull
from core_broker.store.checkpoint import (
    Checkpoint,
    DispatchCheckpoint,
    load_checkpoint,
    load_dispatch_checkpoint,
)
from core_broker.store.damage import Damage
from core_broker.store.dispatcher import Dispatcher
from core_broker.store.files import Files, read_file
from core_broker.store.full_disk import is_disk_full
from core_broker.store.layout import StoreParts, StorePaths
from core_broker.store.log_end import is_hole, next_whole_record, without_blank_end
from core_broker.store.log_reader import LogReader
from core_broker.store.log_scan import Flaw, LogRecord, LogScan, find_record
from core_broker.store.unit_layout import BLANK_SIZE

#: Called with the name of the current step and its finished share, 0.0 to 1.0.
Progress = Callable[[str, float], None]
#: Log bytes between two progress reports.
PROGRESS_BYTES = 32 * 1024 * 1024
#: Maximum size of the units and index entries that recovery keeps in memory while the disk is
#: full, bytes; interval of the check, records.
HELD_BYTES_MAX = 256 * 1024 * 1024
HELD_CHECK_RECORDS = 50_000
NOTHING = "there is nothing but zeros"

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Recovered:
    """The result of a recovery."""

    end: int = 0
    last_record: int = -1
    #: Number of records read from the log, and of damaged ranges.
    records: int = 0
    flaws: int = 0
    is_cut: bool = False
    #: Store time of the newest message, ms.
    store_timestamp: int = 0
    #: True after changes that the next start should not repeat.
    must_checkpoint: bool = False

    def __str__(self) -> str:
        return (
            f"The commit log ends at {self.end}; {self.records} records were read again,"
            f" {self.flaws} places were damaged"
        )


class Recovery:
    """One start of the store; runs before the event loop."""

    def __init__(
        self,
        parts: StoreParts,
        dispatcher: Dispatcher,
        files: Files,
        paths: StorePaths,
        config: BrokerConfig,
        progress: Progress,
        damage: Damage,
    ) -> None:
        self._log, self._queues, self._index = parts.log, parts.queues, parts.index
        self._dispatcher = dispatcher
        self._reader = LogReader(self._log, damage)
        self._files = files
        self._paths = paths
        self._config = config
        self._progress = progress
        self._damage = damage
        self._result = Recovered()
        self._unchecked = 0
        #: True when the operating system may have stopped while the store was open.
        self._may_have_holes = True

    def run(self) -> Recovered:
        """Load and recover the store; afterwards the log can be read and prepared."""
        is_clean = not self._files.exists(self._paths.abort)
        self._may_have_holes = not (is_clean or self._is_same_boot())
        self._files.remove_tree(self._paths.trash)
        self._progress("loading", 0.0)
        saved = load_dispatch_checkpoint(self._files, self._paths.dispatch_checkpoint)
        self._log.load(mends_last=self._may_be_cut(saved, is_clean=is_clean))
        damaged = self._queues.load()
        self._index.load()
        if self._log.is_empty:
            self._drop_all()
        known = saved if saved is not None and self._is_of_this_log(saved) else None
        checkpoint = load_checkpoint(self._files, self._paths.checkpoint)
        self._result.last_record = known.last_record if known is not None else -1
        whole = self._whole_until(known, checkpoint, is_clean=is_clean)
        is_short = self._drop_short(known, checkpoint) or bool(damaged)
        for queue in self._queues:
            queue.cut_physical(whole)
        self._index.cut_physical(whole, is_torn=not is_clean)
        if is_short and whole > self._log.min_offset:
            log.warning("Rebuilding queues and index from the whole commit log")
            self._read_whole_part(whole)
        self._dispatcher.gaps.clear()
        self._read_end(whole)
        if known is not None:
            # A damaged unit may mislead the cut, so that units of older messages are missing.
            self._dispatcher.gaps.update(self._short_queues(known))
        if self._dispatcher.gaps and not is_short and whole > self._log.min_offset:
            self._rebuild_gaps()
        self._finish(checkpoint, whole, is_clean=is_clean)
        if self._log.entries is not None:
            is_whole = not self._result.must_checkpoint
            last = self._result.last_record
            self._log.entries.load(self._log, last, synced_until=whole, is_clean=is_whole)
        log.info("%s", self._result)
        return self._result

    def _is_same_boot(self) -> bool:
        """Return whether the operating system, with its page cache, survived the crash."""
        boot_id = self._files.boot_id()
        return bool(boot_id) and read_file(self._files, self._paths.abort) == boot_id.encode()

    # -- where to begin --

    def _may_be_cut(self, saved: DispatchCheckpoint | None, *, is_clean: bool) -> bool:
        """Return whether a short last segment is truncated, not written with another setting."""
        if saved is None or not saved.segment_size:
            return not is_clean
        return saved.segment_size == self._log.segment_size

    def _is_of_this_log(self, known: DispatchCheckpoint) -> bool:
        """Return whether Gantry's own checkpoint belongs to this log.

        A Java broker does not update the checkpoint, and may have cut the log since.
        """
        point = known.offset_physical
        if not 0 <= point <= self._log.loaded_end:
            return False
        if point <= self._log.min_offset or point % self._log.segment_size == 0:
            return True
        record = self._reader.record(known.last_record)
        return record is not None and known.last_record + len(record) == point

    def _whole_until(
        self, known: DispatchCheckpoint | None, checkpoint: Checkpoint, *, is_clean: bool
    ) -> int:
        """Return the recovery point: before it, log, queues and index are on the disk."""
        least = self._log.min_offset
        if is_clean:
            newest = max((each.end_physical for each in self._queues), default=0)
            if least < newest <= self._log.loaded_end and self._is_end_of_record(newest):
                return max(newest, known.offset_physical if known else 0)
        if known is not None:
            return max(known.offset_physical, least)
        return self._segment_by_time(checkpoint)

    def _is_end_of_record(self, end: int) -> bool:
        for queue in self._queues:
            unit = queue.unit(queue.max_offset - 1)
            if unit is not None and unit.offset_physical + unit.size == end:
                return self._reader.record(unit.offset_physical, unit.size) is not None
        return False

    def _segment_by_time(self, checkpoint: Checkpoint) -> int:
        """RocketMQ's rule: the last segment whose first message is certainly flushed."""
        until = checkpoint.recover_from_timestamp(with_index=self._config.message_index_safe)
        start = self._log.loaded_end - self._log.segment_size
        while start > self._log.min_offset:
            stored_at = self._reader.first_timestamp(start)
            if 0 < stored_at <= until:
                return start
            start -= self._log.segment_size
        return self._log.min_offset

    # -- what is missing --

    def _drop_short(self, known: DispatchCheckpoint | None, checkpoint: Checkpoint) -> bool:
        """Remove queues and index that lack earlier messages; return whether any did."""
        if known is not None:
            short = list(self._short_queues(known))
            is_missing = bool(short)
            is_index_short = self._is_index_short(known)
        else:
            short = []
            is_missing = not list(self._queues)
            is_index_short = self._index.end_timestamp < checkpoint.index_msg_timestamp
        for topic, queue_id in short:
            log.warning("Queue %d of topic %s is missing or short", queue_id, topic)
            self._remove_queue(topic, queue_id)
        is_index_short = is_index_short and self._config.message_index_enable
        if is_index_short:
            log.warning("The key index is missing or short")
            self._index.clear()
        return is_missing or is_index_short

    def _short_queues(self, known: DispatchCheckpoint) -> Iterator[tuple[str, int]]:
        has_expired = known.min_physical != self._log.min_offset
        for topic, ranges in known.queues.items():
            for queue_id, (low, high) in ranges.items():
                queue = self._queues.get(topic, queue_id)
                is_short = queue is None or queue.max_offset < high
                if is_short or (queue and queue.min_offset > low and not has_expired):
                    yield topic, queue_id

    def _is_index_short(self, known: DispatchCheckpoint) -> bool:
        ends = self._index.ends()
        return any(
            ends.get(name, -1) < end
            for name, end in known.index_ends.items()
            if end >= self._log.min_offset
        )

    def _newest_record(self) -> int:
        """Offset of the newest known record, -1 without one."""
        newest = self._result.last_record
        for queue in self._queues:
            unit = queue.unit(queue.max_offset - 1) if queue.max_offset else None
            if unit is not None and unit.size != BLANK_SIZE:
                newest = max(newest, unit.offset_physical)
        return newest

    def _newest_timestamp(self) -> int:
        return self._reader.store_timestamp(self._newest_record())

    def _drop_all(self) -> None:
        """Remove queues and index: without a commit log, no unit or item is valid."""
        for queue in list(self._queues):
            self._remove_queue(queue.topic, queue.queue_id)
        self._index.clear()

    def _remove_queue(self, topic: str, queue_id: int) -> None:
        folder = self._queues.remove(topic, queue_id)
        if folder is not None:
            self._files.remove_tree(folder)

    # -- reading the log --

    def _read_whole_part(self, whole: int) -> None:
        """Dispatch all records before the recovery point, skipping damage."""
        at: int | None = self._log.min_offset
        while at is not None and at < whole:
            scan = self._scan(at, whole, "rebuilding queues and index")
            if scan.end >= whole:
                break
            flaw = scan.flaw or Flaw(scan.end, NOTHING)
            self._report(flaw, "The records behind it are kept.")
            at = find_record(self._log, scan.end + 1, whole)
            self._dispatcher.lost(scan.end, at or whole)

    def _read_end(self, whole: int) -> None:
        """Dispatch all records from the recovery point to the end of the log.

        Damage before whole records is skipped, unless it is a hole (log_end.py).
        """
        at, end = whole, self._log.loaded_end
        while True:
            scan = self._scan(at, end, "reading the end of the commit log")
            self._result.end = scan.end
            following = self._following(scan.end, end)
            if following is None:
                if scan.flaw is not None:
                    self._cut(scan.flaw, "The log ends there.")
                break
            flaw = scan.flaw or Flaw(scan.end, NOTHING)
            if self._is_torn(scan.end, following):
                self._cut(flaw, f"The log ends there; the record at {following.offset} is dropped.")
                break
            self._report(flaw, f"The records from {following.offset} on are kept.")
            at = following.offset
            self._dispatcher.lost(scan.end, at)
        self._dispatcher.decide_doubtful()

    def _following(self, start: int, end: int) -> LogRecord | None:
        check_crc = self._config.check_crc_on_recover
        return next_whole_record(self._log, start + 1, end, check_crc=check_crc)

    def _is_torn(self, end: int, following: LogRecord) -> bool:
        """Return whether the log ends at a flaw although a record follows.

        The record is from an earlier use of the segment, or follows a write that never reached the
        disk.
        """
        if following.store_timestamp < self._newest_timestamp():
            return True  # from an earlier use of the segment
        return self._may_have_holes and is_hole(self._log, end, following.offset)

    def _cut(self, flaw: Flaw, consequence: str) -> None:
        path = self._log.path_of(flaw.offset)
        log.warning("%s: log offset %d: %s. %s", path, flaw.offset, flaw.reason, consequence)
        self._result.is_cut = True

    def _scan(self, start: int, end: int, what: str) -> LogScan:
        scan = LogScan(self._log, start, check_crc=self._config.check_crc_on_recover)
        reported = start
        for record in scan:
            self._dispatch(record)
            self._result.records += 1
            self._result.last_record = record.offset
            if record.offset - reported >= PROGRESS_BYTES:
                reported = record.offset
                self._report_progress(what, (reported - start) / (self._written_end(end) - start))
            if scan.end >= end:
                break
        if not self._dispatcher.is_deferring:
            self._write(self._dispatcher.settle)
        return scan

    def _dispatch(self, record: LogRecord) -> None:
        self._write(partial(self._dispatcher.dispatch, record))
        if not self._dispatcher.is_deferring:
            return
        self._unchecked += 1
        if self._unchecked >= HELD_CHECK_RECORDS:
            self._unchecked = 0
            if self._dispatcher.held_bytes > HELD_BYTES_MAX:
                raise StoreFull(str(self._paths.root), HELD_BYTES_MAX)

    def _write(self, step: Callable[[], None]) -> None:
        """Run a step of the dispatcher; a full disk keeps queues and index in memory."""
        try:
            step()
        except OSError as error:
            if not is_disk_full(error):
                raise
            log.error("The disk is full; new queue units and index items stay in memory: %s", error)  # noqa: TRY400 - known cause
            self._dispatcher.is_deferring = True

    def _written_end(self, end: int) -> int:
        """Return the end of the last segment with records: segments are created ahead."""
        size = self._log.segment_size
        least = self._log.min_offset + size
        while end > least and self._reader.first_timestamp(end - size) < 0:
            end -= size
        return end

    def _rebuild_gaps(self) -> None:
        """Rebuild queues that lack messages before the recovery point."""
        self._dispatcher.missing.clear()
        for topic, queue_id in self._dispatcher.gaps:
            log.warning("Queue %d of topic %s has a gap", queue_id, topic)
            self._remove_queue(topic, queue_id)
        self._read_whole_part(self._result.end)
        self._dispatcher.decide_doubtful()

    def _report(self, flaw: Flaw, consequence: str) -> None:
        self._result.flaws += 1
        path, within = self._log.path_of(flaw.offset), flaw.offset % self._log.segment_size
        self._damage.report(
            path, within, f"{flaw.reason} (log offset {flaw.offset}). {consequence}"
        )

    def _report_progress(self, what: str, share: float) -> None:
        log.info("Recovery: %s, %.0f %%", what, share * 100)
        self._progress(what, share)

    # -- the end --

    def _finish(self, checkpoint: Checkpoint, whole: int, *, is_clean: bool) -> None:
        result = self._result
        for queue, offset in self._dispatcher.missing:
            path, at = queue.location_of(offset)
            self._damage.report(path, at, f"the commit log has no message {offset} of this queue")
        self._dispatcher.missing.clear()
        end = without_blank_end(self._log, self._newest_record(), result.end)
        result.is_cut, result.end = result.is_cut or end < result.end, end
        for queue in self._queues:
            queue.cut_physical(result.end)
            queue.advance_min(self._log.min_offset)
        self._index.cut_physical(result.end)
        self._index.correct_end(self._reader.store_timestamp(self._index.end_physical))
        result.last_record = self._newest_record()
        result.store_timestamp = self._newest_timestamp()
        if result.last_record < 0:
            result.store_timestamp = checkpoint.physic_msg_timestamp
        result.must_checkpoint = not is_clean or result.is_cut or result.records > 0
        self._dispatcher.is_deferring = False
        self._queues.visibility.restore(min(checkpoint.confirm_phy_offset, result.end))
        self._log.end_at(
            result.end,
            last_record=result.last_record,
            synced_until=min(whole, result.end),
            must_cut=not is_clean or result.is_cut,
        )
        self._progress("recovered", 1.0)
