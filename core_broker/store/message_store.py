"""The message store of a broker.

The event loop owns the store and never waits for the disk: a put only stages bytes, `write_staged`
passes the staged bytes of an event-loop iteration to the operating system in one call, and all long
operations run in I/O threads (io_threads.py). layout.py lists the files. Compatible with RocketMQ's
DefaultMessageStore.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from core_broker.config import BrokerConfig
from core_broker.errors import StoreReadOnly
from core_broker.message.delays import parse_delay_levels
from core_broker.message.model import MessageInner
from core_broker.store.appender import Appender
from core_broker.store.checkpointer import Checkpointer
from core_broker.store.cold_reads import READ_THREADS, WAITING_MAX, ColdReads
from core_broker.store.consume_queues import ArrivalListener
from core_broker.store.damage import Damage
from core_broker.store.dispatcher import Dispatcher
from core_broker.store.fast_reads import FastReads
from core_broker.store.fast_writes import FastWrites
from core_broker.store.files import DiskFiles, Files, replace_file
from core_broker.store.flusher import FlushCallback, Flusher
from core_broker.store.health import Health
from core_broker.store.io_threads import ExecutorMaker, IoThread
from core_broker.store.key_hash import KeyHasher
from core_broker.store.layout import StorePaths, make_parts
from core_broker.store.preallocation import Preallocator
from core_broker.store.property_filter import PropertyFilter
from core_broker.store.reader import Accept, Reader, physical_memory
from core_broker.store.recovery import Progress, Recovery
from core_broker.store.removal import Removal
from core_broker.store.results import (
    GetResult,
    GetStatus,
    PutResult,
    QueryResult,
    QueueUnit,
)
from core_broker.store.retention import Retention
from core_broker.store.segments import OpenFiles
from core_broker.store.stats import Counters, RateMeter, StoreStats
from core_broker.store.stats_collector import StatsCollector
from core_broker.store.store_lock import Lock

#: Interval of `tick`, seconds.
TICK_S = 0.1
#: Maximum cost of the unit writes of one tick, in writes to existing queue files.
WRITES_PER_TICK = 100
#: Maximum number of open files, besides the files being written.
OPEN_FILES_MAX = 256

log = logging.getLogger(__name__)


def wall_clock_ms() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000


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
        self._paths = StorePaths(Path(config.store_path_root_dir))
        self._open_files = OpenFiles(self._files, OPEN_FILES_MAX)
        self._parts = make_parts(config, self._files, self._paths, self._open_files)
        self._log, self._queues = self._parts.log, self._parts.queues
        self.health = self._health = Health()
        self._counters = Counters()
        self._meter = RateMeter(self._counters)
        self._flush_executor, self._prealloc_executor, self._upkeep_executor = work_executors = [
            executors(name) for name in ("store-flush", "store-preallocation", "store-upkeep")
        ]
        read_executors = [executors(f"store-read-{number}") for number in range(READ_THREADS)]
        self._executors = work_executors + read_executors
        #: Runs cold reads in I/O threads.
        self.cold_reads = ColdReads(read_executors, self._open_files.warmed, WAITING_MAX)
        self._damage = Damage()
        self._make_workers(clock_ms, memory_bytes or physical_memory())
        self._lock: Lock | None = None
        self._timer: asyncio.TimerHandle | None = None

    def _make_workers(self, clock_ms: Callable[[], int], memory_bytes: int) -> None:
        config, files, parts = self.config, self._files, self._parts
        hasher = KeyHasher()
        self._dispatcher = Dispatcher(
            parts.queues,
            parts.index,
            hasher,
            parse_delay_levels(config.message_delay_level),
            is_indexing=config.message_index_enable,
        )
        self._flusher = Flusher(
            parts.log, files, self._flush_executor, self._settings, self._health.fail
        )
        is_sync = config.flush_disk_type == "SYNC_FLUSH"
        self._preallocator = Preallocator(
            parts.log, files, self._prealloc_executor, self._flusher.fail, is_synced=is_sync
        )
        self._appender = Appender(
            parts,
            self._dispatcher,
            self._flusher,
            self._preallocator,
            self._health,
            self._counters,
            self._settings,
            clock_ms,
        )
        self.fast_writes = FastWrites(parts, self._appender)
        self._checkpointer = Checkpointer(
            parts, self._flusher, self._upkeep_executor, files, self._paths, self._settings
        )
        self._retention = Retention(
            parts,
            self._upkeep_executor,
            files,
            self._health,
            self._settings,
            clock_ms,
            self.cold_reads.warm,
        )
        self._removal = Removal(parts, files, self._paths.trash, self._retention.trash)
        self._reader = Reader(parts, hasher, self._settings, memory_bytes, self._damage)
        self.fast_reads = FastReads(parts, self._reader, self._meter)
        self._stats = StatsCollector(
            self._meter,
            parts.log,
            self._appender,
            self._flusher,
            self._retention,
            self._reader,
            self.cold_reads,
            self._damage,
        )

    def _settings(self) -> BrokerConfig:
        return self.config

    # -- life --

    def load(self, progress: Progress | None = None) -> None:
        """Lock, load and recover the folder; may take long, so call before the event loop starts.

        Raises StoreLocked when another broker uses the folder, and StoreCorrupt when segments of
        the commit log are missing or have a wrong size. `progress` is called with the name of the
        current step and its finished share, 0.0 to 1.0.
        """
        self._files.make_dir(self._paths.root)
        self._lock = self._files.lock(self._paths.lock)
        try:
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
            if recovered.must_checkpoint:
                self._checkpointer.run_now(self._appender.store_timestamp)
        except BaseException:
            self._release()
            raise

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to accept messages on this event loop."""
        replace_file(self._files, self._paths.abort, self._files.boot_id().encode())
        for executor in self._executors:
            executor.start(loop)
        self._open_files.is_serving = True
        self._health.set_open(True)
        self._timer = loop.call_later(TICK_S, self._on_timer, loop)
        self._preallocator.advance()

    def close(self) -> None:
        """Write and sync all data, and release the folder. Waits for the disk."""
        if self._lock is None:
            return
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
        try:
            if not self._health.has_failed:
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
        self._parts.index.close()
        self._open_files.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _on_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(TICK_S, self._on_timer, loop)
        self.tick(int(loop.time() * 1000))

    def tick(self, now_ms: int) -> None:
        """Run periodic work; `now_ms` is the monotonic clock. A timer of the store calls `tick`."""
        self._meter.tick(now_ms)
        self._flusher.tick(now_ms)
        self._preallocator.advance()
        self._retention.tick(now_ms)
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
        """True while the store accepts messages."""
        return self.read_only_reason is None

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

    # -- put --

    def put(self, inner: MessageInner) -> PutResult:
        """Stage one message, to be acknowledged after `write_staged`."""
        return self._appender.put(inner)

    def put_batch(self, inners: Sequence[MessageInner]) -> list[PutResult]:
        """Stage messages contiguously, all of them or none; results are in message order."""
        return self._appender.put_batch(inners)

    def stage_pending(self) -> None:
        """Stage the records that a fast path holds (fast_writes.py)."""
        self._appender.stage_pending()

    def write_staged(self) -> None:
        """Write the staged messages of this event-loop iteration and make them visible.

        Raises StoreReadOnly when the write fails; then no message of the iteration is stored.
        """
        self._appender.write_staged()

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
        `is_counted` False, the read is missing in totals and rates of the statistics.
        """
        queue = self._queues.get(topic, queue_id)
        result = self._reader.get(queue, offset, max_count, max_bytes, accept, by_properties)
        if not is_counted:
            return result
        if result.status is GetStatus.FOUND:
            self._counters.get_found += 1
            self._counters.get_messages += len(result.records)
        else:
            self._counters.get_missed += 1
        return result

    def queue_range(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Return the first and the end offset of a queue; (0, 0) without the queue."""
        queue = self._queues.get(topic, queue_id)
        return (queue.min_offset, queue.max_offset) if queue is not None else (0, 0)

    def queue_units(self, topic: str, queue_id: int, offset: int, count: int) -> list[QueueUnit]:
        """Return up to `count` consume-queue units from an offset on."""
        queue = self._queues.get(topic, queue_id)
        return list(queue.units(offset, count)) if queue is not None and offset >= 0 else []

    def read_at(self, offset_physical: int, size: int | None = None) -> bytes | None:
        """Return the record at a physical offset, or None without one."""
        return self._reader.record(offset_physical, size)

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
        return await self.cold_reads.when_warm(partial(self._reader.found, search))

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
