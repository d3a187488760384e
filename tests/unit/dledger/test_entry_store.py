"""The commit log as entries of DLedger: bytes, copies on a follower, recovery, truncation."""

from pathlib import Path

import pytest

from core_broker.dledger.entry_store import EntryStore
from core_broker.dledger.messages import Entry
from core_broker.dledger.model import EntriesGone, LogRefused
from core_broker.errors import StoreCorrupt
from core_broker.store.framing import ENTRIES, ENTRY_HEADER_BYTES, EntryPlace, encode_entry_header
from tests.support.stores import SEGMENT_BYTES, Bench, message, read_queue

SETTINGS = {"enable_d_leger_commit_log": True, "d_leger_self_id": "n0"}


def bench(folder: Path) -> Bench:
    return Bench(folder, **SETTINGS).open()


def data_of(folder: Path) -> bytes:
    files = sorted((folder / "dledger-n0" / "data").iterdir())
    return b"".join(file.read_bytes() for file in files)


def crash(bench_of: Bench) -> None:
    """Leave the store as a killed process leaves it."""
    lock = bench_of.store._locks
    assert lock is not None
    lock.release()


def copied(leader: Bench, follower: Bench) -> None:
    """Push everything that the follower lacks."""
    source, target = EntryStore(leader.store), EntryStore(follower.store)
    while target.end_index < source.end_index:
        first = target.end_index + 1
        target.append(source.read(first, source.batch_end(first)))


def test_an_entry_has_the_bytes_of_java() -> None:
    header = encode_entry_header(0, 0, 0, 5)
    assert (header + b"hello").hex() == (
        "0000000100000035" + "00" * 24 + "00" * 12 + "0000000568656c6c6f"
    )
    assert ENTRIES.blank(48).hex() == "ffffffff00000030"


def test_messages_are_entries_with_offsets_behind_their_headers(tmp_path: Path) -> None:
    leader = bench(tmp_path)
    assert leader.store.entries is not None
    leader.store.entries.term = 3
    results = leader.put_many(3)
    assert results[0].offset_physical == ENTRY_HEADER_BYTES
    places = leader.store.entries.places(0, 10)
    assert [place.number for place in places] == [0, 1, 2]
    assert [place.position + ENTRY_HEADER_BYTES for place in places] == [
        result.offset_physical for result in results
    ]
    assert {place.term for place in places} == {3}
    index = (tmp_path / "dledger-n0" / "index" / f"{0:020d}").read_bytes()
    assert index[32:64].hex() == (
        "00000001" + f"{places[1].position:016x}{places[1].size:08x}" + f"{1:016x}{3:016x}"
    )
    leader.store.close()


def test_a_follower_has_the_same_files(tmp_path: Path) -> None:
    leader, follower = bench(tmp_path / "a"), bench(tmp_path / "b")
    follower.store.replica.set_active(True)
    leader.put_many(300)  # several segments, with blanks between
    assert leader.store.max_offset_physical > 3 * SEGMENT_BYTES
    copied(leader, follower)
    assert data_of(tmp_path / "a") == data_of(tmp_path / "b")
    bodies = [each.body for each in read_queue(leader.store)]
    assert len(bodies) == 300
    assert [each.body for each in read_queue(follower.store)] == bodies
    for each in (leader, follower):
        each.store.close()


def test_a_start_after_a_crash_enters_all_entries_again(tmp_path: Path) -> None:
    leader = bench(tmp_path)
    leader.put_many(300)
    assert leader.store.entries is not None
    index = tmp_path / "dledger-n0" / "index" / f"{0:020d}"
    expected, end = index.read_bytes(), leader.store.entries.end_index
    crash(leader)
    index.unlink()
    again = bench(tmp_path)
    assert again.store.entries is not None
    assert (again.store.entries.end_index, again.store.entries.begin_index) == (end, 0)
    assert index.read_bytes() == expected
    again.put_many(1, first=300)
    assert len(read_queue(again.store)) == 301
    again.store.close()


