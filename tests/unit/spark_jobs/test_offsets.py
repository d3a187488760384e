"""From requested offsets and queue bounds to ranges and partitions."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.errors import ClientError
from spark_jobs.jobs.ingest import batches_of
from spark_jobs.sources.offsets import (
    EARLIEST,
    LATEST,
    QueueBounds,
    QueueRange,
    limited,
    next_offsets,
    parse_offsets,
    ranges_to_read,
    slices,
)

QUEUE = QueueBounds("broker-a", 0, offset_min=100, offset_max=500)


def test_offsets_as_words_and_json() -> None:
    assert parse_offsets("startingOffsets", " Earliest ") == EARLIEST
    assert parse_offsets("endingOffsets", "latest") == LATEST
    assert parse_offsets("startingOffsets", '{"b": {"0": 7, "1": -2}}') == {"b": {0: 7, 1: -2}}


@pytest.mark.parametrize(
    "text", ["", "newest", "{", "[1]", '{"b": 7}', '{"b": {"x": 1}}', '{"b": {"0": -3}}', "null"]
)
def test_an_invalid_offset_is_refused_by_name(text: str) -> None:
    with pytest.raises(ClientError, match="startingOffsets"):
        parse_offsets("startingOffsets", text)


@pytest.mark.parametrize(
    ("starting", "ending", "expected"),
    [
        (EARLIEST, LATEST, (100, 500, 0)),
        (LATEST, LATEST, (500, 500, 0)),
        ({"broker-a": {0: 200}}, {"broker-a": {0: 300}}, (200, 300, 0)),
        ({"broker-a": {0: 40}}, LATEST, (100, 500, 60)),
        ({"broker-a": {1: 200}}, {"other": {0: 1}}, (100, 500, 0)),
        ({"broker-a": {0: 300}}, {"broker-a": {0: 200}}, (300, 300, 0)),
        ({"broker-a": {0: 200}}, {"broker-a": {0: 9_999}}, (200, 500, 0)),
        ({"broker-a": {0: 501}}, LATEST, (100, 500, 0)),  # the queue was recreated
        ({"broker-a": {0: EARLIEST}}, {"broker-a": {0: LATEST}}, (100, 500, 0)),
    ],
)
def test_ranges_stay_within_the_queue_bounds(
    starting: int, ending: int, expected: tuple[int, int, int]
) -> None:
    [found] = ranges_to_read([QUEUE], starting, ending)
    assert (found.start, found.end, found.lost) == expected


ranges = st.lists(
    st.builds(
        lambda queue_id, start, count: QueueRange("b", queue_id, start, start + count),
        st.integers(0, 50),
        st.integers(0, 10**9),
        st.integers(0, 5000),
    ),
    max_size=8,
    unique_by=lambda part: part.queue_id,
)


@given(ranges, st.integers(1, 1000))
def test_slices_cover_each_range_once_and_none_is_too_long(
    wholes: list[QueueRange], rows_max: int
) -> None:
    parts = slices(wholes, rows_max)
    assert all(0 < part.count <= rows_max for part in parts)
    for whole in wholes:
        mine = [part for part in parts if part.queue_id == whole.queue_id]
        edges = [whole.start, *(part.end for part in mine)] if mine else [whole.end]
        assert [part.start for part in mine] == edges[:-1]
        assert edges[-1] == whole.end


@given(ranges, st.integers(1, 2000))
def test_a_limit_gives_every_queue_its_share(wholes: list[QueueRange], rows_max: int) -> None:
    cut = limited(wholes, rows_max)
    for whole, part in zip(wholes, cut, strict=True):
        assert part.start == whole.start
        assert min(1, whole.count) <= part.count <= whole.count
    assert sum(part.count for part in cut) <= max(rows_max, 0) + len(wholes)


@given(ranges, st.integers(1, 700))
def test_micro_batches_cover_the_ranges(wholes: list[QueueRange], rows_max: int) -> None:
    rounds = batches_of(wholes, rows_max)
    assert sum(part.count for parts in rounds for part in parts) == sum(w.count for w in wholes)
    for before, after in pairwise(rounds):
        assert [part.end for part in before] == [part.start for part in after]
    if rounds:
        assert next_offsets(rounds[-1]) == next_offsets(wholes)


def test_expired_messages_count_once() -> None:
    rounds = batches_of([QueueRange("b", 0, 10, 30, lost=10)], 10)
    assert [part.lost for parts in rounds for part in parts] == [10, 0]
