"""The newest consumer offset wins, except after a reset on the master."""

import pytest

from core_broker.ha.offset_merge import OffsetMerge
from core_broker.ha.offset_table import PAIRS_PER_SLICE, OffsetTable
from core_broker.state.consumer_offsets import ConsumerOffsets

BOOT, LATER_BOOT = 1_000, 2_000


def merge_all(merge: OffsetMerge, table: OffsetTable, boot_ms: int) -> int:
    """Merge a whole table; return the number of pauses."""
    return sum(1 for _ in merge.merge(table, boot_ms))


@pytest.fixture
def offsets() -> ConsumerOffsets:
    return ConsumerOffsets()


def test_the_larger_offset_wins(offsets: ConsumerOffsets) -> None:
    offsets.commit("G", "T", 0, 7)
    offsets.commit("G", "T", 1, 7)
    merge = OffsetMerge(offsets)
    merge_all(merge, {"T@G": {0: 5, 1: 9, 2: 1}, "%RETRY%G@G": {0: 3}}, BOOT)
    assert sorted(offsets.rows()) == [
        ("G", "%RETRY%G", 0, 3),
        ("G", "T", 0, 7),
        ("G", "T", 1, 9),
        ("G", "T", 2, 1),
    ]


def test_commits_to_the_slave_survive_the_return_of_the_master(offsets: ConsumerOffsets) -> None:
    """The returned master has lost its newest commits; RocketMQ's consumers repeat messages."""
    merge = OffsetMerge(offsets)
    merge_all(merge, {"T@G": {0: 50}}, BOOT)
    offsets.commit("G", "T", 0, 80)
    merge_all(merge, {"T@G": {0: 40}}, LATER_BOOT)
    assert offsets.committed("G", "T", 0) == 80
    merge_all(merge, {"T@G": {0: 81}}, LATER_BOOT)
    assert offsets.committed("G", "T", 0) == 81


def test_a_reset_on_the_running_master_is_adopted(offsets: ConsumerOffsets) -> None:
    merge = OffsetMerge(offsets)
    merge_all(merge, {"T@G": {0: 50, 1: 9}}, BOOT)
    merge_all(merge, {"T@G": {0: 20, 1: 9}}, BOOT)
    assert offsets.committed("G", "T", 0) == 20
    assert offsets.committed("G", "T", 1) == 9


def test_offsets_deleted_on_the_master_are_removed(offsets: ConsumerOffsets) -> None:
    """Otherwise a topic that is created again would begin behind its messages on the slave."""
    merge = OffsetMerge(offsets)
    merge_all(merge, {"T@G": {0: 50}, "U@G": {0: 1}}, BOOT)
    merge_all(merge, {"U@G": {0: 1}}, BOOT)
    assert list(offsets.rows()) == [("G", "U", 0, 1)]
    merge_all(merge, {"U@G": {0: 1}, "T@G": {0: 2}}, BOOT)
    assert offsets.committed("G", "T", 0) == 2


def test_an_unchanged_table_changes_nothing(offsets: ConsumerOffsets) -> None:
    merge = OffsetMerge(offsets)
    merge_all(merge, {"T@G": {0: 50}}, BOOT)
    changes = offsets.changes
    merge_all(merge, {"T@G": {0: 50}}, BOOT)
    assert offsets.changes == changes


def test_a_large_table_is_merged_in_slices(offsets: ConsumerOffsets) -> None:
    merge = OffsetMerge(offsets)
    pairs = 3 * PAIRS_PER_SLICE + 1
    table = {f"T@G{number}": {0: number + 1} for number in range(pairs)}
    assert merge_all(merge, table, BOOT) == 3
    assert sorted(offset for *_, offset in offsets.rows()) == list(range(1, pairs + 1))
    assert merge_all(merge, {"T@G0": {0: 9}}, BOOT) == 3
    assert list(offsets.rows()) == [("G0", "T", 0, 9)]


def test_an_interrupted_merge_is_repeated(offsets: ConsumerOffsets) -> None:
    merge = OffsetMerge(offsets)
    table = {f"T@G{number}": {0: 1} for number in range(2 * PAIRS_PER_SLICE)}
    next(merge.merge(table, BOOT))
    assert len(offsets) == PAIRS_PER_SLICE
    merge_all(merge, table, BOOT)
    assert len(offsets) == len(table)
