"""The synthetic lake: all tables exist and agree, and a query over a month reads few files."""

from pathlib import Path

import pytest
from pytest_django import Settings

from benchmarks.lake import make_lake
from benchmarks.lake_sql import EVENTS_PER_MESSAGE, subscriptions
from console.services.analytics import queries, unconsumed
from console.services.analytics.aggregates import Scope
from console.services.analytics.day_rollups import write_day_rollups
from console.services.analytics.lake_session import lake_reader
from console.services.analytics.ranges import DAY_MS, on_grid
from console.services.jobs.paths import lake_of
from trace.lake import DATASETS, EDGES, HOUR_MS, UNTRACED, Lake

EVENTS = 8_000
DAYS = 2
END_MS = 20_500 * DAY_MS


@pytest.fixture
def lake(settings: Settings, tmp_path: Path) -> Lake:
    settings.GANTRY_HOME = tmp_path
    made = Lake(lake_of("bench"))
    make_lake(made, EVENTS, END_MS, DAYS)
    return made


def test_the_tables_agree(lake: Lake) -> None:
    snapshot = lake.snapshot()
    assert set(snapshot.parts) == set(DATASETS)
    assert snapshot.records == pytest.approx(EVENTS, rel=0.05)
    with lake_reader("bench") as reader:
        scope = Scope(on_grid(END_MS - 3 * DAY_MS, END_MS))
        total = queries.overview(reader, scope).total.counts
        edges = queries.edges(reader, scope)
        assert total.sends == DAYS * int(EVENTS / DAYS / EVENTS_PER_MESSAGE)
        assert total.sends + 2 * total.deliveries == snapshot.records
        assert sum(edge.messages for edge in edges if edge.is_consuming) == total.deliveries
        assert queries.slowest(reader, scope)[0].latency_ms
        missed = [
            reader.rows(f"SELECT sum({column}) FROM {{files}}", table, scope.range)
            for column, table in (("untraced", EDGES), ("messages", UNTRACED))
        ]
        assert missed[0] == missed[1] > [(EVENTS / EVENTS_PER_MESSAGE // 200,)]


def test_some_untraced_messages_are_filtered_passed_or_pending(lake: Lake) -> None:
    scope = Scope(on_grid(END_MS - 3 * DAY_MS, END_MS))
    with lake_reader("bench") as reader:
        [(untraced,)] = reader.rows("SELECT sum(messages) FROM {files}", UNTRACED, scope.range)
        missed = unconsumed.missed(reader, scope)
    total = unconsumed.total(missed)
    assert 0 < total.pending < untraced
    assert total.unknown == 0
    assert set(missed) <= {(each.topic, each.consumer_group) for each in subscriptions(END_MS)}


def test_a_month_is_read_from_a_file_per_day_and_an_hour_from_one(lake: Lake) -> None:
    write_day_rollups("bench", lambda: None)
    tables = 2  # edges and untraced
    for length_ms, most in ((30 * DAY_MS, DAYS), (DAY_MS, 25), (HOUR_MS, 1)):
        scope = Scope(on_grid(END_MS - length_ms, END_MS))
        with lake_reader("bench") as reader:
            queries.edges(reader, scope)
            assert reader.files_read <= most * tables
