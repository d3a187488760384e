"""The analytics queries on small lakes with known results."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from pytest_django import Settings

from console.services.analytics import duck, queries
from console.services.analytics.aggregates import Aggregates, Counts, Percentiles, Scope
from console.services.analytics.duck import LakeReader, TooBusyError, TooSlowError, reading
from console.services.analytics.ranges import on_grid
from tests.unit.analytics.lakes import BEGIN_MS, edge, latency, make_lake, minute, never, slow
from trace.lake import HOUR_MS, Lake, part_path

HOUR = Scope(on_grid(BEGIN_MS, BEGIN_MS + HOUR_MS))
TWO_HOURS = Scope(on_grid(BEGIN_MS, BEGIN_MS + 2 * HOUR_MS))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return make_lake(
        tmp_path / "it's a lake",
        minute=[
            minute(0, "orders", sends=100, send_failures=10, bytes=9000),
            minute(0, "orders", "billing", attempts=50, successes=30, failures=10, retries=5),
            minute(0, None, "billing", attempts=1, successes=1),
            minute(3, "mail", sends=7, bytes=70),
            minute(60, "orders", sends=5),
        ],
        latency=[
            latency(0, "orders", "billing", 10, 94),
            latency(1, "orders", "billing", 100, 4),
            latency(2, "orders", "billing", 5000, 2),
            latency(0, "orders", None, 3, 100, "send_cost"),
        ],
        slow=[
            *(slow(1, "A", 50), slow(2, "B", 5000), slow(3, "C", 700, "mail"), slow(61, "D", 9)),
            *(never(4, "N"), never(5, "M"), never(6, "O", "mail")),
        ],
        edges=[
            edge("shop", "orders", None, 90, failures=10),
            edge("shop", "orders", "billing", 60, untraced=3),
            edge("crm", "orders", "billing", 5),
            edge("crm", "mail", None, 7),
            edge(None, None, "billing", 1),
        ],
    )


@pytest.fixture
def reader(lake: Lake) -> Iterator[LakeReader]:
    with reading(lake, lake.snapshot()) as lake_reader:
        yield lake_reader


def totals(reader: LakeReader, scope: Scope) -> Aggregates:
    return queries.overview(reader, scope).total


def about(value: float) -> object:
    return pytest.approx(value, rel=0.011)


def test_totals_add_up_counts_and_histograms(reader: LakeReader) -> None:
    total = totals(reader, HOUR)
    assert total.counts == Counts(107, 10, 9070, 51, 31, 10, 5)
    assert total.counts.send_success == 97 / 107
    assert total.counts.consume_success == 31 / 41
    assert (total.latency.p50, total.latency.p95) == (about(10), about(100))
    assert (total.latency.p99, total.latency.max) == (about(5000), about(5000))
    assert total.send_cost == Percentiles(about(3), about(3), about(3), about(3))


def test_a_series_has_every_point_of_its_grid(reader: LakeReader) -> None:
    points = queries.series(reader, HOUR)
    assert [point.at_ms for point in points] == list(HOUR.range.points)
    assert len(points) == 60
    sends = [point.counts.sends if point.counts else None for point in points]
    assert sends[:5] == [100, None, None, 7, None], "a point without records is a gap, not 0"
    assert points[1].latency.p50 == about(100)
    assert points[4].latency == Percentiles()


def test_a_coarser_grid_gathers_minutes(reader: LakeReader) -> None:
    day = Scope(on_grid(BEGIN_MS // (24 * HOUR_MS) * 24 * HOUR_MS, BEGIN_MS + 2 * HOUR_MS))
    assert day.range.step_ms > 60_000
    assert sum(point.counts.sends for point in queries.series(reader, day) if point.counts) == 112


def test_tables_by_topic_and_group(reader: LakeReader) -> None:
    by_topic = {entry.name: entry for entry in queries.overview(reader, TWO_HOURS).topics}
    assert list(by_topic) == ["orders", "mail", None]
    assert by_topic["orders"].counts.sends == 105
    assert by_topic["orders"].latency.p50 == about(10)
    assert by_topic["mail"].latency == Percentiles()
    [group] = queries.overview(reader, TWO_HOURS).groups
    assert (group.name, group.counts.attempts, group.counts.sends) == ("billing", 51, 0)


def test_one_topic_and_one_group(reader: LakeReader) -> None:
    orders = Scope(HOUR.range, topic="orders")
    assert totals(reader, orders).counts == Counts(100, 10, 9000, 50, 30, 10, 5)
    billing = Scope(HOUR.range, consumer_group="billing")
    assert totals(reader, billing).counts == Counts(0, 0, 0, 51, 31, 10, 5)
    nobody = Scope(HOUR.range, topic="' OR 1=1 --")
    assert totals(reader, nobody).counts == Counts()


def test_the_slowest_come_first_and_only_those_of_the_range(reader: LakeReader) -> None:
    assert [row.msg_id for row in queries.slowest(reader, HOUR)] == ["B", "C", "A"]
    mail = Scope(TWO_HOURS.range, topic="mail")
    assert [row.msg_id for row in queries.slowest(reader, mail)] == ["C"]


def test_kinds_of_messages(lake: Lake) -> None:
    order = {**minute(0, "orders", sends=3), "msg_type": 4}
    unknown = {**minute(0, None, "billing", attempts=1), "msg_type": None}
    typed_lake = make_lake(
        lake.root.parent / "kinds", minute=[order, minute(0, "a", sends=9), unknown]
    )
    with reading(typed_lake, typed_lake.snapshot()) as reader:
        counts = {entry.name: entry.counts for entry in queries.overview(reader, HOUR).kinds}
        assert list(counts) == ["normal", "order", None]
        assert counts["order"].sends == 3
        only = Scope(HOUR.range, kind="order")
        assert totals(reader, only).counts.sends == 3


def test_only_slow_messages_are_slowest(reader: LakeReader) -> None:
    assert [row.msg_id for row in queries.slowest(reader, HOUR)] == ["B", "C", "A"]
    assert len(queries.slowest(reader, HOUR, limit=2)) == 2


def test_edges_are_added_up_per_pair(reader: LakeReader) -> None:
    by_pair = {
        (
            edge.producer_group if not edge.is_consuming else "",
            edge.topic,
            edge.consumer_group,
        ): edge
        for edge in queries.edges(reader, HOUR)
    }
    assert by_pair["shop", "orders", None].failure_rate == 10 / 90
    assert by_pair["", "orders", "billing"].messages == 65
    assert by_pair["", None, "billing"].messages == 1
    assert len(by_pair) == 4
    billing = queries.edges(reader, Scope(HOUR.range, consumer_group="billing"))
    assert {edge.topic for edge in billing} == {"orders", None}
    mail = queries.edges(reader, Scope(HOUR.range, topic="mail"))
    assert [edge.producer_group for edge in mail] == ["crm"]


def test_the_funnel_goes_from_sent_to_succeeded(reader: LakeReader) -> None:
    steps = queries.funnel(reader, HOUR, totals(reader, HOUR))
    counts = {step.name: step.count for step in steps}
    assert (counts["sent"], counts["stored"], counts["retried"]) == (107, 97, 5)
    assert (counts["never_consumed"], counts["unconfirmed"]) == (0, 0)


def test_bands_by_point(reader: LakeReader) -> None:
    bands = queries.bands(reader, HOUR, "latency")
    assert sorted((point - BEGIN_MS, count) for point, _band, count in bands) == [
        (0, 94),
        (60_000, 4),
        (120_000, 2),
    ]


def test_after_a_vanished_file_the_newest_snapshot_is_read(lake: Lake) -> None:
    old = lake.snapshot()
    hour = BEGIN_MS // HOUR_MS
    before, after = (lake.dataset("minute") / part_path(hour, run) for run in (1, 2))
    parts = {**old.parts, "minute": {**old.parts["minute"], hour: [2]}}
    with reading(lake, old) as reader:
        before.rename(after)
        lake.commit(msgspec.structs.replace(old, run=2, parts=parts))
        assert totals(reader, HOUR).counts.sends == 107
        assert reader.broken == []


def test_a_range_without_data_is_empty_not_an_error(reader: LakeReader) -> None:
    later = Scope(on_grid(BEGIN_MS + 9 * HOUR_MS, BEGIN_MS + 10 * HOUR_MS))
    assert totals(reader, later).counts == Counts()
    assert queries.overview(reader, later).topics == []


@pytest.mark.parametrize("content", [b"", b"PAR1 no parquet PAR1", b"PAR1" + b"\0" * 500])
def test_a_broken_file_is_skipped_and_named(lake: Lake, content: bytes) -> None:
    folder = lake.dataset("minute") / part_path(BEGIN_MS // HOUR_MS, 1)
    (folder / "part-1.parquet").write_bytes(content)
    with reading(lake, lake.snapshot()) as reader:
        assert totals(reader, HOUR).counts.sends == 107
        assert reader.broken == [f"minute/{part_path(BEGIN_MS // HOUR_MS, 1)}/part-1.parquet"]


def test_a_file_cut_in_the_middle_is_left_out(lake: Lake) -> None:
    folder = lake.dataset("minute") / part_path(BEGIN_MS // HOUR_MS, 1)
    whole = (folder / "part-0.parquet").read_bytes()
    for size in range(0, len(whole), 97):
        (folder / "part-1.parquet").write_bytes(whole[:size])
        with reading(lake, lake.snapshot()) as reader:
            assert totals(reader, HOUR).counts.sends == 107
            assert len(reader.broken) == 1


def test_a_file_with_other_columns_is_left_out(lake: Lake) -> None:
    folder = lake.dataset("minute") / part_path(BEGIN_MS // HOUR_MS, 1)
    other = lake.dataset("slow") / part_path(BEGIN_MS // HOUR_MS, 1) / "part-0.parquet"
    (folder / "part-1.parquet").write_bytes(other.read_bytes())
    with reading(lake, lake.snapshot()) as reader:
        assert totals(reader, HOUR).counts.sends == 107
        assert len(reader.broken) == 1


def test_a_missing_folder_is_named(lake: Lake) -> None:
    folder = lake.dataset("minute") / part_path(BEGIN_MS // HOUR_MS, 1)
    (folder / "part-0.parquet").unlink()
    with reading(lake, lake.snapshot()) as reader:
        assert totals(reader, HOUR).counts == Counts()
        assert reader.broken == [f"minute/{part_path(BEGIN_MS // HOUR_MS, 1)}"]


def test_folders_that_do_not_count_are_not_read(lake: Lake) -> None:
    counting = lake.dataset("minute") / part_path(BEGIN_MS // HOUR_MS, 1)
    unfinished = lake.dataset("minute") / part_path(BEGIN_MS // HOUR_MS, 2)
    unfinished.mkdir()
    (unfinished / "part-0.parquet").write_bytes((counting / "part-0.parquet").read_bytes())
    with reading(lake, lake.snapshot()) as reader:
        assert totals(reader, HOUR).counts.sends == 107


def test_a_slow_query_is_interrupted(reader: LakeReader, settings: Settings) -> None:
    settings.ANALYTICS_SECONDS = 0.1
    endless = (
        "SELECT count(*) FROM range(10000000000) AS a(i), {files} WHERE i % 7 = minute_ms % 5 + 9"
    )
    with pytest.raises(TooSlowError, match="longer than"):
        reader.rows(endless, "minute", HOUR.range)


def test_concurrent_queries_are_limited(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duck, "READER_WAIT_S", 0.01)
    with ExitStack() as open_ones:
        for _ in range(duck.READERS_MAX):
            open_ones.enter_context(reading(lake, lake.snapshot()))
        with pytest.raises(TooBusyError):
            open_ones.enter_context(reading(lake, lake.snapshot()))
    with reading(lake, lake.snapshot()):
        pass


def test_nothing_outside_of_the_lake_can_be_read(reader: LakeReader, tmp_path: Path) -> None:
    outside = tmp_path / "outside.csv"
    outside.write_text("a\n1\n")
    with pytest.raises(Exception, match="Permission Error"):
        reader.connection.execute(f"SELECT * FROM read_csv('{outside}')")
    with pytest.raises(Exception, match="locked"):
        reader.connection.execute("SET enable_external_access = true")
