"""The files of a store folder, read without changes and without taking the store's lock.

Besides the files of store/layout.py, a folder can hold files of RocketMQ 5 (EXTRAS), which are
listed and not checked. A path can have an unexpected type (folder, pipe, symbolic link): no
function relies on the name alone.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core_broker.store.files import DiskFile
from core_broker.store.key_index import NAME_DIGITS as INDEX_NAME_DIGITS
from core_broker.store.layout import StorePaths
from core_broker.store.segments import NAME_DIGITS, OFFSET_MAX
from core_broker.store.store_lock import is_locked

#: Name prefix of RocketMQ's light message queues: additional queues beside the topic of a message.
LMQ_PREFIX = "%LMQ%"
#: Files and folders of RocketMQ 5, listed with their size and not checked.
EXTRAS = (
    "batchconsumequeue",
    "brokerIdentity",
    "compaction",
    "consumequeue_ext",
    "epochFileCheckpoint",
    "kvStore",
    "timerlog",
    "timerwheel",
    "transaction",
)
_DIGITS = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file named by an offset or a timestamp; `size` in bytes."""

    path: Path
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class UnexpectedEntry:
    """A file or folder with an unexpected name or type."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class QueueFolder:
    """The folder of one consume queue."""

    topic: str
    queue_id: int
    path: Path


class StoreFolder:
    """One store folder; `log_path` is the commit log's folder when storePathCommitLog is set."""

    def __init__(self, root: Path, log_path: Path | None = None) -> None:
        self.root = root
        self.paths = StorePaths(root)
        self.log_path = log_path or root / "commitlog"

    def is_store(self) -> bool:
        """Return True when the commit log, the consume queues or the index exist."""
        return self.log_path.is_dir() or self.paths.queues.is_dir() or self.paths.index.is_dir()

    def is_in_use(self) -> bool:
        """Return True when a broker uses the folder or, for another folder, the commit log."""
        return is_locked(self.paths.lock) or is_locked(self.log_path)

    # -- data files --

    def segments(self) -> tuple[list[DataFile], list[UnexpectedEntry]]:
        """Return the files of the commit log in order, and unexpected entries of the folder."""
        return data_files(self.log_path, NAME_DIGITS)

    def index_files(self) -> tuple[list[DataFile], list[UnexpectedEntry]]:
        """Return the index files, oldest first, and unexpected entries of the folder."""
        return data_files(self.paths.index, INDEX_NAME_DIGITS)

    def queues(self) -> tuple[list[QueueFolder], list[UnexpectedEntry]]:
        """Return the consume queues by topic and id, and unexpected entries of the folders."""
        queues: list[QueueFolder] = []
        unexpected: list[UnexpectedEntry] = []
        for topic in entries(self.paths.queues, unexpected):
            if not topic.is_dir():
                unexpected.append(UnexpectedEntry(topic, "not a topic folder"))
                continue
            for path in entries(topic, unexpected):
                if not _DIGITS.fullmatch(path.name):
                    unexpected.append(UnexpectedEntry(path, "the name is not a queue id"))
                elif not path.is_dir():
                    unexpected.append(UnexpectedEntry(path, "not a queue folder"))
                else:
                    queues.append(QueueFolder(topic.name, int(path.name), path))
        queues.sort(key=lambda queue: (queue.topic, queue.queue_id))
        return queues, unexpected

    # -- other files --

    def config_files(self) -> list[Path]:
        """Return the files of config/, sorted."""
        folder = self.root / "config"
        return sorted(path for path in entries(folder, []) if path.is_file())

    def extras(self) -> list[Path]:
        """Return existing files and folders of RocketMQ 5."""
        return [path for name in EXTRAS if os.path.lexists(path := self.root / name)]


def data_files(folder: Path, digits: int) -> tuple[list[DataFile], list[UnexpectedEntry]]:
    """Return the files with names of `digits` digits, in order, and unexpected entries."""
    files: list[DataFile] = []
    unexpected: list[UnexpectedEntry] = []
    for path in entries(folder, unexpected):
        if len(path.name) != digits or not _DIGITS.fullmatch(path.name):
            unexpected.append(UnexpectedEntry(path, f"the name is not a number of {digits} digits"))
        elif int(path.name) > OFFSET_MAX:
            unexpected.append(UnexpectedEntry(path, "the name is too large for an offset"))
        elif path.is_dir():
            unexpected.append(UnexpectedEntry(path, "a folder, not a file"))
        else:
            try:
                files.append(DataFile(path, int(path.name), path.stat().st_size))
            except OSError as error:
                unexpected.append(
                    UnexpectedEntry(path, f"the file status cannot be read: {error.strerror}")
                )
    files.sort(key=lambda file: file.start)
    return files, unexpected


def entries(folder: Path, unexpected: list[UnexpectedEntry]) -> Iterator[Path]:
    """Yield the entries of a folder, sorted by name; none for a missing folder.

    A folder that cannot be listed is added to `unexpected`.
    """
    try:
        yield from sorted(folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        unexpected.append(UnexpectedEntry(folder, f"the folder cannot be listed: {error.strerror}"))


def read_range(path: Path, offset: int, size: int) -> bytes:
    """Return `size` bytes of a file, fewer at the end of the file; raises OSError."""
    file = _opened(path)
    try:
        return file.pread(size, offset)
    finally:
        file.close()


def next_data(path: Path, offset: int) -> int:
    """Return the first offset from `offset` on that can hold other data than zeros (SEEK_DATA).

    The result is the file size when only holes follow. Raises OSError for an unreadable file.
    """
    file = _opened(path)
    try:
        return file.next_data(offset)
    finally:
        file.close()


def _opened(path: Path) -> DiskFile:
    # O_NONBLOCK: opening a named pipe would block until a writer opens the pipe.
    return DiskFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))


def tree_bytes(path: Path) -> int:
    """Return the total size of all files below a path; unreadable files count as 0."""
    try:
        if not path.is_dir() or path.is_symlink():
            return path.lstat().st_size
    except OSError:
        return 0
    return sum(map(tree_bytes, entries(path, [])))
