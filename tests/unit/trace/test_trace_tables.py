"""Spark and DuckDB read the same columns and types from the lake's tables."""

from pathlib import Path

import duckdb
import msgspec
import pytest

from trace.lake import (
    CONSUMERS,
    DATASETS,
    DERIVED,
    EVENTS,
    LAKE_VERSION,
    WITH_UNTRACED,
    Lake,
    Snapshot,
)
from trace.tables import LEVELS, MEASURES, MINUTE, TABLES


@pytest.mark.parametrize("name", DATASETS)
def test_duckdb_supports_every_type_and_each_table_has_a_time_column(name: str) -> None:
    table = TABLES[name]
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE t ({table.schema})")
        described = connection.execute("DESCRIBE t").fetchall()
    assert [row[0] for row in described] == list(table.names)
    assert len(set(table.names)) == len(table.names)
    assert table.time_column in table.names
    assert all(column.meaning for column in table.columns)


def test_every_measure_has_its_percentiles() -> None:
    wanted = {f"{measure}_{level}" for measure in MEASURES for level in (*LEVELS, "max")}
    assert wanted <= set(MINUTE.names)


def test_an_older_lake_keeps_its_events_and_gets_new_rollups(tmp_path) -> None:
    lake = Lake(tmp_path)
    old = Snapshot(
        version=1,
        topic="T",
        run=4,
        offsets={"a": {0: 9}},
        parts={EVENTS: {7: [1], 5: [1, 4]}, "minute": {5: [4]}, "slow": {7: [4]}},
    )
    lake.commit(old)
    assert lake.snapshot() == msgspec.structs.replace(
        old,
        version=LAKE_VERSION,
        parts={EVENTS: {7: [1], 5: [1, 4]}},
        facts_from=8,
        stale={name: [5, 7] for name in (CONSUMERS, *DERIVED)},
    )


@pytest.mark.parametrize("version", [2, 3])
def test_a_lake_without_tags_keeps_counts_and_latencies(tmp_path: Path, version: int) -> None:
    lake = Lake(tmp_path)
    events = {5: [1], 40: [1, 4]}
    minutes = {"minute": {5: [4], 40: [4]}}
    parts = {EVENTS: events, "edges": {5: [4]}, "facts": {5: [4]}, **minutes}
    old = Snapshot(version=version, topic="T", run=4, parts=parts, stale={"minute": [40]})
    lake.commit(old)
    upgraded = msgspec.structs.replace(
        old,
        version=LAKE_VERSION,
        parts={EVENTS: events, **minutes},
        facts_from=41,
        stale={
            "minute": [40],
            "latency": [],
            CONSUMERS: [40],
            **{name: [5, 40] for name in WITH_UNTRACED},
        },
    )
    assert lake.snapshot() == upgraded
    lake.commit(msgspec.structs.replace(old, pending=[4]))
    found = lake.snapshot()
    assert (found.pending, found.parts) == ([], {EVENTS: events})
    assert found.stale["minute"] == [5, 40]
