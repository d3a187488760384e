"""A store folder as it lies on the disk: read without changing it and without taking its lock.

Besides the files of store/layout.py there may be those that RocketMQ 5 adds; they are listed, not
judged. Any name may turn out to be something else than it should be, so nothing here trusts it.
"""

import fcntl
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core_broker.store.files import DiskFile
from core_broker.store.key_index import NAME_DIGITS as INDEX_NAME_DIGITS
from core_broker.store.layout import StorePaths
from core_broker.store.segments import NAME_DIGITS, OFFSET_MAX
from core_broker.store.store_lock import FLOCK

#: Begins the names of queues that RocketMQ keeps besides those of the messages' own topics.
LMQ_PREFIX = "%LMQ%"
#: What RocketMQ 5 may keep besides; mqstore names it and knows nothing of it.
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
    """A file with a number as its name."""

    path: Path
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Odd:
    """Something that should not be where it is."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class QueueFolder:
    """The folder of one consume queue."""

    topic: str
    queue_id: int
    path: Path


class StoreFolder:
    """One store folder; `log_path` is elsewhere when storePathCommitLog says so."""

    def __init__(self, root: Path, log_path: Path | None = None) -> None:
        self.root = root
        self.paths = StorePaths(root)
        self.log_path = log_path or root / "commitlog"

    def is_store(self) -> bool:
        """Tell whether there is anything of a store here."""
        return self.log_path.is_dir() or self.paths.queues.is_dir() or self.paths.index.is_dir()

    def is_in_use(self) -> bool:
        """Tell whether a broker holds the lock, without taking it."""
        try:
            fd = os.open(self.paths.lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            asked = FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 1, 0)
            code = getattr(fcntl, "F_OFD_GETLK", fcntl.F_GETLK)
            kind: int = FLOCK.unpack(fcntl.fcntl(fd, code, asked))[0]
        except OSError:
            return False
        finally:
            os.close(fd)
        return kind != fcntl.F_UNLCK

    # -- data files --

    def segments(self) -> tuple[list[DataFile], list[Odd]]:
        """Return the files of the commit log in order, and what else lies among them."""
        return data_files(self.log_path, NAME_DIGITS)

    def index_files(self) -> tuple[list[DataFile], list[Odd]]:
        """Return the index files, oldest first, and what else lies among them."""
        return data_files(self.paths.index, INDEX_NAME_DIGITS)

    def queues(self) -> tuple[list[QueueFolder], list[Odd]]:
        """Return the folders of the consume queues, and what else lies among them."""
        found: list[QueueFolder] = []
        odd: list[Odd] = []
        for topic in entries(self.paths.queues, odd):
            if not topic.is_dir():
                odd.append(Odd(topic, "it is no folder of a topic"))
                continue
            for each in entries(topic, odd):
                if not _DIGITS.fullmatch(each.name):
                    odd.append(Odd(each, "its name is no queue id"))
                elif not each.is_dir():
                    odd.append(Odd(each, "it is no folder of a queue"))
                else:
                    found.append(QueueFolder(topic.name, int(each.name), each))
        found.sort(key=lambda each: (each.topic, each.queue_id))
        return found, odd

    # -- the rest --

    def config_files(self) -> list[Path]:
        """Return what lies in config/."""
        folder = self.root / "config"
        return sorted(each for each in entries(folder, []) if each.is_file())

    def extras(self) -> list[Path]:
        """Return what RocketMQ 5 keeps besides."""
        return [path for name in EXTRAS if os.path.lexists(path := self.root / name)]


def data_files(folder: Path, digits: int) -> tuple[list[DataFile], list[Odd]]:
    """Return the files of a folder whose names are numbers of so many digits, in order."""
    found: list[DataFile] = []
    odd: list[Odd] = []
    for path in entries(folder, odd):
        if len(path.name) != digits or not _DIGITS.fullmatch(path.name):
            odd.append(Odd(path, f"its name is no number of {digits} digits"))
        elif int(path.name) > OFFSET_MAX:
            odd.append(Odd(path, "its name is no offset, it is too large"))
        elif path.is_dir():
            odd.append(Odd(path, "it is a folder, not a file"))
        else:
            try:
                found.append(DataFile(path, int(path.name), path.stat().st_size))
            except OSError as error:
                odd.append(Odd(path, f"it cannot be looked at: {error.strerror}"))
    found.sort(key=lambda each: each.start)
    return found, odd


def entries(folder: Path, odd: list[Odd]) -> Iterator[Path]:
    """Yield what lies in a folder, in the order of the names; nothing when it does not exist."""
    try:
        yield from sorted(folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        odd.append(Odd(folder, f"it cannot be listed: {error.strerror}"))


def read_range(path: Path, offset: int, size: int) -> bytes:
    """Return bytes of a file, fewer at its end; raises OSError when it cannot be read."""
    file = _opened(path)
    try:
        return file.pread(size, offset)
    finally:
        file.close()


def next_data(path: Path, offset: int) -> int:
    """Return from where on a file may hold more than zeros; raises OSError when it cannot tell."""
    file = _opened(path)
    try:
        return file.next_data(offset)
    finally:
        file.close()


def _opened(path: Path) -> DiskFile:
    # Without the flag, opening a pipe in the place of a file would wait for ever.
    return DiskFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))


def tree_bytes(path: Path) -> int:
    """Return the sizes of all files below a path, as far as they can be looked at."""
    try:
        if not path.is_dir() or path.is_symlink():
            return path.lstat().st_size
    except OSError:
        return 0
    return sum(map(tree_bytes, entries(path, [])))
