"""The synthetic lake: all tables exist and agree, and a query over a month reads few files."""

from pathlib import Path

import pytest
from pytest_django import Settings

from benchmarks.lake import make_lake
from console.services.analytics import queries
from console.services.analytics.aggregates import Scope
from console.services.analytics.day_rollups import write_day_rollups
from console.services.analytics.lake_session import lake_reader
from console.services.analytics.ranges import DAY_MS, on_grid
from console.services.jobs.paths import lake_of
from trace.lake import DATASETS, HOUR_MS, Lake

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
        assert total.sends == EVENTS // 4
        assert total.sends + 2 * total.deliveries == snapshot.records
        assert sum(edge.messages for edge in edges if edge.is_consuming) == total.deliveries
        assert queries.slowest(reader, scope)[0].latency_ms


def test_a_month_is_read_from_a_file_per_day_and_an_hour_from_one(lake: Lake) -> None:
    write_day_rollups("bench", lambda: None)
    for length_ms, most in ((30 * DAY_MS, DAYS), (DAY_MS, 25), (HOUR_MS, 1)):
        scope = Scope(on_grid(END_MS - length_ms, END_MS))
        with lake_reader("bench") as reader:
            queries.edges(reader, scope)
            assert reader.files_read <= most
