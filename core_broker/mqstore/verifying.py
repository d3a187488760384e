"""`verify`: every record, every unit of the consume queues, every item of the index.

One pass over the log reads queues and index in step with the records. The memory needed is one
buffer per queue and the slots of one index file, for a store of any size.
"""

from core_broker.message import sysflag
from core_broker.message.properties import decode_properties
from core_broker.mqstore.context import VerificationContext
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
from core_broker.mqstore.log_view import LogView, LogWalk, Progress, no_progress
from core_broker.mqstore.queue_check import QueueChecks, aligned_files
from core_broker.mqstore.report import PROBLEMS_SHOWN, Report
from core_broker.mqstore.sizes import Sizes
from core_broker.store.checkpoint import DispatchCheckpoint
from core_broker.store.dispatcher import QUEUED
from core_broker.store.key_hash import KeyHasher
from core_broker.store.tags_codes import TagsCodes


def verify(
    folder: StoreFolder,
    sizes: Sizes,
    *,
    limit: int = PROBLEMS_SHOWN,
    progress: Progress = no_progress,
) -> Report:
    """Check all files of a folder and return the report; the folder stays unchanged."""
    return Verification(folder, sizes, limit).run(progress)


class Verification:
    """One verification of a folder."""

    def __init__(self, folder: StoreFolder, sizes: Sizes, limit: int) -> None:
        self._folder = folder
        self._sizes = sizes
        self._report = Report(folder.root, limit)
        self._log = LogView(folder.log_path, self._segments(), sizes.segment)
        self._checkpoint = read_dispatch_checkpoint(folder, self._report)
        self._context = self._make_context()
        self._queues = QueueChecks(
            folder, sizes.queue_file, self._context, known_topics=self._known_topics()
        )
        self._index = IndexChecks(self._index_files(), sizes.index, self._context)

    def run(self, progress: Progress) -> Report:
        """Run all checks and return the report."""
        report, folder = self._report, self._folder
        newest_ms = self._walk(progress)
        self._queues.finish()
        self._index.finish()
        check_tables(folder, report)
        check_checkpoint(folder, report, read_checkpoint(folder, report), newest_ms)
        if self._checkpoint is not None:
            check_dispatch_checkpoint(folder, report, self._checkpoint, self._context.log_end)
        if extras := folder.extras():
            names = ", ".join(path.name for path in extras)
            report.note(f"Not checked, being RocketMQ 5's own: {names}.")
        return report

    # -- files and state of the folder --

    def _segments(self) -> list[DataFile]:
        files, unexpected = self._folder.segments()
        for entry in unexpected:
            self._report.problem(entry.path, 0, entry.reason)
        return aligned_files(files, self._sizes.segment, self._report)

    def _index_files(self) -> list[DataFile]:
        files, unexpected = self._folder.index_files()
        for entry in unexpected:
            self._report.problem(entry.path, 0, entry.reason)
        size = self._sizes.index.size
        complete = []
        for file in files:
            if file.size == size:
                complete.append(file)
            else:
                reason = (
                    f"the file has {file.size} bytes, not {size} by maxHashSlotNum and maxIndexNum"
                )
                self._report.problem(file.path, 0, reason)
        if not files and self._log.end:
            self._report.note("There is no key index.")
        return complete

    def _known_topics(self) -> frozenset[str] | None:
        """Return the topics that must have queues; None without a readable topic table."""
        topics = known_topics(self._folder)
        if self._checkpoint is None or topics is None:
            return topics
        return topics | self._checkpoint.queues.keys()

    def _make_context(self) -> VerificationContext:
        folder, report = self._folder, self._report
        is_in_use = folder.is_in_use()
        lag_from = None
        if is_in_use:
            report.note("A broker is running on this folder; its writes can look like damage.")
        if folder.paths.abort.exists():
            lag_from = _end_of(self._checkpoint)
            if not is_in_use:
                report.note("The broker did not stop in order; the next start recovers the folder.")
        ext = folder.root / "consumequeue_ext"
        return VerificationContext(
            report,
            self._log.min_offset,
            lag_from=lag_from,
            is_in_use=is_in_use,
            has_ext=ext.exists(),
        )

    # -- the walk --

    def _walk(self, progress: Progress) -> int:
        """Check all records, queue units and index items; return the newest store time, ms."""
        log, context, counts = self._log, self._context, self._report.counts
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
        context.log_end = walk.end
        counts["records"] = records
        counts["bytes"] = walk.end - log.min_offset
        return newest_ms

    def _note_holes(self) -> None:
        end = None
        for start, run_end in self._log.runs():
            if end is not None:
                self._context.damage.add(end, start)
            end = run_end

    def _on_damage(self, start: int, end: int, reason: str) -> None:
        self._context.damage.add(start, end)
        if self._context.is_in_use and end == self._log.end:
            self._report.note(f"The broker is writing a record at {start}.")
            return
        path, within = self._log.locate(start)
        rest = "the log ends here" if end == self._log.end else f"records go on at {end}"
        self._report.problem(path, within, f"offset {start}: {reason}; {rest}")


def _end_of(checkpoint: DispatchCheckpoint | None) -> int:
    return checkpoint.offset_physical if checkpoint is not None else 0
