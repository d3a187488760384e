"""The epochs of a store's commit log, in memory and in their file."""

import threading
from pathlib import Path

from core_broker.store.epoch_file import EpochFile
from core_broker.store.epochs import EpochCache
from core_broker.store.files import Files


class EpochLog:
    """Owns the epochs; each change is on the disk when the call returns. All calls may wait.

    `expire` runs in an I/O thread, the other changes on the event loop. Changes hold a lock, and
    replace `cache` as a whole, so that readers need none.
    """

    def __init__(self, files: Files, path: Path) -> None:
        self.cache = EpochCache()
        self._file = EpochFile(files, path)
        self._lock = threading.Lock()

    def load(self) -> None:
        """Read the file. Raises StoreCorrupt when no version of the file is readable."""
        with self._lock:
            self.cache = self._file.load()

    def begin(self, epoch: int, start: int) -> bool:
        """Begin an epoch at an offset, in place of empty epochs from there on.

        False, with nothing changed, when the epoch is not newer. Raises OSError when the file
        cannot be written; the epoch has then not begun.
        """
        with self._lock:
            changed = EpochCache(self.cache.starts)
            changed.truncate_suffix(start)
            if not changed.append(epoch, start):
                return False
            self._file.save(changed)
            self.cache = changed
        return True

    def truncate(self, offset: int) -> None:
        """Drop the epochs that begin at or behind an offset, also in the previous version."""
        with self._lock:
            changed = EpochCache(self.cache.starts)
            changed.truncate_suffix(offset)
            self._file.save_truncated(changed)
            self.cache = changed

    def expire(self, offset: int) -> None:
        """Drop the epochs that end before the oldest byte of the log; waits only then.

        For an I/O thread, before the deletion of the files with those bytes. As in RocketMQ, the
        epoch that ends there stays: a slave may have its whole log. Raises OSError when the file
        cannot be written; nothing has changed then.
        """
        with self._lock:
            changed = EpochCache(self.cache.starts)
            if changed.truncate_prefix(offset - 1):
                self._file.save(changed)
                self.cache = changed
