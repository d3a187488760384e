"""The snapshot of the lake: atomic commits, missing files, malformed files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace.lake import (
    EVENTS,
    HOUR_MS,
    Lake,
    LakeError,
    Snapshot,
    extended_parts,
    hour_of,
    part_path,
    replaced_parts,
)
from trace.latency import bucket_of, bucket_value_ms

HOUR = 489_563


def test_a_missing_lake_is_empty(tmp_path: Path) -> None:
    assert Lake(tmp_path / "none").snapshot() == Snapshot()


def test_commit_and_read_back(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    snapshot = Snapshot(
        topic="T", run=3, offsets={"broker-a": {0: 17}}, parts={EVENTS: {HOUR: [1, 3]}}
    )
    lake.commit(Snapshot(run=2))
    lake.commit(snapshot)
    assert lake.snapshot() == snapshot
    assert [path.name for path in lake.root.iterdir()] == ["snapshot.json"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"run": "x"}', b'{"version": 9}', b"\xff", b'{"parts": {"a": 1}}'],
)
def test_a_malformed_snapshot_is_an_error_with_its_path(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "snapshot.json").write_bytes(content)
    with pytest.raises(LakeError, match=r"snapshot\.json"):
        Lake(tmp_path).snapshot()


def test_folders_come_in_order_of_time(tmp_path: Path) -> None:
    lake, parts = Lake(tmp_path), {HOUR + 1: [4], HOUR: [1, 3]}
    assert lake.folders(EVENTS, parts) == [
        tmp_path / "events" / part_path(hour, run)
        for hour, run in ((HOUR, 1), (HOUR, 3), (HOUR + 1, 4))
    ]
    assert lake.folders(EVENTS, parts, [HOUR + 1, HOUR + 9]) == [
        tmp_path / "events" / part_path(HOUR + 1, 4)
    ]


def test_all_folders_on_disk_are_listed(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for hour, run in ((HOUR, 1), (HOUR + 30, 22)):
        (lake.dataset(EVENTS) / part_path(hour, run)).mkdir(parents=True)
    (lake.dataset(EVENTS) / "_temporary" / "0").mkdir(parents=True)
    found = {(hour, run) for hour, run, _ in lake.on_disk(EVENTS)}
    assert found == {(HOUR, 1), (HOUR + 30, 22)}


@given(st.integers(0, 800_000), st.integers(1, 10**9))
def test_the_path_of_a_part_names_its_hour(hour: int, run: int) -> None:
    day, of_day, of_run = (piece.partition("=")[2] for piece in part_path(hour, run).split("/"))
    assert (len(day), int(of_day), int(of_run)) == (10, hour % 24, run)
    assert hour_of(hour * HOUR_MS) == hour_of(hour * HOUR_MS + HOUR_MS - 1) == hour


def test_replaced_and_extended_parts() -> None:
    parts = {1: [1], 2: [1], 3: [1]}
    assert replaced_parts(parts, 7, written=[2], redone=[2, 3]) == {1: [1], 2: [7]}
    assert extended_parts(parts, 7, [2, 9]) == {1: [1], 2: [1, 7], 3: [1], 9: [7]}


@given(st.integers(0, 10**9))
def test_a_bucket_is_within_one_percent_of_its_latencies(latency_ms: int) -> None:
    value = bucket_value_ms(bucket_of(latency_ms))
    assert abs(value - latency_ms) <= max(0.0100001 * latency_ms, 1 if latency_ms <= 1 else 0)
