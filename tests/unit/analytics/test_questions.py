"""The analytics queries on small lakes whose answers are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from console.analytics import questions
from console.analytics.duck import reading
from console.analytics.questions import Counts, Scope, Spread
from console.analytics.ranges import on_grid
from tests.unit.analytics.lakes import BEGIN_MS, latency, make_lake, minute, slow
from trace.lake import HOUR_MS, part_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from console.analytics.duck import LakeReader
    from trace.lake import Lake

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
        slow=[slow(1, "A", 50), slow(2, "B", 5000), slow(3, "C", 700, "mail"), slow(61, "D", 9)],
    )


@pytest.fixture
def reader(lake: Lake) -> Iterator[LakeReader]:
    with reading(lake, lake.snapshot()) as made:
        yield made


def about(value: float) -> object:
    return pytest.approx(value, rel=0.011)


def test_totals_add_up_counts_and_histograms(reader: LakeReader) -> None:
    total = questions.totals(reader, HOUR)
    assert total.counts == Counts(107, 10, 9070, 51, 31, 10, 5)
    assert total.counts.send_success == 97 / 107
    assert total.counts.consume_success == 31 / 41
    assert (total.latency.p50, total.latency.p95) == (about(10), about(100))
    assert (total.latency.p99, total.latency.max) == (about(5000), about(5000))
    assert total.send_cost == Spread(about(3), about(3), about(3), about(3))


def test_a_series_has_every_point_of_its_grid(reader: LakeReader) -> None:
    points = questions.series(reader, HOUR)
    assert [point.name for point in points] == list(HOUR.range.points)
    assert len(points) == 60
    assert points[0].counts.sends == 100
    assert points[1].counts == Counts()
    assert points[1].latency == Spread()
    assert points[2].counts.consume_success is None
    assert points[3].counts.sends == 7


def test_a_coarser_grid_gathers_minutes(reader: LakeReader) -> None:
    day = Scope(on_grid(BEGIN_MS // (24 * HOUR_MS) * 24 * HOUR_MS, BEGIN_MS + 2 * HOUR_MS))
    assert day.range.step_ms > 60_000
    assert sum(point.counts.sends for point in questions.series(reader, day)) == 112


def test_tables_by_topic_and_group(reader: LakeReader) -> None:
    by_topic = {entry.name: entry for entry in questions.topics(reader, TWO_HOURS)}
    assert list(by_topic) == ["orders", "mail", None]
    assert by_topic["orders"].counts.sends == 105
    assert by_topic["orders"].latency.p50 == about(10)
    assert by_topic["mail"].latency == Spread()
    [group] = questions.groups(reader, TWO_HOURS)
    assert (group.name, group.counts.attempts, group.counts.sends) == ("billing", 51, 0)


def test_one_topic_and_one_group(reader: LakeReader) -> None:
    orders = Scope(HOUR.range, topic="orders")
    assert questions.totals(reader, orders).counts == Counts(100, 10, 9000, 50, 30, 10, 5)
    billing = Scope(HOUR.range, consumer_group="billing")
    assert questions.totals(reader, billing).counts == Counts(0, 0, 0, 51, 31, 10, 5)
    nobody = Scope(HOUR.range, topic="' OR 1=1 --")
    assert questions.totals(reader, nobody).counts == Counts()


def test_the_slowest_come_first_and_only_those_of_the_range(reader: LakeReader) -> None:
    assert [row.msg_id for row in questions.slowest(reader, HOUR)] == ["B", "C", "A"]
    mail = Scope(TWO_HOURS.range, topic="mail")
    assert [row.msg_id for row in questions.slowest(reader, mail)] == ["C"]


def test_a_range_without_data_is_empty_not_an_error(reader: LakeReader) -> None:
    later = Scope(on_grid(BEGIN_MS + 9 * HOUR_MS, BEGIN_MS + 10 * HOUR_MS))
    assert questions.totals(reader, later).counts == Counts()
    assert questions.topics(reader, later) == []


@pytest.mark.parametrize("content", [b"", b"PAR1 no parquet PAR1", b"PAR1" + b"\0" * 500])
def test_a_broken_file_is_left_out_and_named(lake: Lake, content: bytes) -> None:
    folder = lake.dataset("minute") / part_path(BEGIN_MS // HOUR_MS, 1)
    (folder / "part-1.parquet").write_bytes(content)
    with reading(lake, lake.snapshot()) as reader:
        assert questions.totals(reader, HOUR).counts.sends == 107
        assert reader.broken == [f"minute/{part_path(BEGIN_MS // HOUR_MS, 1)}/part-1.parquet"]


def test_a_file_cut_in_the_middle_is_left_out(lake: Lake) -> None:
    folder = lake.dataset("minute") / part_path(BEGIN_MS // HOUR_MS, 1)
    whole = (folder / "part-0.parquet").read_bytes()
    for size in range(0, len(whole), 97):
        (folder / "part-1.parquet").write_bytes(whole[:size])
        with reading(lake, lake.snapshot()) as reader:
            assert questions.totals(reader, HOUR).counts.sends == 107
            assert len(reader.broken) == 1


def test_a_file_with_other_columns_is_left_out(lake: Lake) -> None:
    folder = lake.dataset("minute") / part_path(BEGIN_MS // HOUR_MS, 1)
    other = lake.dataset("slow") / part_path(BEGIN_MS // HOUR_MS, 1) / "part-0.parquet"
    (folder / "part-1.parquet").write_bytes(other.read_bytes())
    with reading(lake, lake.snapshot()) as reader:
        assert questions.totals(reader, HOUR).counts.sends == 107
        assert len(reader.broken) == 1


def test_a_folder_that_is_gone_is_named(lake: Lake) -> None:
    folder = lake.dataset("minute") / part_path(BEGIN_MS // HOUR_MS, 1)
    (folder / "part-0.parquet").unlink()
    with reading(lake, lake.snapshot()) as reader:
        assert questions.totals(reader, HOUR).counts == Counts()
        assert reader.broken == [f"minute/{part_path(BEGIN_MS // HOUR_MS, 1)}"]


def test_folders_that_do_not_count_are_not_read(lake: Lake) -> None:
    counting = lake.dataset("minute") / part_path(BEGIN_MS // HOUR_MS, 1)
    unfinished = lake.dataset("minute") / part_path(BEGIN_MS // HOUR_MS, 2)
    unfinished.mkdir()
    (unfinished / "part-0.parquet").write_bytes((counting / "part-0.parquet").read_bytes())
    with reading(lake, lake.snapshot()) as reader:
        assert questions.totals(reader, HOUR).counts.sends == 107


def test_nothing_outside_of_the_lake_can_be_read(reader: LakeReader, tmp_path: Path) -> None:
    outside = tmp_path / "outside.csv"
    outside.write_text("a\n1\n")
    with pytest.raises(Exception, match="Permission Error"):
        reader.connection.execute(f"SELECT * FROM read_csv('{outside}')")
    with pytest.raises(Exception, match="locked"):
        reader.connection.execute("SET enable_external_access = true")
