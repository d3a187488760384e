"""Snapshots on disk: one file each, complete or absent.

    file   := magic "GRN1", crc32 of the meta, length of the meta (4), meta, bytes of the snapshot
    meta   := SnapshotMeta as JSON, with the size and the CRC-32 of the bytes

A received snapshot is written to `snapshot.part`, an own one to `own-snapshot.part`; the file is
synced, checked, and renamed to `snapshot-INDEX-TERM`; then older snapshots are removed.
"""

import struct
import zlib
from pathlib import Path

import msgspec

from core_broker.errors import StoreCorrupt
from core_broker.raft.messages import SnapshotChunk
from core_broker.raft.model import SnapshotMeta
from core_broker.store.files import Files

_HEADER = struct.Struct(">4sII")
_MAGIC = b"GRN1"
_PART = "snapshot.part"
#: A node may take a snapshot of its own while it receives one.
_OWN_PART = "own-snapshot.part"
_PREFIX = "snapshot-"
#: Bytes read at once when a snapshot is checked.
_CHECKED_BYTES = 1024 * 1024


class SnapshotFiles:
    """The snapshots of one node; `current` is the newest."""

    def __init__(self, files: Files, folder: Path) -> None:
        self._files = files
        self._folder = folder
        self.current: SnapshotMeta | None = None

    def load(self) -> None:
        """Find and check the newest snapshot; raises StoreCorrupt when damaged or missing."""
        names = [each for each in self._files.names(self._folder) if each.startswith(_PREFIX)]
        if not names:
            raise StoreCorrupt(str(self._folder), 0, "the folder has no snapshot")
        self.current = self._check(self._folder / names[-1])
        self._files.sync_dir(self._folder)  # the rename may have been the last act of a process
        self._remove_others(names[-1])

    def save(self, snapshot: SnapshotMeta, data: bytes) -> None:
        """Make a snapshot of this node the newest; a snapshot being received is not disturbed."""
        self.write_own(snapshot, data)
        self.publish_own(snapshot)
        self.remove_older()

    def write_own(self, snapshot: SnapshotMeta, data: bytes) -> None:
        """Write, sync and check a snapshot of this node; changes nothing else."""
        self._write(self._folder / _OWN_PART, snapshot, 0, data)
        if self._check(self._folder / _OWN_PART) != snapshot:
            raise StoreCorrupt(str(self._folder / _OWN_PART), 0, "another snapshot was written")

    def publish_own(self, snapshot: SnapshotMeta) -> None:
        """Make the snapshot of `write_own` the newest; the older one can still be read."""
        self._publish(self._folder / _OWN_PART, snapshot)

    def remove_older(self) -> None:
        """Remove all snapshots but the newest."""
        assert self.current is not None
        self._remove_others(_name(self.current))

    def write_chunk(self, chunk: SnapshotChunk) -> None:
        """Write and sync a chunk; chunks come in order, and offset 0 begins a new file."""
        self._write(self._folder / _PART, chunk.snapshot, chunk.offset, chunk.data)

    def finish(self, snapshot: SnapshotMeta) -> None:
        """Make the written chunks the newest snapshot; raises StoreCorrupt for wrong bytes."""
        if self._check(self._folder / _PART) != snapshot:
            reason = "the file is not the announced snapshot"
            raise StoreCorrupt(str(self._folder / _PART), 0, reason)
        self._publish(self._folder / _PART, snapshot)
        self.remove_older()

    def _write(self, path: Path, snapshot: SnapshotMeta, offset: int, data: bytes) -> None:
        header = _encode_header(snapshot)
        file = self._files.open(path, create=True)
        try:
            if offset == 0:
                file.truncate(0)
                file.pwrite(header, 0)
            file.pwrite(data, len(header) + offset)
            file.sync()
        finally:
            file.close()

    def _publish(self, part: Path, snapshot: SnapshotMeta) -> None:
        self._files.rename(part, self._folder / _name(snapshot))
        self._files.sync_dir(self._folder)
        self.current = snapshot

    def read(self, snapshot: SnapshotMeta, offset: int, size: int) -> bytes | None:
        """Return bytes of the newest snapshot; None for another snapshot."""
        if snapshot != self.current:
            return None
        if snapshot.size == 0:
            return b""
        path = self._folder / _name(snapshot)
        file = self._files.open(path)
        try:
            size = min(size, snapshot.size - offset)
            return file.pread(size, len(_encode_header(snapshot)) + offset)
        finally:
            file.close()

    def _remove_others(self, kept: str) -> None:
        for name in self._files.names(self._folder):
            if name.startswith(_PREFIX) and name != kept:
                self._files.remove(self._folder / name)

    def _check(self, path: Path) -> SnapshotMeta:
        """Read the meta of a snapshot file and check all bytes."""
        file = self._files.open(path)
        try:
            head = file.pread(_HEADER.size, 0)
            if len(head) < _HEADER.size:
                raise StoreCorrupt(str(path), 0, "the header is incomplete")
            magic, crc, length = _HEADER.unpack(head)
            if magic != _MAGIC or length > _CHECKED_BYTES:
                raise StoreCorrupt(str(path), 0, "the file is no snapshot")
            encoded = file.pread(length, _HEADER.size)
            if zlib.crc32(encoded) != crc:
                raise StoreCorrupt(str(path), _HEADER.size, "the description is damaged")
            snapshot = msgspec.json.decode(encoded, type=SnapshotMeta)
            start = _HEADER.size + length
            checksum = 0
            for offset in range(0, snapshot.size, _CHECKED_BYTES):
                size = min(_CHECKED_BYTES, snapshot.size - offset)
                checksum = zlib.crc32(file.pread(size, start + offset), checksum)
            end = self._files.size(path)
        finally:
            file.close()
        if end != start + snapshot.size or checksum != snapshot.checksum:
            raise StoreCorrupt(str(path), start, "the bytes of the snapshot are damaged")
        return snapshot


def _name(snapshot: SnapshotMeta) -> str:
    return f"{_PREFIX}{snapshot.index:020d}-{snapshot.term:020d}"


def _encode_header(snapshot: SnapshotMeta) -> bytes:
    encoded = msgspec.json.encode(snapshot)
    return _HEADER.pack(_MAGIC, zlib.crc32(encoded), len(encoded)) + encoded
