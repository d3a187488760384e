"""The locks of a store: on each folder and file that settings of two brokers can have in common.

    storePathRootDir            the folder, and byte 0 of its file `lock`
    folder of the commit log    the folder alone: Java refuses a log with a file of another size
    storePathEpochFile, if set  FILE.lock

The commit log is locked wherever it lies: storePathCommitLog of one broker may name a folder below
storePathRootDir of another. A lock is on the folder, not on its path: a symbolic link or a bind
mount leads to the same lock. Java brokers lock the file `lock` only.
"""

from pathlib import Path

from core_broker.config import BrokerConfig
from core_broker.errors import StoreLocked
from core_broker.store.files import Files
from core_broker.store.layout import StorePaths
from core_broker.store.store_lock import Lock

_ROOT_SETTING = "storePathRootDir"
_LOG_SETTING = "storePathCommitLog"
_ENTRIES_SETTING = "storePathDLedgerCommitLog"
_EPOCHS_SETTING = "storePathEpochFile"


class StoreLocks:
    """The held locks of one store. Each lock may raise StoreLocked; `release` is then still due."""

    def __init__(self, files: Files, paths: StorePaths) -> None:
        """Lock an existing store folder."""
        self._files = files
        self._held: list[Lock] = [files.lock(paths.lock)]

    def lock_parts(self, config: BrokerConfig) -> None:
        """Lock commit log and epochs of a broker; the missing folders are created."""
        log_folder = Path(config.commit_log_dir)
        self._files.make_dir(log_folder)
        has_entries = config.enable_d_leger_commit_log
        self.lock_log(log_folder, _ENTRIES_SETTING if has_entries else _LOG_SETTING)
        if config.store_path_epoch_file:
            self._lock_epochs(Path(config.store_path_epoch_file))

    def lock_log(self, folder: Path, setting: str = _LOG_SETTING) -> None:
        """Lock the existing folder of the commit log."""
        if not self._held[0].covers(folder):  # the root folder may be the log
            self._lock(folder, setting, _ROOT_SETTING)

    def _lock_epochs(self, epoch_file: Path) -> None:
        # A file of its own: each new version of the epochs is another file.
        path = epoch_file.with_name(epoch_file.name + ".lock")
        self._files.make_dir(path.parent)
        self._files.open(path, create=True).close()
        self._lock(path, _EPOCHS_SETTING)

    def _lock(self, path: Path, *settings: str) -> None:
        try:
            self._held.append(self._files.lock_path(path))
        except StoreLocked as error:
            raise StoreLocked(error.path, *settings) from error

    def release(self) -> None:
        """Release all locks."""
        while self._held:
            self._held.pop().release()
