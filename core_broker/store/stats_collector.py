"""The statistics of a store, collected from its parts."""

from core_broker.store.appender import Appender
from core_broker.store.cold_reads import ColdRead, ColdReads
from core_broker.store.commit_log import CommitLog
from core_broker.store.damage import Damage
from core_broker.store.flusher import Flusher
from core_broker.store.reader import Reader
from core_broker.store.retention import Retention
from core_broker.store.stats import RateMeter, StoreStats


class StatsCollector:
    """Collects StoreStats from the parts of a store. Event loop only."""

    def __init__(
        self,
        meter: RateMeter,
        log: CommitLog,
        appender: Appender,
        flusher: Flusher,
        retention: Retention,
        reader: Reader,
        cold: ColdReads,
        damage: Damage,
    ) -> None:
        self._meter = meter
        self._log, self._appender, self._flusher = log, appender, flusher
        self._retention, self._reader = retention, reader
        self._cold, self._damage = cold, damage

    def now(self) -> StoreStats:
        """Return the current statistics."""
        counters, put_times = self._meter.counters, self._meter.put_times
        put_tps, found_tps, missed_tps, transferred_tps = self._meter.rates()
        return StoreStats(
            put_times_total=counters.put_times,
            put_size_total=counters.put_bytes,
            put_failed_times=counters.put_failed,
            put_entire_time_max_ms=int(put_times.longest_s * 1000),
            put_p99_ms=put_times.percentile_ms(0.99),
            put_p999_ms=put_times.percentile_ms(0.999),
            put_distribution=put_times.distribution(),
            get_found_times=counters.get_found,
            get_missed_times=counters.get_missed,
            get_transferred_messages=counters.get_messages,
            put_tps=put_tps,
            get_found_tps=found_tps,
            get_missed_tps=missed_tps,
            get_transferred_tps=transferred_tps,
            commit_log_min_offset=self._log.min_offset,
            commit_log_max_offset=self._log.written,
            flushed_offset=self._log.flushed,
            flush_times=self._flusher.flushes,
            flush_waiters=self._flusher.waiting,
            commit_log_disk_ratio=self._retention.log_ratio,
            consume_queue_disk_ratio=self._retention.queue_ratio,
            earliest_message_timestamp=self._earliest_timestamp(),
            write_time_ms=int(self._appender.write_time_s * 1000),
            damaged_places=self._damage.count,
            repaired_units=self._damage.repaired,
            waiting_reads=self._cold.waiting,
        )

    def _earliest_timestamp(self) -> int:
        """Store time of the first message, ms; -1 while the read after a deletion is pending."""
        try:
            return self._reader.earliest_timestamp()
        except ColdRead as cold:
            self._cold.warm(cold, lambda error: None)
            return -1
