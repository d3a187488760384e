"""Flushes the files derived from the commit log, and advances the checkpoints.

Every `flushIntervalConsumeQueue` the queue files with enough new units are synced. Every
`flushConsumeQueueThoroughInterval`, and after LOG_BYTES_MAX of new log at the latest, all queue
files, the key index and the index of DLedger entries are synced: a thorough flush. The checkpoints
then advance to the state at the start of the flush. The order is commit log, queues and indexes,
checkpoints, so that a checkpoint never covers unsynced data. A store may have tens of thousands of
queues, so each tick writes the units of a few queues; units that arrive meanwhile are flushed
early, which is harmless. Changed slots of the key index are written in SLOT_SHARES shares per
`flushConsumeQueueThoroughInterval`, without a sync: neither memory nor disk then has to take the
whole table, 20 MB, at once. Only a thorough flush without waiting slots advances RocketMQ's
checkpoint of the index. Compatible with RocketMQ's FlushConsumeQueueService.
"""

import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core_broker.config import BrokerConfig
from core_broker.store.checkpoint import (
    Checkpoint,
    DispatchCheckpoint,
    QueueRanges,
    save_checkpoint,
    save_dispatch_checkpoint,
)
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.files import Files, SyncFailed
from core_broker.store.flusher import PAGE_BYTES, Flusher
from core_broker.store.full_disk import is_disk_full
from core_broker.store.health import Health
from core_broker.store.io_threads import SerialExecutor
from core_broker.store.key_index import IndexFlush
from core_broker.store.layout import StoreParts, StorePaths

#: Maximum new log between two checkpoints, bytes; bounds the log that a restart reads again.
LOG_BYTES_MAX = 64 * 1024 * 1024
#: Parts in which the slots of the key index are written.
SLOT_SHARES = 32
#: Limits of one slice: queues written, and queues visited.
WRITES_PER_SLICE = 100
QUEUES_PER_SLICE = 5_000

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Collection:
    """State of the log at the start of a thorough flush, and the queues written since."""

    offset_physical: int
    min_physical: int
    last_record: int
    store_timestamp: int
    queues: Sequence[ConsumeQueue]
    done: int = 0
    ranges: QueueRanges = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Pass:
    """One thorough flush: the files to sync, and the new checkpoints."""

    queue_paths: dict[Path, int]
    #: Index files of a DLedger commit log.
    entry_paths: set[Path]
    index: list[IndexFlush]
    checkpoint: Checkpoint
    dispatch: DispatchCheckpoint


