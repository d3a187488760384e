"""The message store of a broker.

The event loop owns the store and never waits for the disk: a put only stages bytes, `write_staged`
passes the staged bytes of an event-loop iteration to the operating system in one call, and all long
operations run in I/O threads (io_threads.py). layout.py lists the files. Compatible with RocketMQ's
DefaultMessageStore.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from core_broker.config import BrokerConfig
from core_broker.errors import StoreReadOnly
from core_broker.message.model import MessageInner
from core_broker.store.abort_file import write_abort_file
from core_broker.store.consume_queues import ArrivalListener
from core_broker.store.files import DiskFiles, Files
from core_broker.store.flusher import FlushCallback
from core_broker.store.io_threads import ExecutorMaker, IoThread
from core_broker.store.key_query import query_result
from core_broker.store.property_filter import PropertyFilter
from core_broker.store.reader import Accept, physical_memory
from core_broker.store.recent_units import check_recent_units
from core_broker.store.recovery import Progress, Recovery
from core_broker.store.replica import Replica
from core_broker.store.results import (
    GetResult,
    GetStatus,
    PutResult,
    QueryResult,
    QueueUnit,
)
from core_broker.store.stats import StoreStats
from core_broker.store.store_locks import StoreLocks
from core_broker.store.truncator import Truncator
from core_broker.store.workers import Workers, wall_clock_ms

#: Interval of `tick`, seconds.
TICK_S = 0.1
#: Maximum cost of the unit writes of one tick, in writes to existing queue files.
WRITES_PER_TICK = 100

log = logging.getLogger(__name__)


class MessageStore:
    """One store folder. Call `load` first, then `start`; `close` comes last."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        files: Files | None = None,
        clock_ms: Callable[[], int] = wall_clock_ms,
        executors: ExecutorMaker = IoThread,
        memory_bytes: int | None = None,
    ) -> None:
        #: The settings; replaced as a whole when updatable settings change.
        self.config = config
        self._files: Files = files if files is not None else DiskFiles()
        workers = Workers(
            self._settings, self._files, clock_ms, executors, memory_bytes or physical_memory()
        )
        self._paths, self._open_files = workers.paths, workers.open_files
        self._parts = parts = workers.parts
        self._log, self._queues = parts.log, parts.queues
        #: The entries of a DLedger commit log; None for another log.
        self.entries = parts.log.entries
        self.health = self._health = workers.health
        self._meter, self._counters = workers.meter, workers.meter.counters
        self.put_times = workers.meter.put_times
        self._damage = workers.damage
        self._executors = workers.executors
        #: Runs cold reads in I/O threads.
        self.cold_reads = workers.cold_reads
        self._dispatcher = workers.dispatcher
        self._flusher = workers.flusher
        self._preallocator = workers.preallocator
        self._appender = workers.appender
        self.fast_writes = workers.fast_writes
        #: Stages the records that a fast path holds (fast_writes.py).
        self.stage_pending = workers.appender.stage_pending
        #: Writes the iteration's messages, and shows them; after StoreReadOnly none is stored.
        self.write_staged = workers.appender.write_staged
        #: Writes the log of a slave; epochs and confirm offset count under controllers.
        self.replica = Replica(workers)
        self.epochs, self.gate = workers.epochs, workers.gate
        self._checkpointer = workers.checkpointer
        #: Truncates the paused store; `start` needs a finished truncation.
        self.truncator = Truncator(workers, self._files)
        self._postponed = workers.postponed
        self._retention = workers.retention
        self._unit_check, self._repairs = workers.unit_check, workers.repairs
        self._removal = workers.removal
        self._reader = workers.reader
        self.fast_reads = workers.fast_reads
        self._stats = workers.stats
        self._locks: StoreLocks | None = None
        self._timer: asyncio.TimerHandle | None = None

    def _settings(self) -> BrokerConfig:
        return self.config

    # -- life --

    def load(self, progress: Progress | None = None) -> None:
        """Lock, load and recover the folder; may take long, so call before the event loop starts.

        Raises StoreLocked when another broker uses the folder or the log, and StoreCorrupt when
        segments of the commit log are missing or have a wrong size. `progress` is called with the
        name of the current step and its finished share, 0.0 to 1.0.
        """
        self._files.make_dir(self._paths.root)
        self._locks = StoreLocks(self._files, self._paths)
        try:
            self._locks.lock_parts(self.config)
            self.truncator.resume()
            recovered = Recovery(
                self._parts,
                self._dispatcher,
                self._files,
                self._paths,
                self.config,
                progress or (lambda what, share: None),
                self._damage,
            ).run()
            self._appender.store_timestamp = recovered.store_timestamp
            self._reader.earliest_timestamp()
            check_recent_units(self._parts, self._unit_check, self._repairs.replace)
            self._postponed.attempt(self._log.prepare, self._log.activate)
            if recovered.must_checkpoint:
                timestamp = self._appender.store_timestamp
                self._checkpointer.run_at_start(timestamp, self._health)
        except BaseException:
            self._release()
            raise

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to accept messages on this event loop; on a full disk, start to serve reads.

        Raises StoreReadOnly while a truncation is unfinished.
        """
        if self.truncator.pending is not None:
            raise StoreReadOnly("a truncation of the commit log is unfinished")
        self._postponed.attempt(partial(write_abort_file, self._files, self._paths.abort))
        for executor in self._executors:
            executor.start(loop)
        self._open_files.is_serving = True
        self._health.set_open(True)
        self._timer = loop.call_later(TICK_S, self._on_timer, loop)
        if not self._health.has_postponed:
            self._preallocator.advance()

    def pause(self) -> None:
        """Write and flush all data, and stop until `start`; waits for the disk."""
        if self._timer is not None:
            self._timer.cancel()
        try:
            self.write_staged()
        except StoreReadOnly as error:
            log.warning("Messages that were not acknowledged are dropped: %s", error)
        self._health.set_open(False)
        self._open_files.is_serving = False
        for executor in self._executors:
            executor.close()
        self._flusher.flush()

    def reload(self) -> None:
        """Load the paused store again; errors as in `load`, the store is then closed."""
        self._release()
        self._queues.close()
        self._retention.finish()
        self.load()

    def close(self) -> None:
        """Write and sync all data, and release the folder. Waits for the disk."""
        if self._locks is None:
            return
        self.pause()
        try:
            if not (self._health.has_failed or self._health.has_postponed):
                self._dispatcher.settle()
                self._checkpointer.run_now(self._appender.store_timestamp)
                self._files.remove(self._paths.abort)
                self._files.sync_dir(self._paths.root)
        except OSError as error:
            log.warning("Closing the store failed, the next start will recover it: %s", error)
        finally:
            self._release()

    def _release(self) -> None:
        self._log.close()
        if self.entries is not None:
            self.entries.close()
        self._parts.index.close()
        self._open_files.close()
        if self._locks is not None:
            self._locks.release()
            self._locks = None

    def _on_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(TICK_S, self._on_timer, loop)
        self.tick(int(loop.time() * 1000))

    def tick(self, now_ms: int) -> None:
        """Run periodic work; `now_ms` is the monotonic clock. A timer of the store calls `tick`."""
        self._meter.tick(now_ms)
        self._retention.tick(now_ms)
        self._postponed.tick(now_ms)
        if self._health.has_postponed:
            return
        self._flusher.tick(now_ms)
        self._preallocator.advance()
        try:
            self._dispatcher.settle()
            self._queues.write_tails(WRITES_PER_TICK)
            self._checkpointer.tick(now_ms, self._appender.store_timestamp)
        except OSError as error:
            self._health.set_lag(str(error))
        else:
            self._health.set_lag(None)

    # -- state --

    @property
    def writable(self) -> bool:
        """True while the store accepts messages; never on a slave."""
        return self.read_only_reason is None and not self.is_replica

    @property
    def is_replica(self) -> bool:
        """True on a slave: the log is a copy of its master's log."""
        return self._appender.is_replica

    @property
    def read_only_reason(self) -> str | None:
        """The reason for refusing messages, or None."""
        if self._health.reason is None and self._preallocator.is_disk_full:
            return "the disk of the commit log is full"
        return self._health.reason

    @property
    def min_offset_physical(self) -> int:
        """Start of the oldest segment of the log."""
        return self._log.min_offset

    @property
    def max_offset_physical(self) -> int:
        """End of the written log."""
        return self._log.written

    @property
    def arrival_listeners(self) -> list[ArrivalListener]:
        """Listeners, called for each queue in which messages became visible."""
        return self._appender.listeners

    @property
    def write_listeners(self) -> list[Callable[[], None]]:
        """Listeners, called after each write to the log. They must be short and not raise."""
        return self._appender.write_listeners

    # -- put --

    def put(self, inner: MessageInner) -> PutResult:
        """Stage one message, to be acknowledged after `write_staged`."""
        return self._appender.put(inner)

    def put_batch(self, inners: Sequence[MessageInner]) -> list[PutResult]:
        """Stage messages contiguously, all of them or none; results are in message order."""
        return self._appender.put_batch(inners)

    def run_flush_callbacks_by(self, run: Callable[[Callable[[], None]], None]) -> None:
        """Let `run` call the callbacks of each flush, within one call."""
        self._flusher.run_callbacks = run

    def on_flushed(self, end_offset: int, callback: FlushCallback) -> None:
        """Call back on the loop when all bytes before a physical offset are on the disk.

        The argument is True after a flush, False after a failure or `syncFlushTimeout`. The
        callback may run before `on_flushed` returns.
        """
        self._flusher.wait(end_offset, callback)

    # -- read --
    # While the broker serves, all methods but `query` may raise ColdRead; `query` awaits the read.

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int,
        max_bytes: int | None = None,
        accept: Accept | None = None,
        by_properties: PropertyFilter | None = None,
        *,
        is_counted: bool = True,
    ) -> GetResult:
        """Read messages of a queue from an offset on, filtered by tags code and properties.

        Bounded by `maxTransfer…OnMessageInMemory` and `…InDisk` besides the arguments. With
        `is_counted` False, messages found are missing in totals and rates of the statistics.
        """
        queue = self._queues.get(topic, queue_id)
        result = self._reader.get(queue, offset, max_count, max_bytes, accept, by_properties)
        if result.status is not GetStatus.FOUND:
            self._counters.get_missed += 1
        elif is_counted:
            self._counters.get_found += 1
            self._counters.get_messages += len(result.records)
        return result

    def queue_range(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Return the first and the end offset of a queue; (0, 0) without the queue."""
        queue = self._queues.get(topic, queue_id)
        return (queue.min_offset, queue.max_offset) if queue is not None else (0, 0)

    def queue_units(self, topic: str, queue_id: int, offset: int, count: int) -> list[QueueUnit]:
        """Return up to `count` consume-queue units from an offset on."""
        queue = self._queues.get(topic, queue_id)
        return list(queue.units(offset, count)) if queue is not None and offset >= 0 else []

    def repair_unit(self, topic: str, queue_id: int, offset: int) -> None:
        """Raise ColdRead when the unit of a message is damaged, to be rebuilt by the cold read.

        Returns when the unit cannot be rebuilt. For readers of `queue_units` and `read_at`.
        """
        queue = self._queues.get(topic, queue_id)
        if queue is not None:
            self._repairs.require(queue, offset)

    def read_at(self, offset_physical: int, size: int | None = None) -> bytes | None:
        """Return the record at a physical offset, or None without one."""
        return self._reader.record(offset_physical, size)

    def read_log(self, offset_physical: int, size: int) -> bytes | bytearray:
        """Return bytes of the log as they are, for replication.

        Fewer than `size` at the end of a segment or of the written log; empty without the offset.
        """
        return self._log.read_span(offset_physical, size)

    def log_segment_start(self, offset_physical: int) -> int:
        """Return the offset at which the segment with an offset begins."""
        return self._log.segment_end(offset_physical) - self._log.segment_size

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """Return the offset of the message stored closest to a time; 0 without the queue."""
        queue = self._queues.get(topic, queue_id)
        return self._reader.offset_by_time(queue, timestamp_ms) if queue is not None else 0

    def store_time_of(self, topic: str, queue_id: int, offset: int) -> int:
        """Return the store time of a message, ms; -1 without the message."""
        queue = self._queues.get(topic, queue_id)
        return self._reader.store_time_of(queue, offset) if queue is not None else -1

    async def query(
        self, topic: str, key: str, max_count: int, begin_ms: int, end_ms: int
    ) -> QueryResult:
        """Find messages by key in a range of store times, oldest first.

        The result may contain messages with other keys of the same hash; clients compare keys.
        """
        search = self._reader.search(topic, key, max_count, begin_ms, end_ms)
        await self.cold_reads.ran(partial(search.run, self._files))
        return await query_result(self._reader, self.cold_reads, search)

    # -- administration --

    def topics_on_disk(self) -> list[str]:
        """Return the topics with consume queues."""
        return self._queues.topics()

    def delete_topic(self, topic: str) -> None:
        """Remove the queues of a topic; messages stay in the log until they expire."""
        self.stage_pending()
        if self._removal.remove_topic(topic):
            self._checkpointer.request()

    def clean_expired_queues(self) -> int:
        """Remove queues without messages in the log; return their number."""
        self.stage_pending()
        count = self._removal.remove_expired()
        if count:
            self._checkpointer.request()
        return count

    def delete_expired_files(self) -> None:
        """Delete segments older than `fileReservedTime` now, at any hour."""
        self._retention.delete_now()

    def stats(self) -> StoreStats:
        """Return the current statistics."""
        return self._stats.now()
