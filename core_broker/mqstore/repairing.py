"""`repair`: builds consume queues and key index again, from the commit log alone.

New files are written to repair.tmp and renamed to their final paths at the end. Old files move to
the trash of the store, and the next start of a broker empties the trash. The commit log is only
read: damaged ranges are reported and skipped. Queues of deleted topics come back while the log
holds messages of the topic, as after any recovery.
"""

import time
from dataclasses import replace
from pathlib import Path

import msgspec

from core_broker.config import BrokerConfig
from core_broker.mqstore.folder import LMQ_PREFIX, StoreFolder, read_range
from core_broker.mqstore.log_view import LogView, LogWalk, Progress, no_progress
from core_broker.mqstore.report import Report, escaped
from core_broker.mqstore.sizes import Sizes
from core_broker.store.checkpoint import parse_dispatch_checkpoint, save_dispatch_checkpoint
from core_broker.store.checkpointer import queue_ranges, sync_files
from core_broker.store.dispatcher import Dispatcher
from core_broker.store.files import DiskFiles
from core_broker.store.key_hash import KeyHasher
from core_broker.store.layout import StoreParts, StorePaths, make_parts
from core_broker.store.segments import OpenFiles
from core_broker.store.store_locks import StoreLocks

#: Maximum number of open files.
OPEN_FILES_MAX = 256


class Plan(msgspec.Struct, frozen=True, rename="camel"):
    """The files that a repair replaces, and the size of the log, bytes."""

    folder: str
    log_bytes: int
    queues: int
    index_files: int


class Repaired(msgspec.Struct, frozen=True, rename="camel"):
    """The outcome of a repair."""

    folder: str
    records: int
    queues: int
    index_files: int
    #: Folder of the old files; the next start of a broker deletes the folder.
    kept_in: str
    #: Damage of the log, one line each: file, offset in the file, reason.
    damage: list[str]


def plan(folder: StoreFolder, sizes: Sizes) -> Plan:
    """Return the plan of a repair; the folder stays unchanged."""
    log = LogView(folder.log_path, folder.segments()[0], sizes.segment)
    return Plan(
        escaped(folder.root),
        log.end - log.min_offset,
        len(folder.queues()[0]),
        len(folder.index_files()[0]),
    )


def repair(folder: StoreFolder, sizes: Sizes, progress: Progress = no_progress) -> Repaired:
    """Build queues and index again; raises StoreLocked when a broker uses the folder or the log."""
    locks = StoreLocks(DiskFiles(), folder.paths)
    try:
        if folder.log_path.is_dir():
            locks.lock_log(folder.log_path)
        return _Repair(folder, sizes).run(progress)
    finally:
        locks.release()


class _Repair:
    def __init__(self, folder: StoreFolder, sizes: Sizes) -> None:
        self._folder = folder
        self._report = Report(folder.root)
        self._log = LogView(folder.log_path, folder.segments()[0], sizes.segment)
        self._files = DiskFiles()
        self._fresh = StorePaths(folder.root / "repair.tmp")
        self._open_files = OpenFiles(self._files, OPEN_FILES_MAX)
        config = BrokerConfig(
            store_path_root_dir=str(self._fresh.root),
            mapped_file_size_commit_log=sizes.segment,
            mapped_file_size_consume_queue=sizes.queue_file,
            max_hash_slot_num=sizes.index.slot_count,
            max_index_num=sizes.index.item_max,
        )
        self._parts: StoreParts = make_parts(config, self._files, self._fresh, self._open_files)
        self._dispatcher = Dispatcher(
            self._parts.queues,
            self._parts.index,
            KeyHasher(),
            sizes.delay_levels_ms,
            is_indexing=True,
        )

    def run(self, progress: Progress) -> Repaired:
        """Build the new files, then replace the old files."""
        self._files.remove_tree(self._fresh.root)
        for part in (self._fresh.queues, self._fresh.index):
            self._files.make_dir(part)
        try:
            records = self._build(progress)
            kept_in = self._replace_files()
        finally:
            self._parts.index.close()
            self._open_files.close()
            self._files.remove_tree(self._fresh.root)
        return Repaired(
            escaped(self._folder.root),
            records,
            len(self._folder.queues()[0]),
            len(self._folder.index_files()[0]),
            escaped(kept_in),
            [f"{flaw.file} at {flaw.offset}: {flaw.reason}" for flaw in self._report.problems],
        )

    def _build(self, progress: Progress) -> int:
        total = self._log.end - self._log.min_offset
        walk = LogWalk(self._log, self._on_damage, lambda done: progress(done, total))
        records = 0
        for record in walk:
            self._dispatcher.dispatch(record)
            records += 1
        self._dispatcher.settle()
        self._parts.queues.write_tails()
        sync_files(self._files, self._parts.queues.take_dirty())
        flushes = self._parts.index.take_flushes()
        for flush in flushes:
            flush.run()
        self._parts.index.flushed(flushes, is_done=True)
        return records

    def _replace_files(self) -> Path:
        """Move the old files to the trash and the new files to their final paths."""
        paths, fresh, files = self._folder.paths, self._fresh, self._files
        kept_in = paths.trash / time.strftime("repair-%Y%m%d%H%M%S")
        files.make_dir(kept_in)
        for queue in sorted(paths.queues.glob(f"{LMQ_PREFIX}*")):
            files.rename(queue, fresh.queues / queue.name)  # the log cannot rebuild LMQ queues
        for old, new in ((paths.queues, fresh.queues), (paths.index, fresh.index)):
            if files.exists(old):
                files.rename(old, kept_in / old.name)
            files.rename(new, old)
        files.sync_dir(paths.root)
        self._renew_checkpoint()
        return kept_in

    def _renew_checkpoint(self) -> None:
        """Enter the new files in Gantry's checkpoint; the safe end of the log stays."""
        path = self._folder.paths.dispatch_checkpoint
        if not path.is_file():
            return
        checkpoint = parse_dispatch_checkpoint(read_range(path, 0, path.stat().st_size))
        if checkpoint is None:
            self._files.remove(path)
            return
        fresh = replace(
            checkpoint, queues=queue_ranges(self._parts.queues), index_ends=self._parts.index.ends()
        )
        save_dispatch_checkpoint(self._files, path, fresh)

    def _on_damage(self, start: int, end: int, reason: str) -> None:
        path, within = self._log.locate(start)
        self._report.problem(path, within, reason)
