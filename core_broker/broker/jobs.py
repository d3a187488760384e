"""Periodic jobs of a broker."""

import asyncio
import logging
import time
from collections.abc import Callable

from core_broker.processors.context import BrokerContext, ConfigTable
from core_broker.processors.groups import disable_slow_groups
from core_broker.processors.table import RequestTable
from core_broker.remoting.loop_watchdog import LoopWatchdog
from core_broker.state.channels import SCAN_INTERVAL_MS
from core_broker.state.day_totals import Totals
from core_broker.state.long_poll import DEADLINE_STEP_MS
from core_broker.state.queue_locks import LOCK_LIVE_MS
from core_broker.state.slow_groups import PROTECT_INTERVAL_MS
from core_broker.state.statistics import SAMPLE_INTERVAL_MS

log = logging.getLogger(__name__)

_DAY_CHECK_MS = 1_000
_STORE_CHECK_MS = 100
_SAVE_RETRY_MS = 1_000
#: Interval between writes of a changed consumerFilter.json.
FILTERS_SAVED_MS = 10_000


class Jobs:
    """Runs the jobs as tasks; a failed job is logged and runs again after its interval.

    The watchdog knows each job by its name.
    """

    def __init__(self, ctx: BrokerContext, requests: RequestTable, watchdog: LoopWatchdog) -> None:
        self._ctx = ctx
        self._watchdog = watchdog
        self._requests = requests
        self._tasks: list[asyncio.Task[None]] = []
        self._saved_offsets = ctx.offsets.changes
        self._saved_delays = ctx.delay_progress.changes
        self._saved_filters = ctx.filters.changes
        self._has_told_failure = False
        self._today = time.localtime().tm_yday

    def start(self) -> None:
        """Start the jobs; intervals that are settings may be updated while the broker runs."""
        ctx = self._ctx
        now_ms = ctx.now_ms
        pulls, clients = self._requests.pulls, self._requests.clients
        for name, interval_ms, job in (
            ("expire_pulls", lambda: DEADLINE_STEP_MS, pulls.expire),
            ("close_silent_clients", lambda: SCAN_INTERVAL_MS, clients.close_silent),
            ("expire_locks", lambda: LOCK_LIVE_MS, lambda: ctx.locks.expire(now_ms())),
            (
                "sample_statistics",
                lambda: SAMPLE_INTERVAL_MS,
                lambda: ctx.statistics.sample(now_ms()),
            ),
            ("save_offsets", lambda: ctx.config.flush_consumer_offset_interval, self.save_offsets),
            ("save_delays", lambda: ctx.config.flush_delay_offset_interval, self.save_delays),
            ("save_filters", lambda: FILTERS_SAVED_MS, self.save_filters),
            ("disable_slow_groups", lambda: PROTECT_INTERVAL_MS, lambda: disable_slow_groups(ctx)),
            ("retry_saves", lambda: _SAVE_RETRY_MS, ctx.retry_saves),
            ("watch_day", lambda: _DAY_CHECK_MS, self._watch_day),
            ("watch_store", lambda: _STORE_CHECK_MS, self._watch_store),
        ):
            work = _repeat(name, interval_ms, job, self._watchdog)
            self._tasks.append(asyncio.get_running_loop().create_task(work))

    async def stop(self) -> None:
        """Cancel all jobs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def save_offsets(self) -> None:
        """Write consumerOffset.json when an offset was committed since the last write."""
        if self._ctx.offsets.changes != self._saved_offsets:
            self._saved_offsets = self._ctx.offsets.changes
            self._ctx.saver.save(ConfigTable.OFFSETS)

    def save_delays(self) -> None:
        """Write delayOffset.json when a delayed message was delivered since the last write."""
        if self._ctx.delay_progress.changes != self._saved_delays:
            self._saved_delays = self._ctx.delay_progress.changes
            self._ctx.saver.save(ConfigTable.DELAYS)

    def save_filters(self) -> None:
        """Remove expired filters, and write consumerFilter.json when a filter changed."""
        self._ctx.filters.clean(self._ctx.now_ms())
        if self._ctx.filters.changes != self._saved_filters:
            self._saved_filters = self._ctx.filters.changes
            self._ctx.saver.save(ConfigTable.FILTERS)

    def _watch_day(self) -> None:
        today = time.localtime().tm_yday
        if today != self._today:
            self._today = today
            stats = self._ctx.store.stats()
            totals = Totals(stats.put_times_total, stats.get_transferred_messages)
            self._ctx.day_totals.day_begins(totals, self._ctx.now_ms())

    def _watch_store(self) -> None:
        """Register without write permission at once when the store has failed."""
        if self._ctx.store.health.has_failed and not self._has_told_failure:
            self._has_told_failure = True
            self._ctx.topics.touch(self._ctx.now_ms())
            self._ctx.registrar.all_changed()


async def _repeat(
    name: str, interval_ms: Callable[[], int], job: Callable[[], None], watchdog: LoopWatchdog
) -> None:
    while True:
        await asyncio.sleep(interval_ms() / 1000)
        begin = watchdog.begin()
        try:
            job()
        except Exception:
            log.exception("the periodic job %s failed", name)
        watchdog.end(begin, name)
