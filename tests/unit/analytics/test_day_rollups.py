"""Day rollups: equal query results from fewer files, and no use of invalid rollups."""

import os
from pathlib import Path

import msgspec
import pytest
from pytest_django import Settings

from console.services.analytics import day_rollups, queries
from console.services.analytics.aggregates import Scope
from console.services.analytics.day_rollups import write_day_rollups
from console.services.analytics.duck import reading
from console.services.analytics.ranges import DAY_MS, on_grid
from console.services.jobs.paths import lake_of
from tests.unit.analytics.lakes import BEGIN_MS, edge, latency, make_lake, minute, slow
from trace.lake import HOUR_MS, Lake

MONTH = Scope(on_grid(BEGIN_MS - 20 * DAY_MS, BEGIN_MS + 10 * DAY_MS))
WEEK = Scope(on_grid(BEGIN_MS - 2 * DAY_MS, BEGIN_MS + 5 * DAY_MS))
#: Begins and ends in the middle of days with data before the begin and after the end.
CUT = Scope(on_grid(BEGIN_MS - 20 * HOUR_MS, BEGIN_MS - 20 * HOUR_MS + 7 * DAY_MS))
END = Scope(on_grid(BEGIN_MS + 20 * HOUR_MS - 7 * DAY_MS, BEGIN_MS + 20 * HOUR_MS))


@pytest.fixture
def lake(settings: Settings, tmp_path: Path) -> Lake:
    settings.GANTRY_HOME = tmp_path
    hours = range(-30, 40)
    return make_lake(
        lake_of("local"),
        minute=[minute(60 * hour + 7, "orders", sends=hour + 100, bytes=5) for hour in hours],
        latency=[latency(60 * hour, "orders", "billing", 10 + hour % 7, 3) for hour in hours],
        slow=[slow(60 * hour, f"A{hour}", 5000 - hour) for hour in hours],
        edges=[
            {**edge("shop", "orders", None, 9), "hour_ms": BEGIN_MS + hour * HOUR_MS}
            for hour in hours
        ],
    )


def query_results(lake: Lake, scope: Scope) -> tuple[object, int]:
    """The results of all queries for a scope, and the number of files read."""
    with reading(lake, lake.snapshot()) as reader:
        said = (
            queries.overview(reader, scope),
            queries.series(reader, scope),
            sorted(queries.bands(reader, scope, "latency")),
            queries.edges(reader, scope),
            queries.slowest(reader, scope),
        )
        return said, reader.files_read


@pytest.mark.parametrize("scope", [MONTH, WEEK, CUT, END], ids=["month", "week", "cut", "end"])
def test_rollups_give_equal_results_from_fewer_files(lake: Lake, scope: Scope) -> None:
    before, many = query_results(lake, scope)
    assert write_day_rollups("local", lambda: None) == 4
    after, few = query_results(lake, scope)
    assert after == before
    assert few < many / 10
    assert write_day_rollups("local", lambda: None) == 0


@pytest.mark.parametrize("begin_minutes", [-600, -607, -650])
def test_whole_hours_of_a_day_are_read_as_sums(lake: Lake, begin_minutes: int) -> None:
    """Only the minutes at both ends are read, and no row counts twice."""
    begin_ms = BEGIN_MS + begin_minutes * 60_000
    scope = Scope(on_grid(begin_ms, begin_ms + 20 * HOUR_MS))
    before, many = query_results(lake, scope)
    write_day_rollups("local", lambda: None)
    after, few = query_results(lake, scope)
    assert after == before
    assert few < many - 30


def test_minutes_are_read_where_a_chart_shows_minutes(lake: Lake) -> None:
    scope = Scope(on_grid(BEGIN_MS, BEGIN_MS + HOUR_MS))
    before, files = query_results(lake, scope)
    write_day_rollups("local", lambda: None)
    assert query_results(lake, scope) == (before, files)
    assert files == 7


def test_rollups_of_a_rewritten_hour_are_not_used(lake: Lake) -> None:
    write_day_rollups("local", lambda: None)
    old = lake.snapshot()
    again = make_lake(lake.root.parent / "again", minute=[minute(0, "orders", sends=1)], latency=[])
    hour = BEGIN_MS // HOUR_MS
    [folder] = again.folders("minute", again.snapshot().parts["minute"], [hour])
    target = lake.dataset("minute") / folder.relative_to(again.dataset("minute")).parent / "run=2"
    folder.rename(target)
    parts = {**old.parts, "minute": {**old.parts["minute"], hour: [2]}}
    lake.commit(msgspec.structs.replace(old, run=2, parts=parts))
    with reading(lake, lake.snapshot()) as reader:
        sends = queries.overview(reader, MONTH).total.counts.sends
    assert sends == sum(hour + 100 for hour in range(-30, 40)) - 99
    assert write_day_rollups("local", lambda: None) == 1
    assert query_results(lake, MONTH)[1] < 40


def test_invalid_rollups_are_deleted_after_a_while(lake: Lake) -> None:
    write_day_rollups("local", lambda: None)
    stray = lake.root / "days" / "minute" / "6" / "2020-01-01-0000.parquet"
    stray.write_bytes(b"")
    write_day_rollups("local", lambda: None)
    assert stray.exists()
    os.utime(stray, (0, 0))
    write_day_rollups("local", lambda: None)
    assert not stray.exists()
    assert write_day_rollups("local", lambda: None) == 0


def test_an_unreadable_day_is_read_from_minutes(lake: Lake) -> None:
    [folder] = lake.folders("minute", lake.snapshot().parts["minute"], [BEGIN_MS // HOUR_MS])
    (folder / "part-0.parquet").write_bytes(b"half")
    assert write_day_rollups("local", lambda: None) == 4
    with reading(lake, lake.snapshot()) as reader:
        sends = queries.overview(reader, MONTH).total.counts.sends
        assert sends == sum(hour + 100 for hour in range(-30, 40)) - 100
        assert len(reader.broken) == 1


def test_no_sums_without_a_lake(settings: Settings, tmp_path: Path) -> None:
    settings.GANTRY_HOME = tmp_path
    assert write_day_rollups("local", lambda: None) == 0
    assert day_rollups.level_for(60_000) is None
