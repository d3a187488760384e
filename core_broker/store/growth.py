"""Keeps space ready ahead of the writer, so that a full disk is noticed before a message is taken.

With SYNC_FLUSH it is filled with zeros, and synced: on ext4 that more than doubles the throughput
against blocks never written. The next segment is filled whole before its turn, since two who write
to one file wait for each other. Otherwise blocks are reserved and no more: nobody waits for a
flush, and zeros would have to be written as well as the messages.
"""

import errno
import logging
from collections.abc import Callable
from contextlib import suppress

from core_broker.store.commit_log import CommitLog
from core_broker.store.files import Files, SyncFailed
from core_broker.store.lanes import Job, Lane
from core_broker.store.segments import Segment

#: What a full disk or an exhausted quota answers.
FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})

#: With nothing to prepare, it looks again when the writer has moved on by so much at most.
LOOK_STEP = 256 * 1024
LOOKS_PER_SEGMENT = 64

log = logging.getLogger(__name__)


class Growth:
    """Prepares segments through a lane. Event loop only, except the jobs."""

    def __init__(
        self,
        commit_log: CommitLog,
        files: Files,
        lane: Lane,
        on_failure: Callable[[str], None],
        *,
        is_synced: bool,
    ) -> None:
        self.is_disk_full = False
        self._log = commit_log
        self._files = files
        self._lane = lane
        self._on_failure = on_failure
        self._is_synced = is_synced
        self._is_running = False
        #: Where the writer was when there was nothing to prepare.
        self._step = min(LOOK_STEP, commit_log.segment_size // LOOKS_PER_SEGMENT)
        self._idle_at = -self._step

    def has_room(self, size: int) -> bool:
        """Tell whether so many more bytes can be written, as far as is known."""
        return not self.is_disk_full or self._log.position + size <= self._log.active.filled

    def advance(self) -> None:
        """Prepare space if the writer has come near; a full disk is tried again each time."""
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
        self._lane.submit(job, self._done)

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
        """Take note of how an attempt to get space ended."""
        if isinstance(error, SyncFailed):
            self._on_failure(f"flushing the commit log failed: {error}")
            return
        is_full = isinstance(error, OSError) and error.errno in FULL_ERRNOS
        if is_full and not self.is_disk_full:
            log.error("The disk of the commit log is full: %s", error)
        elif error is None and self.is_disk_full:
            log.warning("The disk of the commit log has room again")
        elif error is not None and not is_full:
            log.error("Cannot prepare space for the commit log: %s", error)
        self.is_disk_full = is_full


def _warm(segment: Segment, within: int, size: int) -> None:
    """Bring into memory what will be written soon."""
    with suppress(OSError):  # it may have been closed meanwhile, and this is no more than advice
        segment.file.will_need(size, within)
