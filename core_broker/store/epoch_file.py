"""epochFileCheckpoint: the epochs of the commit log, as text with LF.

    3                 number of epochs
    1544922653        CRC-32 of the following lines without its highest bit; 0: not checked
    1-0               epoch and first offset, oldest first
    2-4096
    5-1000000

epochFileCheckpoint.bak is the previous version, for a damaged file. After a truncation both have
the same content: an older version would name epochs that are no longer in the log. Without epochs
there is no file. Compatible with RocketMQ's CheckpointFile and EpochFileCache; unlike RocketMQ,
each version is synced before it takes the place of the older one.
"""

import logging
from pathlib import Path
from zlib import crc32

from core_broker.errors import StoreCorrupt
from core_broker.store.epochs import EPOCHS_MAX, EpochCache
from core_broker.store.files import Files, read_file, replace_file

#: Maximum size of a file that is read, bytes.
FILE_BYTES_MAX = 64 * EPOCHS_MAX
#: Digits of the longest number.
_DIGITS_MAX = 19
_CRC_MASK = 0x7FFFFFFF

log = logging.getLogger(__name__)


def encode_epochs(cache: EpochCache) -> bytes:
    """Return the content of the file."""
    starts = cache.starts
    lines = "".join(f"{epoch}-{start}\n" for epoch, start in starts).encode()
    return f"{len(starts)}\n{crc32(lines) & _CRC_MASK}\n".encode() + lines


def parse_epochs(content: bytes) -> EpochCache:
    """Parse the content of the file; raises ValueError for any other text."""
    count, crc, lines = [*content.split(b"\n", 2), b"", b""][:3]
    expected = _number(crc)
    if expected and crc32(lines) & _CRC_MASK != expected:
        raise ValueError("its lines do not match the checksum")
    starts = []
    for line in lines.splitlines():
        epoch, _, start = line.partition(b"-")
        starts.append((_number(epoch), _number(start)))
    if len(starts) != _number(count):
        raise ValueError(f"it has {len(starts)} epochs, not {_number(count)}")
    return EpochCache(starts)


def _number(text: bytes) -> int:
    if not text.isdigit() or len(text) > _DIGITS_MAX:
        raise ValueError(f"{text[:_DIGITS_MAX]!r} is no number")
    return int(text)


class EpochFile:
    """The file with the epochs of one store. All calls wait for the disk."""

    def __init__(self, files: Files, path: Path) -> None:
        self._files = files
        self._path = path
        self._previous = path.with_name(path.name + ".bak")

    def load(self) -> EpochCache:
        """Read the epochs, or else the previous version; none without both files.

        Raises StoreCorrupt when neither version can be read: without its epochs, a broker cannot
        say which part of its log is right.
        """
        damage = ""
        for path in (self._path, self._previous):
            if not self._files.exists(path):
                continue
            try:
                cache = self._read(path)
            except ValueError as error:
                log.warning("%s is unreadable: %s", path, error)
                damage = damage or str(error)
                continue
            if path != self._path:
                log.warning("%s is missing or damaged; using its previous version", self._path)
            return cache
        if damage:
            raise StoreCorrupt(str(self._path), 0, damage)
        return EpochCache()

    def _read(self, path: Path) -> EpochCache:
        size = self._files.size(path)
        if size > FILE_BYTES_MAX:
            raise ValueError(f"it has {size} bytes, more than {FILE_BYTES_MAX}")
        return parse_epochs(read_file(self._files, path))

    def save(self, cache: EpochCache) -> None:
        """Replace the file, and keep the previous version; raises OSError.

        Return when the epochs are on the disk: only then may bytes of a new epoch be written.
        """
        if not len(cache):
            self._remove()
            return
        if self._files.exists(self._path):
            replace_file(self._files, self._previous, read_file(self._files, self._path))
        replace_file(self._files, self._path, encode_epochs(cache))

    def save_truncated(self, cache: EpochCache) -> None:
        """Replace both versions after a truncation of the log; raises OSError.

        After a crash in between, the caller repeats the call.
        """
        if not len(cache):
            self._remove()
            return
        replace_file(self._files, self._path, encode_epochs(cache))
        replace_file(self._files, self._previous, encode_epochs(cache))

    def _remove(self) -> None:
        """Remove both versions, the previous one first: alone it would be taken for the file."""
        for path in (self._previous, self._path):
            self._files.remove(path)
            self._files.sync_dir(path.parent)