class Checkpointer:
    """Flushes the files derived from the log. Event loop only, except the jobs."""

    def __init__(
        self,
        parts: StoreParts,
        flusher: Flusher,
        executor: SerialExecutor,
        files: Files,
        paths: StorePaths,
        settings: Callable[[], BrokerConfig],
    ) -> None:
        self._log, self._queues, self._index = parts.log, parts.queues, parts.index
        self._flusher = flusher
        self._executor = executor
        self._files = files
        self._paths = paths
        self._settings = settings
        self._is_running = False
        self._collecting: _Collection | None = None
        self._last_pass_ms = 0
        self._last_thorough_ms = 0
        self._last_slots_ms = 0
        self._last_offset = 0
        self._last_index_timestamp = 0
        self._is_requested = False

    def request(self) -> None:
        """Advance the checkpoints with the next tick, so that a restart cannot undo a removal."""
        self._is_requested = True
        self._collecting = None

    def tick(self, now_ms: int, store_timestamp: int) -> None:
        """Start the flushes that are due.

        `store_timestamp` is the store time of the newest message, ms. May raise OSError.
        """
        if self._collecting is not None:
            self._go_on(self._collecting)
            return
        if self._is_running:
            return
        config = self._settings()
        if now_ms - self._last_pass_ms >= config.flush_interval_consume_queue:
            self._last_pass_ms = now_ms
            self._start_pass(now_ms, store_timestamp, config)
        share_ms = config.flush_consume_queue_thorough_interval // SLOT_SHARES
        if not self._is_busy and now_ms - self._last_slots_ms >= share_ms:
            self._last_slots_ms = now_ms
            self._start_share()

    @property
    def _is_busy(self) -> bool:
        return self._is_running or self._collecting is not None

    def _start_pass(self, now_ms: int, store_timestamp: int, config: BrokerConfig) -> None:
        interval_ms = config.flush_consume_queue_thorough_interval
        is_thorough = (
            now_ms - self._last_thorough_ms >= interval_ms
            or self._log.written - self._last_offset >= LOG_BYTES_MAX
        )
        is_new = (
            self._log.written > self._last_offset
            or self._index.complete_timestamp > self._last_index_timestamp
        )
        if self._is_requested or (is_thorough and is_new):
            self._last_thorough_ms = now_ms
            self._is_requested = False
            self._collecting = self._begin(store_timestamp)
            self._go_on(self._collecting)
        else:
            least = config.flush_consume_queue_least_pages * PAGE_BYTES
            self._start_partial(self._queues.take_dirty(max(least, 1)))

    def _start_share(self) -> None:
        """Write the next changed slots of the index, if any."""
        share = self._index.take_slot_share(SLOT_SHARES)
        if share is None:
            return
        self._is_running = True

        def done(error: Exception | None) -> None:
            self._is_running = False
            self._index.share_written(share, is_done=error is None)
            if error is not None:
                self._report(error)

        self._executor.submit(share.run, done)

    def _start_partial(self, paths: dict[Path, int]) -> None:
        if not paths:
            return
        self._is_running = True

        def done(error: Exception | None) -> None:
            self._is_running = False
            if error is not None:
                self._queues.mark_dirty(paths)
                self._report(error)

        self._executor.submit(lambda: sync_files(self._files, paths), done)

    def _go_on(self, collection: _Collection) -> None:
        if self._collect(collection, WRITES_PER_SLICE, QUEUES_PER_SLICE):
            self._collecting = None
            self._start_thorough(self._take(collection))

    def _start_thorough(self, taken: _Pass) -> None:
        self._is_running = True

        def done(error: Exception | None) -> None:
            self._is_running = False
            self._finish(taken, error)

        def when_flushed(is_flushed: bool) -> None:
            if is_flushed:
                self._executor.submit(lambda: self._run(taken), done)
            else:
                done(OSError("the commit log was not flushed in time"))

        # Queues and index may contain messages newer than the start of the flush.
        self._flusher.wait(self._log.written, when_flushed)

    def run_now(self, store_timestamp: int) -> None:
        """Flush queues and index and advance the checkpoints, synchronously.

        For start and stop, without traffic and with the log flushed. Raises OSError.
        """
        collection = self._begin(store_timestamp)
        self._collect(collection, sys.maxsize, sys.maxsize)
        taken = self._take(collection, with_slots=True)
        try:
            self._run(taken)
        except OSError as error:
            self._finish(taken, error)
            raise
        self._finish(taken, None)

    def run_at_start(self, store_timestamp: int, health: Health) -> None:
        """Advance the checkpoints after a recovery; on a full disk, a later tick does."""
        if health.has_postponed:
            self.request()
            return
        try:
            self.run_now(store_timestamp)
        except OSError as error:
            if not is_disk_full(error):
                raise
            self.request()
            health.set_lag(str(error))

    def _begin(self, store_timestamp: int) -> _Collection:
        log = self._log
        return _Collection(
            log.written,
            log.min_offset,
            log.last_record,
            store_timestamp,
            list(self._queues),
        )

    def _collect(self, collection: _Collection, writes: int, queues: int) -> bool:
        """Write the units of the next queues; return True after the last. May raise OSError."""
        end = min(collection.done + queues, len(collection.queues))
        while collection.done < end and writes > 0:
            queue = collection.queues[collection.done]
            if queue.is_unwritten:
                writes -= queue.write_cost
                self._queues.write_tail(queue)
            _note_range(collection.ranges, queue)
            collection.done += 1
        return collection.done == len(collection.queues)

    def _take(self, collection: _Collection, *, with_slots: bool = False) -> _Pass:
        index = self._index.take_flushes(with_slots=with_slots)
        stored_at, entries = collection.store_timestamp, self._log.entries
        return _Pass(
            self._queues.take_dirty(),
            set() if entries is None else entries.take_dirty(),
            index,
            Checkpoint(
                stored_at,
                stored_at,
                self._index.complete_timestamp,
                confirm_phy_offset=self._queues.visibility.confirmed,
            ),
            DispatchCheckpoint(
                collection.offset_physical,
                collection.min_physical,
                collection.last_record,
                collection.ranges,
                self._index.ends(),
                self._log.segment_size,
            ),
        )

    def _run(self, taken: _Pass) -> None:
        sync_files(self._files, taken.queue_paths)
        sync_files(self._files, taken.entry_paths)
        for flush in taken.index:
            flush.run()
        if taken.index:
            self._files.sync_dir(self._index.folder)
        save_dispatch_checkpoint(self._files, self._paths.dispatch_checkpoint, taken.dispatch)
        save_checkpoint(self._files, self._paths.checkpoint, taken.checkpoint)

    def _finish(self, taken: _Pass, error: Exception | None) -> None:
        self._index.flushed(taken.index, is_done=error is None)
        if error is None:
            self._last_offset = taken.dispatch.offset_physical
            self._last_index_timestamp = taken.checkpoint.index_msg_timestamp
        else:
            self._queues.mark_dirty(taken.queue_paths)
            if self._log.entries is not None:
                self._log.entries.mark_dirty(taken.entry_paths)
            self._report(error)

    def _report(self, error: Exception) -> None:
        reason = f"flushing consume queues and index failed: {error}"
        if isinstance(error, SyncFailed):
            self._flusher.fail(reason)
        else:
            log.error("The checkpoint is not advanced: %s", reason)


def sync_files(files: Files, paths: Iterable[Path]) -> None:
    """Sync files and their folders; skip deleted files."""
    folders = set()
    for path in paths:
        folders.add(path.parent)
        try:
            file = files.open(path)
        except FileNotFoundError:
            continue  # the topic was deleted meanwhile
        try:
            file.sync()
        finally:
            file.close()
    for folder in folders:
        if files.exists(folder):
            files.sync_dir(folder)


def queue_ranges(queues: Iterable[ConsumeQueue]) -> QueueRanges:
    """Return the first and the end offset of each queue with messages."""
    ranges: QueueRanges = {}
    for queue in queues:
        _note_range(ranges, queue)
    return ranges


def _note_range(ranges: QueueRanges, queue: ConsumeQueue) -> None:
    if queue.end_offset:
        found = (queue.min_offset, queue.end_offset)
        ranges.setdefault(queue.topic, {})[queue.queue_id] = found
