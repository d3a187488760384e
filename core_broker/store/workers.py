"""The workers of a store: each owns one kind of work on the log and the files derived from it."""

import time
from collections.abc import Callable

from core_broker.config import BrokerConfig
from core_broker.message.delays import parse_delay_levels
from core_broker.store.appender import Appender
from core_broker.store.checkpointer import Checkpointer
from core_broker.store.cold_reads import READ_THREADS, WAITING_MAX, ColdReads
from core_broker.store.damage import Damage
from core_broker.store.dispatcher import Dispatcher
from core_broker.store.epoch_log import EpochLog
from core_broker.store.fast_reads import FastReads
from core_broker.store.fast_writes import FastWrites
from core_broker.store.files import Files
from core_broker.store.flusher import Flusher
from core_broker.store.health import Health
from core_broker.store.io_threads import ExecutorMaker
from core_broker.store.key_hash import KeyHasher
from core_broker.store.layout import make_parts, store_paths
from core_broker.store.postponed import PostponedSteps
from core_broker.store.preallocation import Preallocator
from core_broker.store.read_gate import ReadGate
from core_broker.store.reader import Reader
from core_broker.store.removal import Removal
from core_broker.store.retention import Retention
from core_broker.store.segments import OpenFiles
from core_broker.store.stats import Counters, RateMeter
from core_broker.store.stats_collector import StatsCollector
from core_broker.store.unit_check import UnitCheck
from core_broker.store.unit_repairs import UnitRepairs

#: Maximum number of open files, besides the files being written.
OPEN_FILES_MAX = 256


def wall_clock_ms() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Workers:
    """Creates and connects the workers; no file is opened yet.

    `settings` returns the current settings, which may be replaced as a whole.
    """

    def __init__(
        self,
        settings: Callable[[], BrokerConfig],
        files: Files,
        clock_ms: Callable[[], int],
        executors: ExecutorMaker,
        memory_bytes: int,
    ) -> None:
        config = settings()
        self.paths = paths = store_paths(config)
        self.open_files = OpenFiles(files, OPEN_FILES_MAX)
        self.parts = parts = make_parts(config, files, paths, self.open_files)
        self.health = health = Health()
        self.meter = RateMeter(Counters())
        self.damage = Damage()
        flushing, preallocating, upkeep = work_executors = [
            executors(name) for name in ("store-flush", "store-preallocation", "store-upkeep")
        ]
        read_executors = [executors(f"store-read-{number}") for number in range(READ_THREADS)]
        repairing = executors("store-repair")
        self.executors = [*work_executors, *read_executors, repairing]
        self.cold_reads = ColdReads(read_executors, repairing, self.open_files.warmed, WAITING_MAX)
        hasher = KeyHasher()
        delay_levels_ms = parse_delay_levels(config.message_delay_level)
        self.unit_check = UnitCheck(delay_levels_ms, has_ext=files.exists(paths.queues_ext))
        repair_check = UnitCheck(delay_levels_ms, has_ext=files.exists(paths.queues_ext))
        self.repairs = UnitRepairs(parts, files, repair_check, self.damage)
        self.dispatcher = Dispatcher(
            parts.queues,
            parts.index,
            hasher,
            delay_levels_ms,
            is_indexing=config.message_index_enable,
        )
        self.flusher = Flusher(parts.log, files, flushing, settings, health.fail)
        is_sync = config.flush_disk_type == "SYNC_FLUSH"
        self.preallocator = Preallocator(
            parts.log, files, preallocating, self.flusher.fail, is_synced=is_sync
        )
        self.appender = Appender(
            parts,
            self.dispatcher,
            self.flusher,
            self.preallocator,
            health,
            self.meter.counters,
            settings,
            clock_ms,
        )
        self.fast_writes = FastWrites(parts, self.appender)
        self.epochs = EpochLog(files, paths.epochs)
        self.gate = ReadGate(parts, self.appender)
        self.checkpointer = Checkpointer(parts, self.flusher, upkeep, files, paths, settings)
        self.postponed = PostponedSteps(upkeep, health)
        self.retention = Retention(
            parts, upkeep, files, self.epochs, health, settings, clock_ms, self.cold_reads.warm
        )
        self.removal = Removal(parts, files, paths.trash, self.retention.trash)
        self.reader = Reader(
            parts, hasher, settings, memory_bytes, self.damage, self.repairs, self.unit_check
        )
        self.fast_reads = FastReads(parts, self.reader, self.meter)
        observed = self.appender, self.flusher, self.retention, self.reader, self.cold_reads
        self.stats = StatsCollector(self.meter, parts.log, *observed, self.damage)
