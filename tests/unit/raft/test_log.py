"""The log's two parts, persisted and unstable, read as one."""

from pathlib import Path

import pytest

from core_broker.raft.log import RaftLog
from core_broker.raft.model import Entry, EntryKind, Membership
from core_broker.raft.ready import Ready
from core_broker.raft.storage import RaftStorage
from core_broker.store.simulated_files import SimulatedFiles

FOLDER = Path("/raft")


def entry(index: int, term: int = 1) -> Entry:
    return Entry(index, term, EntryKind.NORMAL, b"x" * 10)


@pytest.fixture
def log() -> RaftLog:
    """Entries 1 to 4 persisted, 5 to 7 unstable."""
    files = SimulatedFiles()
    RaftStorage.initialise(files, FOLDER, 1, Membership((1,)))
    storage = RaftStorage(files, FOLDER, 1)
    storage.persist(Ready(entries=tuple(map(entry, range(1, 5)))))
    log = RaftLog(storage)
    log.append(list(map(entry, range(5, 8))))
    return log


@pytest.mark.parametrize("first", range(1, 9))
@pytest.mark.parametrize("end", range(1, 10))
def test_every_slice_is_exact(log: RaftLog, first: int, end: int) -> None:
    expected = list(range(first, min(end, 8)))
    assert [each.index for each in log.slice(first, end, 1 << 20)] == expected


@pytest.mark.parametrize("first", range(1, 8))
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_slice_is_bounded_in_bytes(log: RaftLog, first: int, count: int) -> None:
    entries = log.slice(first, 8, count * entry(1).size)
    assert [each.index for each in entries] == list(range(first, min(first + count, 8)))


def test_a_replaced_tail_is_written_again_and_an_old_report_does_not_count(log: RaftLog) -> None:
    assert [each.index for each in log.take_unwritten()] == [5, 6, 7]
    log.replace_tail([entry(6, 2), entry(7, 2)])
    log.persisted(None, written_to=7)  # the report of the replaced entries
    assert log.stable_index == 5
    assert [each.term for each in log.take_unwritten()] == [2, 2]
    log.persisted(None, written_to=7)
    assert log.stable_index == 7
