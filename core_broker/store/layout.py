"""The parts of a store and their paths.

    storePathRootDir/commitlog/00000000000000000000 …      storePathCommitLog, if set
    storePathRootDir/consumequeue/TOPIC/QUEUE_ID/00000000000000000000 …
    storePathRootDir/index/yyyyMMddHHmmssSSS …
    storePathRootDir/checkpoint   abort   lock   epochFileCheckpoint
    storePathRootDir/dispatchCheckpoint.json   truncation.json   trash/

With enableDLegerCommitLog, in place of commitlog:

    storePathRootDir/dledger-n0/data/00000000000000000000 …      storePathDLedgerCommitLog, if set
    storePathRootDir/dledger-n0/index/00000000000000000000 …

All files but dispatchCheckpoint.json, truncation.json and trash are RocketMQ's, as in
StorePathConfigHelper and DLedgerConfig.
"""

from dataclasses import dataclass
from pathlib import Path

from core_broker.config import BrokerConfig
from core_broker.store.commit_log import CommitLog
from core_broker.store.consume_queues import ConsumeQueues
from core_broker.store.entry_log import EntryLog
from core_broker.store.files import Files
from core_broker.store.key_index import KeyIndex
from core_broker.store.segments import OpenFiles


@dataclass(frozen=True, slots=True)
class StoreParts:
    """The commit log and the files derived from it."""

    log: CommitLog
    queues: ConsumeQueues
    index: KeyIndex


@dataclass(frozen=True, slots=True)
class StorePaths:
    """The paths in a store folder, except the commit log."""

    root: Path
    #: storePathEpochFile; None: below `root`.
    epoch_file: Path | None = None

    @property
    def queues(self) -> Path:
        """The consume queues."""
        return self.root / "consumequeue"

    @property
    def queues_ext(self) -> Path:
        """Extensions of queue units by a Java broker with `enableConsumeQueueExt`."""
        return self.root / "consumequeue_ext"

    @property
    def index(self) -> Path:
        """The key index."""
        return self.root / "index"

    @property
    def checkpoint(self) -> Path:
        """RocketMQ's checkpoint."""
        return self.root / "checkpoint"

    @property
    def dispatch_checkpoint(self) -> Path:
        """Gantry's own checkpoint."""
        return self.root / "dispatchCheckpoint.json"

    @property
    def epochs(self) -> Path:
        """The epochs of the commit log (epoch_file.py)."""
        return self.epoch_file or self.root / "epochFileCheckpoint"

    @property
    def truncation(self) -> Path:
        """Exists while a truncation is under way (truncation.py)."""
        return self.root / "truncation.json"

    @property
    def abort(self) -> Path:
        """Exists while a broker runs, and after a crash (abort_file.py)."""
        return self.root / "abort"

    @property
    def lock(self) -> Path:
        """Locked while a broker runs."""
        return self.root / "lock"

    @property
    def trash(self) -> Path:
        """Folders to be deleted."""
        return self.root / "trash"


def store_paths(config: BrokerConfig) -> StorePaths:
    """Return the paths of the settings."""
    epoch_file = config.store_path_epoch_file
    return StorePaths(Path(config.store_path_root_dir), Path(epoch_file) if epoch_file else None)


def make_parts(
    config: BrokerConfig, files: Files, paths: StorePaths, open_files: OpenFiles
) -> StoreParts:
    """Create the parts from the settings, without loading files."""
    log_folder = Path(config.commit_log_dir)
    has_entries = config.enable_d_leger_commit_log
    entries = EntryLog(files, Path(config.entry_index_dir)) if has_entries else None
    return StoreParts(
        CommitLog(files, log_folder, config.mapped_file_size_commit_log, open_files, entries),
        ConsumeQueues(files, paths.queues, config.mapped_file_size_consume_queue, open_files),
        KeyIndex(files, paths.index, config.max_hash_slot_num, config.max_index_num),
    )
