"""The Raft storage: restarts, torn ends, damage, failed disks."""

import errno
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from core_broker.errors import StoreCorrupt, StoreLocked, StoreReadOnly
from core_broker.raft.model import Entry, EntryKind, HardState, Membership, SnapshotMeta
from core_broker.raft.ready import Ready
from core_broker.raft.storage import RaftStorage
from core_broker.store.files import DiskFiles
from core_broker.store.simulated_files import SimulatedFiles

FOLDER = Path("/raft")
LOG = FOLDER / "log"
SEGMENT_BYTES = 250


def entry(index: int, term: int = 1) -> Entry:
    return Entry(index, term, EntryKind.NORMAL, b"%d" % index * 20)


def fresh(files: SimulatedFiles) -> RaftStorage:
    RaftStorage.initialise(files, FOLDER, 1, Membership((1, 2, 3)))
    storage = opened(files)
    storage.persist(Ready(hard_state=HardState(1, 2)))
    return storage


def opened(files: SimulatedFiles) -> RaftStorage:
    return RaftStorage(files, FOLDER, 1, SEGMENT_BYTES)


def reopened(files: SimulatedFiles) -> RaftStorage:
    files.power_cut()
    return opened(files)


def append(storage: RaftStorage, *entries: Entry) -> None:
    storage.persist(Ready(entries=entries))


def content(storage: RaftStorage) -> list[Entry]:
    return storage.entries(storage.first_index, storage.last_index + 1, 1 << 30)


def test_a_restart_finds_everything_persisted() -> None:
    files = SimulatedFiles()
    storage = fresh(files)
    for index in range(1, 30):
        append(storage, entry(index))
    assert len(files.names(LOG)) > 3
    storage = reopened(files)
    assert content(storage) == [entry(index) for index in range(1, 30)]
    assert storage.hard_state == HardState(1, 2)
    append(storage, entry(30))
    assert content(reopened(files))[-1] == entry(30)


def test_a_batch_replaces_the_tail_also_across_segments() -> None:
    files = SimulatedFiles()
    storage = fresh(files)
    for index in range(1, 12):
        append(storage, entry(index))
    storage.persist(Ready(hard_state=HardState(2), entries=(entry(3, 2), entry(4, 2))))
    expected = [entry(1), entry(2), entry(3, 2), entry(4, 2)]
    assert content(storage) == expected
    storage = reopened(files)
    assert content(storage) == expected
    assert storage.log_bytes == sum(each.size for each in expected)
    append(storage, entry(5, 2))
    assert content(reopened(files)) == [*expected, entry(5, 2)]


def test_an_installed_snapshot_replaces_the_log() -> None:
    files = SimulatedFiles()
    storage = fresh(files)
    for index in range(1, 12):
        append(storage, entry(index))
    snapshot = SnapshotMeta(50, 1, Membership((1, 2)), 4, zlib.crc32(b"data"))
    storage.save_snapshot(snapshot, b"data")  # index 50 is not in the log: nothing is compacted
    storage = reopened(files)
    assert (storage.first_index, storage.last_index, storage.term(50)) == (51, 50, 1)
    assert storage.read_snapshot() == b"data"
    append(storage, entry(51))
    assert content(reopened(files)) == [entry(51)]


def test_compaction_removes_whole_segments_and_survives_a_restart() -> None:
    files = SimulatedFiles()
    storage = fresh(files)
    for index in range(1, 30):
        append(storage, entry(index))
    before = len(files.names(LOG))
    storage.save_snapshot(SnapshotMeta(20, 1, Membership((1,)), 1, zlib.crc32(b"s")), b"s")
    assert len(files.names(LOG)) < before
    assert (storage.first_index, storage.term(20), storage.term(19)) == (21, 1, None)
    storage = reopened(files)
    assert storage.first_index <= 21
    assert [each for each in content(storage) if each.index > 20] == list(map(entry, range(21, 30)))


def test_a_batch_that_replaced_entries_of_a_removed_segment_is_read_again() -> None:
    files = SimulatedFiles()
    storage = fresh(files)
    index = 0
    while len(files.names(LOG)) < 2:
        index += 1
        append(storage, entry(index))
    first, second = files.names(LOG)
    base = index - 1  # the second segment begins behind this entry, and now replaces the entry
    storage.persist(Ready(hard_state=HardState(2), entries=(entry(base, 2),)))
    append(storage, entry(index, 2))
    storage.save_snapshot(SnapshotMeta(base, 2, Membership((1,)), 1, zlib.crc32(b"s")), b"s")
    assert files.names(LOG) == [second], f"{first} is still there"
    files.kill()  # a power cut may bring the removed segment back
    storage = opened(files)
    assert content(storage) == [entry(index, 2)]
    assert (storage.first_index, storage.term(base)) == (index, 2)