def test_a_gap_in_the_entries_ends_the_start(tmp_path: Path) -> None:
    leader = bench(tmp_path)
    leader.put_many(20)
    assert leader.store.entries is not None
    place = leader.store.entries.place(10)
    crash(leader)
    file = tmp_path / "dledger-n0" / "data" / f"{0:020d}"
    data = bytearray(file.read_bytes())
    data[place.position + 10] ^= 0xFF
    file.write_bytes(data)
    with pytest.raises(StoreCorrupt, match="remove the store of this member"):
        bench(tmp_path)


def entries_of(leader: Bench) -> list[Entry]:
    source = EntryStore(leader.store)
    return source.read(0, source.end_index)


def test_entries_at_other_positions_are_refused(tmp_path: Path) -> None:
    leader, follower = bench(tmp_path / "a"), bench(tmp_path / "b")
    leader.put_many(3)
    target, entries = EntryStore(follower.store), entries_of(leader)
    with pytest.raises(LogRefused, match="mappedFileSizeCommitLog"):
        target.append(entries[1:])
    target.append(entries[:1])
    with pytest.raises(LogRefused, match="mappedFileSizeCommitLog"):
        target.append(entries[2:])
    assert target.end_index == 0
    target.append(entries[1:])
    assert target.end_index == 2
    for each in (leader, follower):
        each.store.close()


@pytest.mark.parametrize(
    "change",
    [
        {"body": b"", "size": 48},
        {"body": b"x" * 100, "size": 148},
        {"size": 60},
        {"magic": 2},
    ],
)
def test_entries_without_a_record_are_refused(tmp_path: Path, change: dict[str, object]) -> None:
    follower = bench(tmp_path)
    fields = {"body": b"x" * 100, "index": 0, "pos": 0, "size": 148, "term": 0} | change
    with pytest.raises(LogRefused, match="entry 0 is refused"):
        EntryStore(follower.store).append([Entry(**fields)])
    assert follower.store.max_offset_physical == 0
    follower.store.close()


def test_only_equal_entries_match(tmp_path: Path) -> None:
    leader = bench(tmp_path)
    leader.put(message(1, body=b"a" * 100), message(2))
    log, (first, second) = EntryStore(leader.store), entries_of(leader)
    assert log.matches(first)
    assert log.matches(second)
    body = first.body[:-1] + bytes([first.body[-1] ^ 1])
    for change in ({"term": 9}, {"pos": 1}, {"body": body}):
        assert not log.matches(Entry(**{name: getattr(first, name) for name in FIELDS} | change))
    leader.store.close()


FIELDS = ("body", "index", "pos", "size", "term")


def test_a_message_that_fits_into_no_entry_is_refused(tmp_path: Path) -> None:
    limits = {"max_message_size": 8 * 1024 * 1024, "mapped_file_size_commit_log": 16 * 1024 * 1024}
    leader = Bench(tmp_path, **SETTINGS, **limits).open()
    refused = leader.store.put(message(0, body=b"x" * (4 * 1024 * 1024)))
    assert refused.status.name == "MESSAGE_ILLEGAL"
    (stored,) = leader.put(message(1, body=b"x" * (3 * 1024 * 1024)))
    assert stored.status.name == "PUT_OK"
    leader.store.close()


