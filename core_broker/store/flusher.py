"""Flushing the commit log: group commit for SYNC_FLUSH, a timer for ASYNC_FLUSH.

One flush covers all bytes written before its start; later messages share the next flush. A failed
flush is final: Linux marks the pages clean, so a retry would succeed without the data. After a
failed flush no message is acknowledged until a restart recovers the log from the disk.
Compatible with RocketMQ's GroupCommitService and FlushRealTimeService.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from core_broker.config import BrokerConfig
from core_broker.store.commit_log import CommitLog
from core_broker.store.files import Files
from core_broker.store.io_threads import SerialExecutor
from core_broker.store.segments import Segment

PAGE_BYTES = 4096

#: Called with True when the bytes are on the disk, with False when their state is unknown.
FlushCallback = Callable[[bool], None]

log = logging.getLogger(__name__)


def _at_once(step: Callable[[], None]) -> None:
    step()


@dataclass(slots=True)
class _Waiter:
    end: int
    callback: FlushCallback
    deadline: int | None = None


class Flusher:
    """Starts flushes and notifies waiters. Event loop only, except the jobs."""

    def __init__(
        self,
        commit_log: CommitLog,
        files: Files,
        executor: SerialExecutor,
        settings: Callable[[], BrokerConfig],
        on_failure: Callable[[str], None],
    ) -> None:
        #: Number of flushes since the start.
        self.flushes = 0
        #: Runs the callbacks of a flush; the broker sends the answers of all of them together.
        self.run_callbacks: Callable[[Callable[[], None]], None] = _at_once
        self._log = commit_log
        self._files = files
        self._executor = executor
        self._settings = settings
        self._on_failure = on_failure
        self._waiters: deque[_Waiter] = deque()
        self._is_running = False
        self._has_failed = False
        self._now_ms = 0
        self._last_attempt_ms = 0
        self._last_flush_ms = 0

    @property
    def waiting(self) -> int:
        """Number of callbacks that wait for a flush."""
        return len(self._waiters)

    def wait(self, end: int, callback: FlushCallback) -> None:
        """Call back when all bytes before `end` are on the disk, or at `syncFlushTimeout`.

        `end` never decreases from call to call. The callback may run before `wait` returns.
        """
        if self._has_failed:
            callback(False)
        elif end <= self._log.flushed:
            callback(True)
        else:
            self._waiters.append(_Waiter(end, callback))
            self.after_write()

    def after_write(self) -> None:
        """Start a flush when callbacks wait for written bytes."""
        if self._waiters:
            self.flush()

    def flush(self) -> None:
        """Start a flush of all unflushed bytes unless a flush runs."""
        if not self._is_running and self._log.written > self._log.flushed:
            self._start()

    def tick(self, now_ms: int) -> None:
        """Time out waiters, and start the flush that is due."""
        self._now_ms = now_ms
        config = self._settings()
        self._expire(now_ms, now_ms + config.sync_flush_timeout)
        if self._is_running or now_ms - self._last_attempt_ms < config.flush_interval_commit_log:
            return
        self._last_attempt_ms = now_ms
        dirty = self._log.written - self._log.flushed
        if not dirty:
            self._last_flush_ms = now_ms
        is_overdue = now_ms - self._last_flush_ms >= config.flush_commit_log_thorough_interval
        if dirty >= config.flush_commit_log_least_pages * PAGE_BYTES or (dirty and is_overdue):
            self._start()

    def _expire(self, now_ms: int, deadline: int) -> None:
        """Time out waiters; the timeout starts at the first tick after `wait`."""
        for waiter in reversed(self._waiters):
            if waiter.deadline is not None:
                break
            waiter.deadline = deadline
        while self._waiters:
            first = self._waiters[0].deadline
            if first is None or first > now_ms:
                break
            self._waiters.popleft().callback(False)

    def _start(self) -> None:
        if self._has_failed:
            return
        self._is_running = True
        self._last_flush_ms = self._now_ms
        end = self._log.written
        segments = self._log.unflushed()
        done = partial(self._done, end)
        if len(segments) == 1 and segments[0].is_name_synced:
            self._executor.sync(segments[0].file, done)
        else:
            self._executor.submit(partial(self._flush, segments), done)

    def _flush(self, segments: list[Segment]) -> None:
        for segment in segments:
            if not segment.is_name_synced:
                self._files.sync_dir(self._log.folder)
                segment.is_name_synced = True
            segment.file.sync()

    def _done(self, end: int, error: Exception | None) -> None:
        self._is_running = False
        if error is not None:
            self.fail(f"flushing the commit log failed: {error}")
            return
        self.flushes += 1
        self._log.mark_flushed(end)
        waiters = self._waiters
        if waiters and waiters[-1].end > end:
            self.flush()  # the disk works while the callbacks send answers
        if waiters and waiters[0].end <= end:
            self.run_callbacks(partial(self._confirm, end))

    def _confirm(self, end: int) -> None:
        while self._waiters and self._waiters[0].end <= end:
            self._waiters.popleft().callback(True)

    def fail(self, reason: str) -> None:
        """Stop flushing until a restart, and call all waiters with False."""
        if self._has_failed:
            return
        self._has_failed = True
        self._on_failure(reason)
        while self._waiters:
            self._waiters.popleft().callback(False)
