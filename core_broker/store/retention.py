"""Deletes old segments, and refuses messages while the disk is too full.

Segments are deleted, oldest first and never the last, when they were not written for
`fileReservedTime` hours and the local hour is in `deleteWhen`, or the disk usage is above
`diskMaxUsedSpaceRatio`. Above `diskSpaceCleanForciblyRatio` the age is ignored; above
`diskSpaceWarningLevelRatio` the store also refuses messages until space is free again. Files of
consume queues and indexes are deleted after the log, whole files only. Compatible with RocketMQ's
CleanCommitLogService and CleanConsumeQueueService.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from core_broker.config import BrokerConfig
from core_broker.store.cold_reads import ColdRead
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.epoch_log import EpochLog
from core_broker.store.files import Files
from core_broker.store.health import Health
from core_broker.store.io_threads import Done, SerialExecutor
from core_broker.store.layout import StoreParts

#: Maximum number of segments deleted by one round.
BATCH_MAX = 10
#: Rounds of a manual deletion, as in RocketMQ.
MANUAL_ROUNDS = 20
#: Queues checked for deletable files by one tick.
QUEUES_PER_TICK = 100
HOUR_MS = 3_600_000
#: Bounds of diskMaxUsedSpaceRatio, percent.
RATIO_MIN, RATIO_MAX = 10, 95
#: Minimum forward step of the wall clock that counts as a jump, ms; NTP corrections are smaller.
JUMP_MS_MIN = 60_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DiskState:
    """Used shares of the disks, 0.0 to 1.0, and last write times of the oldest segments, ms."""

    log_ratio: float
    queue_ratio: float
    modified_ms: Sequence[int]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision of the retention rules."""

    #: Number of segments to delete, oldest first.
    expired: int
    #: The reason for refusing messages, or None.
    refusal: str | None


class SteadyClock:
    """The wall clock without forward jumps, for the age of files.

    A forward jump of the clock must not expire young files. The new time is accepted after
    `reserved_ms`, when all files written before the jump are old by either clock.
    """

    def __init__(self) -> None:
        self._ahead_ms: int | None = None
        self._jumped_at = -1

    def now(self, wall_ms: int, monotonic_ms: int, reserved_ms: int) -> int:
        """Return the current time for comparisons with file times, ms."""
        if self._ahead_ms is None:
            self._ahead_ms = wall_ms - monotonic_ms
        steady_ms = monotonic_ms + self._ahead_ms
        is_jump = wall_ms - steady_ms > JUMP_MS_MIN
        if not is_jump:
            self._jumped_at = -1
            self._ahead_ms = max(self._ahead_ms, wall_ms - monotonic_ms)
            return wall_ms
        if self._jumped_at < 0:
            log.warning("The wall clock jumped forward; files age by the monotonic clock")
            self._jumped_at = monotonic_ms
        if monotonic_ms - self._jumped_at < reserved_ms:
            return steady_ms
        self._ahead_ms = wall_ms - monotonic_ms
        return wall_ms


def decide(
    state: DiskState,
    config: BrokerConfig,
    now_ms: int,
    *,
    is_manual: bool,
    steady_ms: int | None = None,
) -> Verdict:
    """Apply the retention rules to a disk state.

    `now_ms` is the wall clock, for the hour; `steady_ms`, if given, is the clock for file ages.
    """
    percent = max(state.log_ratio, state.queue_ratio) * 100
    refusal = None
    if percent > config.disk_space_warning_level_ratio:
        refusal = (
            f"the disk is {percent:.0f} % full, which is above"
            f" diskSpaceWarningLevelRatio {config.disk_space_warning_level_ratio}"
        )
    is_forced = (
        config.clean_file_forcibly_enable and percent > config.disk_space_clean_forcibly_ratio
    )
    is_due = is_forced or is_manual or is_hour(config.delete_when, now_ms)
    if not is_due and percent <= min(max(config.disk_max_used_space_ratio, RATIO_MIN), RATIO_MAX):
        return Verdict(0, refusal)
    oldest_kept = (now_ms if steady_ms is None else steady_ms) - config.file_reserved_time * HOUR_MS
    expired = 0
    for modified in state.modified_ms[:BATCH_MAX]:
        if not is_forced and modified > oldest_kept:
            break
        expired += 1
    return Verdict(expired, refusal)


def is_hour(hours: str, now_ms: int) -> bool:
    """Return whether the local hour is in a list such as "04" or "04;16"."""
    hour = time.localtime(now_ms / 1000).tm_hour
    return any(each.strip().isdecimal() and int(each) == hour for each in hours.split(";"))


