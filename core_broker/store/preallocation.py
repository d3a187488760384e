"""Preallocates space ahead of the writer, so that the store detects a full disk before a put.

With SYNC_FLUSH the space is filled with zeros and synced: on ext4, overwriting synced zeros more
than doubles the throughput of writing to unwritten blocks. The next segment is filled completely
before its first record, since two writers of one file block each other on the inode lock. With
ASYNC_FLUSH blocks are only reserved: no put waits for a flush, and zeros would double the writes.
"""

import logging
from collections.abc import Callable
from contextlib import suppress

from core_broker.store.commit_log import CommitLog
from core_broker.store.files import Files, SyncFailed
from core_broker.store.full_disk import is_disk_full
from core_broker.store.io_threads import Job, SerialExecutor
from core_broker.store.segments import Segment

#: With nothing to prepare, the next check comes after this many bytes of writes at most.
CHECK_STEP_BYTES = 256 * 1024
CHECKS_PER_SEGMENT = 64

log = logging.getLogger(__name__)


class Preallocator:
    """Prepares segments in an I/O thread. Event loop only, except the jobs."""

    def __init__(
        self,
        commit_log: CommitLog,
        files: Files,
        executor: SerialExecutor,
        on_failure: Callable[[str], None],
        *,
        is_synced: bool,
    ) -> None:
        self.is_disk_full = False
        self._log = commit_log
        self._files = files
        self._executor = executor
        self._on_failure = on_failure
        self._is_synced = is_synced
        self._is_running = False
        #: Distance between two checks, bytes; write position of the last check without work.
        self._step = min(CHECK_STEP_BYTES, commit_log.segment_size // CHECKS_PER_SEGMENT)
        self._idle_at = -self._step

    def has_space(self, size: int) -> bool:
        """Return whether `size` more bytes fit on the disk, as far as the store knows."""
        return not self.is_disk_full or self._log.position + size <= self._log.active.filled

    def advance(self) -> None:
        """Prepare space when the writer is near its end; retry a full disk on each call."""
        position = self._log.position
        is_near = 0 <= position - self._idle_at < self._step
        if self._is_running or (is_near and not self.is_disk_full):
            return
        self._idle_at = -self._step
        try:
            work = self._log.to_fill()
        except OSError as error:
            self.note(error)
            return
        if work is not None:
            segment, limit = work
            self._begin(lambda: self._prepare(segment, limit))
            return
        self.note(None)
        if (near := self._log.to_warm()) is not None:
            self._begin(lambda: _warm(*near))
        else:
            self._idle_at = position

    def _begin(self, job: Job) -> None:
        self._is_running = True
        self._executor.submit(job, self._done)

    def _prepare(self, segment: Segment, limit: int) -> None:
        if not segment.is_name_synced:
            self._files.sync_dir(self._log.folder)
            segment.is_name_synced = True
        step = segment.fill_step if self._is_synced else segment.allocate_step
        while step(limit):
            pass

    def _done(self, error: Exception | None) -> None:
        self._is_running = False
        self.note(error)

    def note(self, error: Exception | None) -> None:
        """Record the outcome of an attempt to allocate space; None for success."""
        if isinstance(error, SyncFailed):
            self._on_failure(f"flushing the commit log failed: {error}")
            return
        is_full = is_disk_full(error)
        if is_full and not self.is_disk_full:
            log.error("The disk of the commit log is full: %s", error)
        elif error is None and self.is_disk_full:
            log.warning("The disk of the commit log has free space again")
        elif error is not None and not is_full:
            log.error("Preallocating space for the commit log failed: %s", error)
        self.is_disk_full = is_full


def _warm(segment: Segment, within: int, size: int) -> None:
    """Read the pages that the writer will reach soon into the page cache."""
    with suppress(OSError):  # advice only: the file may have been closed meanwhile
        segment.file.will_need(size, within)