def test_a_batch_continues_in_the_next_segment(tmp_path: Path) -> None:
    """An entry rolls exactly where DLedger rolls, else a Java follower refuses its position."""
    leader = bench(tmp_path)
    body = b"x" * 3000
    results = leader.store.put_batch([message(n, body=body) for n in range(5)])
    results += leader.store.put_batch([message(n, body=body) for n in range(5, 8)])
    leader.store.write_staged()
    assert leader.store.entries is not None
    places = leader.store.entries.places(0, 10)
    assert [place.position // SEGMENT_BYTES for place in places] == [0] * 5 + [1] * 3
    assert places[5].position == SEGMENT_BYTES
    blank = places[4].position + places[4].size
    assert ENTRIES.is_blank(data_of(tmp_path), blank, SEGMENT_BYTES - blank)
    leader.store.close()


def test_a_refused_append_leaves_no_entry_staged(tmp_path: Path) -> None:
    leader, follower = bench(tmp_path / "a"), bench(tmp_path / "b")
    leader.put_many(12)
    target, entries = EntryStore(follower.store), entries_of(leader)
    target.append(entries[:10])
    follower.store.health.set_lag("No space left on device")
    for _ in range(3):
        with pytest.raises(LogRefused, match="No space left"):
            target.append(entries[10:])
    follower.store.health.set_lag(None)
    target.append(entries[10:])
    assert [target.term_at(index) for index in range(12)] == [0] * 12
    assert target.read(0, 11) == entries
    for each in (leader, follower):
        each.store.close()


def test_an_entry_behind_a_gap_is_refused(tmp_path: Path) -> None:
    leader = bench(tmp_path)
    leader.put_many(3)
    log = leader.store.entries
    assert log is not None
    with pytest.raises(StoreCorrupt, match="entry 4"):
        log.stage([EntryPlace(leader.store.max_offset_physical, 100, 5, 0)])
    assert not log.has_staged
    leader.put_many(1, first=3)
    assert log.end_index == 3
    leader.store.close()


def nearly_full(folder: Path) -> Bench:
    """Return a leader whose first segment has room for a small message only."""
    leader = bench(folder)
    while SEGMENT_BYTES - leader.store.max_offset_physical > 1500:
        leader.put_many(1)
    assert leader.store.max_offset_physical < SEGMENT_BYTES
    return leader


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_blank_end_without_an_entry_is_dropped_at_the_start(
    tmp_path: Path, is_killed: bool
) -> None:
    leader, follower = nearly_full(tmp_path / "a"), bench(tmp_path / "b")
    follower.store.replica.set_active(True)
    copied(leader, follower)
    end = follower.store.replica.end
    follower.store.replica.end_segment(ENTRIES.blank(SEGMENT_BYTES - end))
    assert follower.store.replica.end == SEGMENT_BYTES
    if is_killed:
        crash(follower)
    else:
        follower.store.close()
    follower = bench(tmp_path / "b")
    assert follower.store.replica.end == end
    follower.store.replica.set_active(True)
    leader.put_many(1, first=1000)  # it still fits into the segment
    copied(leader, follower)
    assert follower.store.replica.end == leader.store.max_offset_physical < SEGMENT_BYTES
    assert len(read_queue(follower.store)) == len(read_queue(leader.store))
    for each in (leader, follower):
        each.store.close()


def test_a_segment_ends_only_with_the_next_entry(tmp_path: Path) -> None:
    """Neither a refused message of a leader nor a refused entry of a follower ends it."""
    leader, follower = nearly_full(tmp_path / "a"), bench(tmp_path / "b")
    follower.store.replica.set_active(True)
    copied(leader, follower)
    end = leader.store.max_offset_physical
    leader.store._preallocator.is_disk_full = True
    large = message(999, body=b"x" * 2000)
    assert leader.store.put(large).status.name == "SERVICE_NOT_AVAILABLE"
    leader.store.write_staged()
    assert leader.store.max_offset_physical == end
    leader.store._preallocator.is_disk_full = False
    (stored,) = leader.put(large)
    assert stored.offset_physical == SEGMENT_BYTES + ENTRY_HEADER_BYTES
    target, source = EntryStore(follower.store), EntryStore(leader.store)
    entries = source.read(target.end_index + 1, source.end_index)
    assert entries[0].pos == SEGMENT_BYTES
    wrong = Entry(body=b"x" * 2000, index=entries[0].index, pos=SEGMENT_BYTES, size=2048, term=0)
    with pytest.raises(LogRefused, match="is refused"):
        target.append([wrong])
    assert follower.store.replica.end == end
    target.append(entries)
    assert follower.store.replica.end == leader.store.max_offset_physical
    for each in (leader, follower):
        each.store.close()


def test_entries_of_a_deleted_segment_are_not_read(tmp_path: Path) -> None:
    leader = bench(tmp_path)
    leader.put_many(300)
    leader.store._log.mark_flushed(leader.store.max_offset_physical)
    leader.store._log.forget_oldest()
    source = EntryStore(leader.store)
    assert source.begin_index > 0
    with pytest.raises(EntriesGone, match="the log begins with entry"):
        source.read(0, 0)
    assert len(source.read(source.begin_index, source.begin_index)[0].body) > 0
    leader.store.close()