def test_every_torn_end_is_cut_at_the_last_whole_batch() -> None:
    files = SimulatedFiles()
    storage = fresh(files)
    append(storage, entry(1))
    append(storage, entry(2), entry(3))
    path = LOG / files.names(LOG)[-1]
    whole = files.open(path).pread(1 << 20, 0)
    storage = reopened(files)
    append(storage, entry(4))
    longer = files.open(path).pread(1 << 20, 0)
    storage.close()
    for end in range(len(whole), len(longer)):
        for filler in (b"", b"\0" * 40, b"\xff" * 40):
            file = files.open(path)
            file.truncate(0)
            file.pwrite(longer[:end] + filler, 0)
            storage = opened(files)
            assert content(storage) == [entry(1), entry(2), entry(3)]
            append(storage, entry(4, 1))
            assert content(reopened(files))[-1] == entry(4)
            files.kill()


def test_an_unfinished_first_or_next_segment_is_removed() -> None:
    files = SimulatedFiles()
    storage = fresh(files)
    append(storage, entry(1))
    storage.close()
    for size in (0, 1, 20):
        files.open(LOG / f"{2:020d}", create=True).pwrite(bytes(size), 0)
        storage = opened(files)
        assert content(storage) == [entry(1)]
        storage.close()
        assert files.names(LOG) == [f"{1:020d}"]


def test_every_flipped_bit_before_the_last_batch_is_refused() -> None:
    files = SimulatedFiles()
    storage = fresh(files)
    for index in range(1, 6):
        append(storage, entry(index))
    first, last = files.names(LOG)
    last_end = files.size(LOG / last)
    append(storage, entry(6))
    storage.close()
    assert files.names(LOG) == [first, last]
    places = [(first, offset) for offset in range(files.size(LOG / first))]
    places += [(last, offset) for offset in range(last_end)]
    for name, offset in places:
        files.flip_bit(LOG / name, offset, offset % 8)
        with pytest.raises(StoreCorrupt):
            opened(files)
        files.flip_bit(LOG / name, offset, offset % 8)
    assert len(content(opened(files))) == 6


def flip_hard_state(files: SimulatedFiles) -> None:
    files.flip_bit(FOLDER / "hard-state", 30)


def flip_snapshot(files: SimulatedFiles) -> None:
    name = next(each for each in files.names(FOLDER) if each.startswith("snapshot-"))
    files.flip_bit(FOLDER / name, 20)


def remove_segment(files: SimulatedFiles) -> None:
    files.remove(LOG / files.names(LOG)[0])


def remove_middle_segment(files: SimulatedFiles) -> None:
    files.remove(LOG / files.names(LOG)[1])


def old_hard_state(files: SimulatedFiles) -> None:
    other = SimulatedFiles()
    RaftStorage.initialise(other, FOLDER, 1, Membership((1,)))
    data = other.open(FOLDER / "hard-state").pread(1000, 0)
    file = files.open(FOLDER / "hard-state")
    file.truncate(0)
    file.pwrite(data, 0)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (flip_hard_state, "hard state|checksum"),
        (flip_snapshot, "damaged|snapshot"),
        (remove_segment, "missing"),
        (remove_middle_segment, "missing|follow"),
        (old_hard_state, "older than the log"),
    ],
)
def test_damage_is_refused_with_its_place(
    damage: Callable[[SimulatedFiles], None], reason: str
) -> None:
    files = SimulatedFiles()
    storage = fresh(files)
    for index in range(1, 30):
        append(storage, entry(index))
    storage.close()
    damage(files)
    with pytest.raises(StoreCorrupt, match=reason):
        opened(files)


def test_a_lost_hard_state_and_a_foreign_folder_are_refused() -> None:
    files = SimulatedFiles()
    storage = fresh(files)
    append(storage, entry(1))
    storage.close()
    with pytest.raises(StoreCorrupt, match="node 1, not of node 2"):
        RaftStorage(files, FOLDER, 2)
    files.remove(FOLDER / "hard-state")
    assert not RaftStorage.is_initialised(files, FOLDER)
    with pytest.raises(StoreCorrupt, match="lost its hard state"):
        RaftStorage.initialise(files, FOLDER, 1, Membership((1,)))


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_after_a_failed_write_nothing_is_accepted_until_a_restart(operation: str) -> None:
    files = SimulatedFiles()
    storage = fresh(files)
    append(storage, entry(1))

    def fault(called: str, path: Path) -> None:
        if called == operation:
            raise OSError(errno.EIO, "commanded fault", str(path))

    files.fault = fault
    with pytest.raises(OSError, match="commanded fault"):
        append(storage, entry(2))
    files.fault = None
    with pytest.raises(StoreReadOnly, match="restart the node"):
        append(storage, entry(2))
    files.kill()
    # What the restart finds is on the disk, even though the failed sync dropped it once.
    found = content(opened(files))
    assert content(reopened(files)) == found


def test_one_process_at_a_time_opens_a_folder(tmp_path: Path) -> None:
    files = DiskFiles()
    RaftStorage.initialise(files, tmp_path, 1, Membership((1,)))
    storage = RaftStorage(files, tmp_path, 1)
    storage.persist(Ready(hard_state=HardState(1, 1), entries=(entry(1),)))
    with pytest.raises(StoreLocked):
        RaftStorage(files, tmp_path, 1)
    storage.close()
    storage = RaftStorage(files, tmp_path, 1)
    assert content(storage) == [entry(1)]
    storage.close()
