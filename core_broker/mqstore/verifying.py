"""`verify`: every record, every unit of the consume queues, every item of the index.

The log is read once, record by record, while queues and index are read along with it; so a store
of any size takes the memory of a piece of each queue and the slots of one index file.
"""

from collections.abc import Callable

from core_broker.message import sysflag
from core_broker.message.properties import decode_properties
from core_broker.mqstore.file_checks import (
    check_checkpoint,
    check_dispatch_checkpoint,
    check_tables,
    known_topics,
    read_checkpoint,
    read_dispatch_checkpoint,
)
from core_broker.mqstore.folder import DataFile, StoreFolder
from core_broker.mqstore.index_check import IndexChecks
from core_broker.mqstore.log_view import LogView, LogWalk
from core_broker.mqstore.queue_check import Circumstances, QueueChecks, right_files
from core_broker.mqstore.report import PROBLEMS_SHOWN, Report
from core_broker.mqstore.sizes import Sizes
from core_broker.store.checkpoint import DispatchCheckpoint
from core_broker.store.dispatcher import QUEUED
from core_broker.store.key_hash import KeyHasher
from core_broker.store.tags_codes import TagsCodes

#: Called with how many bytes of the log are done, and how many there are.
Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    """Tell nobody."""


def verify(
    folder: StoreFolder,
    sizes: Sizes,
    *,
    limit: int = PROBLEMS_SHOWN,
    progress: Progress = no_progress,
) -> Report:
    """Look at everything in a folder and report what is wrong; changes nothing."""
    return Verification(folder, sizes, limit).run(progress)


class Verification:
    """One verification of a folder."""

    def __init__(self, folder: StoreFolder, sizes: Sizes, limit: int) -> None:
        self._folder = folder
        self._sizes = sizes
        self._report = Report(folder.root, limit)
        self._log = LogView(folder.log_path, self._segments(), sizes.segment)
        self._checkpoint = read_dispatch_checkpoint(folder, self._report)
        self._shared = self._circumstances()
        self._queues = QueueChecks(
            folder, sizes.queue_file, self._shared, known_topics=self._known_topics()
        )
        self._index = IndexChecks(self._index_files(), sizes.index, self._shared)

    def run(self, progress: Progress) -> Report:
        """Do all of it."""
        report, folder = self._report, self._folder
        newest_ms = self._walk(progress)
        self._queues.finish()
        self._index.finish()
        check_tables(folder, report)
        check_checkpoint(folder, report, read_checkpoint(folder, report), newest_ms)
        if self._checkpoint is not None:
            check_dispatch_checkpoint(folder, report, self._checkpoint, self._shared.log_end)
        if extras := folder.extras():
            names = ", ".join(each.name for each in extras)
            report.note(f"Not judged, being RocketMQ 5's own: {names}.")
        return report

    # -- what is there --

    def _segments(self) -> list[DataFile]:
        files, odd = self._folder.segments()
        for each in odd:
            self._report.problem(each.path, 0, each.reason)
        return right_files(files, self._sizes.segment, self._report)

    def _index_files(self) -> list[DataFile]:
        files, odd = self._folder.index_files()
        for other in odd:
            self._report.problem(other.path, 0, other.reason)
        size = self._sizes.index.size
        right = []
        for each in files:
            if each.size == size:
                right.append(each)
            else:
                reason = f"it has {each.size} bytes, not {size} by maxHashSlotNum and maxIndexNum"
                self._report.problem(each.path, 0, reason)
        if not files and self._log.end:
            self._report.note("There is no key index.")
        return right

    def _known_topics(self) -> frozenset[str] | None:
        """Topics whose queues must be there; None when that cannot be told."""
        topics = known_topics(self._folder)
        if self._checkpoint is None or topics is None:
            return topics
        return topics | self._checkpoint.queues.keys()

    def _circumstances(self) -> Circumstances:
        folder, report = self._folder, self._report
        is_in_use = folder.is_in_use()
        lag_from = None
        if is_in_use:
            report.note("A broker is running on this folder; what it does meanwhile may show.")
        if folder.paths.abort.exists():
            lag_from = _end_of(self._checkpoint)
            if not is_in_use:
                report.note("The broker did not stop in order; the next start recovers the folder.")
        ext = folder.root / "consumequeue_ext"
        return Circumstances(
            report,
            self._log.min_offset,
            lag_from=lag_from,
            is_in_use=is_in_use,
            has_ext=ext.exists(),
        )

    # -- the walk --

    def _walk(self, progress: Progress) -> int:
        """Check all records with all that is derived from them; return the newest store time."""
        log, shared, figures = self._log, self._shared, self._report.figures
        total = log.end - log.min_offset
        self._note_holes()
        walk = LogWalk(log, self._on_damage, lambda done: progress(done, total))
        code, hashes = TagsCodes(self._sizes.delay_levels_ms).code, KeyHasher().message_hashes
        check_queue, check_index = self._queues.check, self._index.check
        newest_ms = records = 0
        for record in walk:
            records += 1
            stored_at, topic = record.store_timestamp, record.topic
            newest_ms = max(newest_ms, stored_at)
            kind = record.sys_flag & sysflag.TRANSACTION_MASK
            properties = decode_properties(record.properties)
            if kind in QUEUED:
                check_queue(record, code(topic, properties, stored_at))
            if kind != sysflag.TRANSACTION_ROLLBACK:
                check_index(record, hashes(topic, properties))
        shared.log_end = walk.end
        figures["records"] = records
        figures["bytes"] = walk.end - log.min_offset
        return newest_ms

    def _note_holes(self) -> None:
        end = None
        for start, run_end in self._log.runs():
            if end is not None:
                self._shared.damage.add(end, start)
            end = run_end

    def _on_damage(self, start: int, end: int, reason: str) -> None:
        self._shared.damage.add(start, end)
        if self._shared.is_in_use and end == self._log.end:
            self._report.note(f"At {start} a record is being written.")
            return
        path, within = self._log.place(start)
        rest = "the log ends here" if end == self._log.end else f"records go on at {end}"
        self._report.problem(path, within, f"offset {start}: {reason}; {rest}")


def _end_of(checkpoint: DispatchCheckpoint | None) -> int:
    return checkpoint.offset_physical if checkpoint is not None else 0