class Retention:
    """Checks the disks periodically, and deletes files. Event loop only, except the jobs."""

    def __init__(
        self,
        parts: StoreParts,
        executor: SerialExecutor,
        files: Files,
        epochs: EpochLog,
        health: Health,
        settings: Callable[[], BrokerConfig],
        clock_ms: Callable[[], int],
        warm: Callable[[ColdRead, Done], None],
    ) -> None:
        self.log_ratio = 0.0
        self.queue_ratio = 0.0
        self._log, self._queues, self._index = parts.log, parts.queues, parts.index
        self._executor = executor
        self._files = files
        self._epochs = epochs
        self._health = health
        self._settings = settings
        self._clock_ms = clock_ms
        self._steady_clock = SteadyClock()
        self._now_ms = 0
        self._warm = warm
        self._is_running = False
        self._next_check_ms = 0
        self._next_unlink_ms = 0
        self._manual_rounds = 0
        self._to_trim: list[ConsumeQueue] = []
        self._to_unlink: deque[Path] = deque()

    def delete_now(self) -> None:
        """Delete expired segments at any hour, for MANUAL_ROUNDS rounds."""
        self._manual_rounds = MANUAL_ROUNDS
        self._next_check_ms = 0

    def tick(self, now_ms: int) -> None:
        """Do one step of the pending work; `now_ms` is the monotonic clock."""
        self._now_ms = now_ms
        if now_ms >= self._next_check_ms and not self._is_running:
            self._next_check_ms = now_ms + self._settings().clean_resource_interval
            self._check_disks()
        batch = self._to_trim[:QUEUES_PER_TICK]
        del self._to_trim[:QUEUES_PER_TICK]
        for queue in batch:
            self._trim(queue)
        if self._log.let_go() and self._to_unlink and now_ms >= self._next_unlink_ms:
            path = self._to_unlink.popleft()
            config = self._settings()
            self._next_unlink_ms = now_ms + (
                config.delete_commit_log_files_interval
                if path.parent == self._log.folder
                else config.delete_consume_queue_files_interval
            )
            self._executor.submit(lambda: self._files.remove_slowly(path), _report)

    def _trim(self, queue: ConsumeQueue) -> None:
        """Advance a queue to the start of the log; queue its old files for deletion."""
        try:
            queue.advance_min(self._log.min_offset)
        except ColdRead as cold:
            self._warm(cold, lambda error: _report(error) if error else self._to_trim.append(queue))
            return
        self._to_unlink.extend(queue.forget(first) for first in queue.removable())

    def finish(self) -> None:
        """Delete the files of removed segments now, so that no `load` finds them again."""
        self._to_trim.clear()
        while self._to_unlink:
            self._files.remove(self._to_unlink[0])
            self._files.sync_dir(self._to_unlink[0].parent)
            self._to_unlink.popleft()

    def trash(self, folder: Path) -> None:
        """Delete a folder in `trash`."""
        self._executor.submit(lambda: self._files.remove_tree(folder), _report)

    def _check_disks(self) -> None:
        self._is_running = True
        candidates = self._log.removable()[:BATCH_MAX]
        seen: list[DiskState] = []

        def measure() -> None:
            seen.append(
                DiskState(
                    self._files.usage(self._log.folder).ratio,
                    self._files.usage(self._queues.folder).ratio,
                    [self._files.modified_ms(path) for path in candidates],
                )
            )

        def done(error: Exception | None) -> None:
            self._is_running = False
            if error is not None:
                log.error("Checking the disk of the store failed: %s", error)
                return
            self._apply(seen[0])

        self._executor.submit(measure, done)

    def _apply(self, state: DiskState) -> None:
        self.log_ratio, self.queue_ratio = state.log_ratio, state.queue_ratio
        is_manual = self._manual_rounds > 0
        self._manual_rounds = max(0, self._manual_rounds - 1)
        config, wall_ms = self._settings(), self._clock_ms()
        reserved_ms = config.file_reserved_time * HOUR_MS
        steady_ms = self._steady_clock.now(wall_ms, self._now_ms, reserved_ms)
        verdict = decide(state, config, wall_ms, is_manual=is_manual, steady_ms=steady_ms)
        self._health.set_disk_refusal(verdict.refusal)
        if not verdict.expired:
            self._manual_rounds = 0
            return
        for _ in range(verdict.expired):
            path = self._log.forget_oldest()
            log.info("Deleting %s", path)
            self._to_unlink.append(path)
        if is_manual:
            self._next_check_ms = 0
        self._to_unlink.extend(self._index.forget_before(self._log.min_offset))
        if self._log.entries is not None:
            self._to_unlink.extend(self._log.entries.forget_expired())
        self._to_trim = list(self._queues)
        # Before the files, which later ticks delete; after a failure the next deletion tries again.
        self._executor.submit(partial(self._epochs.expire, self._log.min_offset), _report)


def _report(error: Exception | None) -> None:
    if error is not None:
        log.error("Deleting a file of the store failed: %s", error)
