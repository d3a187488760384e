"""A node's durable state in one folder: hard state, log segments, newest snapshot.

    hard-state         id, term and vote of the node: JSON with a CRC, replaced atomically
    log/00…01 …        segments (segments.py)
    snapshot-INDEX-TERM   the newest snapshot (snapshot_files.py)
    lock               held while a process has the folder open

Every method returns after the sync of what it wrote. After an OSError the storage refuses all
further calls: Linux marks pages clean after a failed sync, so only a restart, which reads and
writes again, can tell what is on disk. All disk access goes through `store/files.py`.

The entries behind the last compaction are also in memory; the owner bounds them by snapshots
(`log_bytes`).
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from core_broker.errors import StoreCorrupt, StoreReadOnly
from core_broker.raft.model import Entry, EntryKind, HardState, Membership, SnapshotMeta
from core_broker.raft.ready import Ready
from core_broker.raft.segments import (
    Segment,
    encode_frame,
    encode_header,
    read_segment,
    segment_name,
)
from core_broker.raft.snapshot_files import SnapshotFiles
from core_broker.store.files import File, Files, read_file, replace_file

#: Size at which the next write begins a new segment, bytes.
SEGMENT_BYTES = 8 * 1024 * 1024
_HARD_STATE = "hard-state"


class _SavedState(msgspec.Struct, frozen=True):
    node_id: int
    term: int
    vote: int | None
    crc: int = 0

    def sealed(self) -> "_SavedState":
        """Return the state with its CRC."""
        crc = zlib.crc32(msgspec.json.encode(msgspec.structs.replace(self, crc=0)))
        return msgspec.structs.replace(self, crc=crc)


class RaftStorage:
    """The persisted state of one node; implements `LogView` for the core."""

    def __init__(
        self, files: Files, folder: Path, node_id: int, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        """Open an initialised folder. Raises StoreCorrupt, StoreLocked, OSError."""
        self._files = files
        self._folder = folder
        self._log_folder = folder / "log"
        self._node_id = node_id
        self._segment_bytes = segment_bytes
        self._is_failed = False
        self._file: File | None = None
        self._entries: list[Entry] = []
        self._base_index = self._base_term = 0
        #: Numbers of the segments on disk, with the highest index of each.
        self._segments: dict[int, int] = {}
        self._position = self._chain = 0
        self.log_bytes = 0
        self._lock = files.lock(folder / "lock")
        try:
            self.hard_state = self._load_hard_state()
            self._snapshots = SnapshotFiles(files, folder)
            self._snapshots.load()
            self._load_log()
        except BaseException:
            self.close()
            raise

    @classmethod
    def is_initialised(cls, files: Files, folder: Path) -> bool:
        """Whether a node's state is in the folder."""
        return files.exists(folder / _HARD_STATE)

    @classmethod
    def initialise(cls, files: Files, folder: Path, node_id: int, membership: Membership) -> None:
        """Create the state of a new node. The members of a new group get the same membership.

        A node that joins a running group gets an empty membership. Raises StoreCorrupt when the
        folder has a log without a hard state: such a node has forgotten its vote.
        """
        if files.names(folder / "log"):
            raise StoreCorrupt(str(folder / _HARD_STATE), 0, "the log has lost its hard state")
        files.make_dir(folder / "log")
        SnapshotFiles(files, folder).save(SnapshotMeta(0, 0, membership), b"")
        _save_hard_state(files, folder, node_id, HardState())

    def close(self) -> None:
        """Close the files and release the folder."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._lock.release()

    # -- view --

    @property
    def snapshot(self) -> SnapshotMeta:
        """The newest snapshot."""
        assert self._snapshots.current is not None
        return self._snapshots.current

    @property
    def first_index(self) -> int:
        """Index of the oldest entry; 1 + `last_index` in an empty log."""
        return self._base_index + 1

    @property
    def last_index(self) -> int:
        """Index of the newest entry; the snapshot's index in an empty log."""
        return self._base_index + len(self._entries)

    def term(self, index: int) -> int | None:
        """Return the term of an entry in `first_index - 1` to `last_index`, else None."""
        if index == self._base_index:
            return self._base_term
        if index < self._base_index or index > self.last_index:
            return None
        return self._entries[index - self._base_index - 1].term

    def entries(self, first: int, end: int, bytes_max: int) -> list[Entry]:
        """Return entries from `first`, before `end`, of at most `bytes_max`, at least one."""
        size = 0
        entries: list[Entry] = []
        start = first - self._base_index - 1
        for position in range(start, min(end - self._base_index - 1, len(self._entries))):
            entry = self._entries[position]
            size += entry.size
            if entries and size > bytes_max:
                break
            entries.append(entry)
        return entries

    def membership_entries(self) -> list[Entry]:
        """Return all entries of kind MEMBERSHIP, in order."""
        return [entry for entry in self._entries if entry.kind is EntryKind.MEMBERSHIP]

    def snapshot_chunk(self, snapshot: SnapshotMeta, offset: int, bytes_max: int) -> bytes | None:
        """Return bytes of a snapshot, or None when a newer snapshot has replaced it."""
        return self._snapshots.read(snapshot, offset, bytes_max)

    def read_snapshot(self) -> bytes:
        """Return all bytes of the newest snapshot, for the state machine."""
        data = self._snapshots.read(self.snapshot, 0, self.snapshot.size)
        assert data is not None
        return data

    # -- changes --

    def persist(self, ready: Ready) -> None:
        """Write and sync step 2 of a Ready; raises OSError or StoreReadOnly: stop the node."""
        with self._failing_for_ever():
            if ready.hard_state is not None:
                _save_hard_state(self._files, self._folder, self._node_id, ready.hard_state)
                self.hard_state = ready.hard_state
            for chunk in ready.chunks:
                self._snapshots.write_chunk(chunk)
            if ready.snapshot is not None:
                self._snapshots.finish(ready.snapshot)
                self._restart_log(ready.snapshot)
            if ready.entries:
                self._append(ready.entries)

    def save_snapshot(self, snapshot: SnapshotMeta, data: bytes, keep_entries: int = 0) -> None:
        """Save a snapshot of applied entries, then compact all but `keep_entries` before it.

        The steps are also single calls, for an owner with threads: `write_snapshot` in any thread,
        also beside another call; `publish_snapshot` and `remove_obsolete` in the thread of
        `persist`; `compact` in the thread of the node, while no other call runs.
        """
        self.write_snapshot(snapshot, data)
        self.publish_snapshot(snapshot)
        self.compact(keep_entries, 1 << 62)
        self.remove_obsolete()

    def write_snapshot(self, snapshot: SnapshotMeta, data: bytes) -> None:
        """Write and check the file of a snapshot; one such call at a time."""
        with self._failing_for_ever():
            self._snapshots.write_own(snapshot, data)

    def publish_snapshot(self, snapshot: SnapshotMeta) -> None:
        """Make the written snapshot the newest; the caller knows that none is newer."""
        with self._failing_for_ever():
            self._snapshots.publish_own(snapshot)

    def compact(self, keep_entries: int, keep_bytes: int) -> None:
        """Forget the entries of the snapshot in memory, but keep the last ones up to both limits.

        The core must hear of it (`RaftNode.compacted`) before its next event.
        """
        index = self.snapshot.index
        kept_bytes = 0
        while keep_entries > 0 and index > self._base_index and self.term(index) is not None:
            kept_bytes += self._entries[index - self._base_index - 1].size
            if kept_bytes > keep_bytes:
                break
            keep_entries -= 1
            index -= 1
        self._compact(index)

    def remove_obsolete(self) -> None:
        """Remove older snapshots, and the segments without entries behind the compaction."""
        with self._failing_for_ever():
            self._snapshots.remove_older()
            removed = []
            for number, max_index in sorted(self._segments.items())[:-1]:
                if max_index > self._base_index:
                    break
                removed.append(number)
            self._remove_segments(removed)

    @contextmanager
    def _failing_for_ever(self) -> Iterator[None]:
        if self._is_failed:
            raise StoreReadOnly("an earlier write to the Raft log failed; restart the node")
        try:
            yield
        except BaseException:
            self._is_failed = True
            raise

    def _append(self, entries: tuple[Entry, ...]) -> None:
        if self._file is None or self._position >= self._segment_bytes:
            before = entries[0].index - 1
            base_term = self.term(before)
            assert base_term is not None
            self._begin_segment(before, base_term)
        assert self._file is not None
        frame, self._chain = encode_frame(entries, self._chain)
        self._file.pwrite(frame, self._position)
        self._file.sync()
        self._position += len(frame)
        number = max(self._segments)
        self._segments[number] = max(self._segments[number], entries[-1].index)
        self._take(entries)

    def _take(self, entries: tuple[Entry, ...] | list[Entry]) -> None:
        """Replace the entries in memory from the first of `entries` on."""
        keep = entries[0].index - self._base_index - 1
        self.log_bytes -= sum(entry.size for entry in self._entries[keep:])
        del self._entries[keep:]
        self._entries += entries
        self.log_bytes += sum(entry.size for entry in entries)

    def _begin_segment(self, base_index: int, base_term: int) -> None:
        if self._file is not None:
            self._file.close()
        number = max(self._segments, default=0) + 1
        path = self._log_folder / segment_name(number)
        self._file = self._files.open(path, create=True)
        header, self._chain = encode_header(base_index, base_term)
        self._file.pwrite(header, 0)
        self._file.sync()
        self._files.sync_dir(self._log_folder)
        self._position = len(header)
        self._segments[number] = base_index

    def _restart_log(self, snapshot: SnapshotMeta) -> None:
        """Begin the log anew behind a snapshot that was installed."""
        old = list(self._segments)
        self._begin_segment(snapshot.index, snapshot.term)
        self._set_base(snapshot.index, snapshot.term)
        self._remove_segments(old)

    def _set_base(self, index: int, term: int) -> None:
        self._base_index, self._base_term = index, term
        self._entries.clear()
        self.log_bytes = 0

    def _compact(self, index: int) -> None:
        term = self.term(index)
        if index <= self._base_index or term is None:
            return
        count = index - self._base_index
        self.log_bytes -= sum(entry.size for entry in self._entries[:count])
        del self._entries[:count]
        self._base_index, self._base_term = index, term

    def _remove_segments(self, numbers: list[int]) -> None:
        """Remove segments, oldest first, so that the remaining segments have no gap."""
        for number in numbers:
            self._files.remove(self._log_folder / segment_name(number))
            del self._segments[number]

    # -- start --

    def _load_hard_state(self) -> HardState:
        path = self._folder / _HARD_STATE
        try:
            saved = msgspec.json.decode(read_file(self._files, path), type=_SavedState)
        except msgspec.DecodeError as error:
            raise StoreCorrupt(str(path), 0, f"the hard state cannot be read: {error}") from error
        if saved != saved.sealed():
            raise StoreCorrupt(str(path), 0, "the checksum of the hard state is wrong")
        if saved.node_id != self._node_id:
            reason = f"the folder is of node {saved.node_id}, not of node {self._node_id}"
            raise StoreCorrupt(str(path), 0, reason)
        return HardState(saved.term, saved.vote)

    def _load_log(self) -> None:
        self._files.make_dir(self._log_folder)
        names = self._files.names(self._log_folder)
        for name in names:
            path = self._log_folder / name
            data = read_file(self._files, path)
            segment = read_segment(data, path, is_last=name == names[-1])
            if segment is None:
                self._files.remove(path)
                continue
            self._replay(segment, path)
            self._segments[int(name)] = segment.max_index
            if name == names[-1]:
                self._reopen(path, data, segment)
        self._files.sync_dir(self._log_folder)
        snapshot = self.snapshot
        if self._base_index > snapshot.index:
            reason = f"entries {snapshot.index + 1} to {self._base_index} are missing"
            raise StoreCorrupt(str(self._log_folder), 0, reason)
        if self.term(snapshot.index) != snapshot.term:
            self._restart_log(snapshot)  # the process stopped between snapshot and log
        if self.last_index > snapshot.index and self._last_term > self.hard_state.term:
            reason = f"term {self.hard_state.term} is older than the log's last {self._last_term}"
            raise StoreCorrupt(str(self._folder / _HARD_STATE), 0, reason)

    @property
    def _last_term(self) -> int:
        return self._entries[-1].term if self._entries else self._base_term

    def _replay(self, segment: Segment, path: Path) -> None:
        """Add a segment's entries to those in memory."""
        base = segment.base_index
        if self.term(base) == segment.base_term and self._segments:
            keep = base - self._base_index
            self.log_bytes -= sum(entry.size for entry in self._entries[keep:])
            del self._entries[keep:]
        else:
            self._set_base(base, segment.base_term)
        for frame in segment.frames:
            first = frame[0]
            if first.index <= self._base_index:
                # The frame replaced entries of segments that were removed since: a snapshot has
                # the first entry, and only the index and term of this entry matter.
                self._set_base(first.index, first.term)
                if frame[1:]:
                    self._take(frame[1:])
                continue
            if first.index > self.last_index + 1:
                reason = f"entry {first.index} does not follow entry {self.last_index}"
                raise StoreCorrupt(str(path), segment.last_start, reason)
            self._take(frame)

    def _reopen(self, path: Path, data: bytes, segment: Segment) -> None:
        """Continue the last segment; its last write may not have been synced, so write again."""
        self._file = self._files.open(path)
        if len(data) > segment.end:
            self._file.truncate(segment.end)
        self._file.pwrite(data[segment.last_start : segment.end], segment.last_start)
        self._file.sync()
        self._position, self._chain = segment.end, segment.chain


def _save_hard_state(files: Files, folder: Path, node_id: int, hard_state: HardState) -> None:
    saved = _SavedState(node_id, hard_state.term, hard_state.vote).sealed()
    replace_file(files, folder / _HARD_STATE, msgspec.json.encode(saved))
