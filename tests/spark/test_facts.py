"""Facts and tables of literal events, and against the timeline of single messages."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy
import pyarrow
import pyarrow.compute as pc
import pytest

from benchmarks.trace_check import percentile
from spark_jobs.jobs.micro_batch import newly_overdue_hours
from spark_jobs.tables import message_flow
from spark_jobs.tables.derived import empty_partial_tables, partial_tables, tables_of
from spark_jobs.tables.facts import (
    Facts,
    by_kind,
    by_message,
    facts_in,
)
from spark_jobs.tables.groups import percentiles
from trace.attempts import AttemptState
from trace.codec import EndTransaction, Pub, Recall, SubAfter, SubBefore, TraceRecord
from trace.columns import arrow_schema
from trace.lake import DERIVED, EDGES, HOUR_MS, LATENCY, MINUTE, SLOW, UNTRACED
from trace.latency import bucket_of
from trace.tables import EVENTS, TABLES
from trace.timeline import Outcome, build_timeline

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

HOUR = 489_000
START_MS = HOUR * HOUR_MS
SEED = 7
COLUMN_OF = {"group": "group_name"}
Row = SimpleNamespace


def events_of(records: list[TraceRecord]) -> pyarrow.Table:
    """Events as `decode_events` returns them, each record in a separate trace message."""
    rows = []
    for index, record in enumerate(records):
        values: dict[str, Any] = {
            COLUMN_OF.get(name, name): getattr(record, name) for name in record.__struct_fields__
        }
        values |= {"broker": "b", "queue_id": 0, "queue_offset": index, "record_index": 0}
        stored_ms = (record.timestamp_ms or START_MS) + 5000  # type: ignore[union-attr]
        values |= {"kind": type(record).__name__, "stored_ms": stored_ms}
        if "msg_type" in values:
            values["msg_type"] = int(values["msg_type"])
        values["event_ms"] = values.get("timestamp_ms") or stored_ms
        rows.append(values)
    return pyarrow.Table.from_pylist(rows, arrow_schema(EVENTS))


def sent(at_ms: int, msg_id: str, cost_ms: int = 10, **more: Any) -> Pub:
    given = {"group": "shop", "topic": "orders", "body_bytes": 100, "msg_type": 0} | more
    return Pub(timestamp_ms=START_MS + at_ms, msg_id=msg_id, cost_ms=cost_ms, **given)


def consumed(
    at_ms: int, msg_id: str, request_id: str, cost_ms: int = 5, **more: Any
) -> list[TraceRecord]:
    given = {"group": "billing", "retry_times": 0, "success": True} | more
    return [
        SubBefore(
            timestamp_ms=START_MS + at_ms,
            group=given["group"],
            request_id=request_id,
            msg_id=msg_id,
            retry_times=given["retry_times"],
        ),
        SubAfter(
            request_id=request_id,
            msg_id=msg_id,
            cost_ms=cost_ms,
            success=given["success"],
            context_code=0,
            timestamp_ms=START_MS + at_ms + cost_ms,
            group=given["group"],
        ),
    ]


def fact_tables(
    records: list[TraceRecord], limits: dict[str, int] | None = None
) -> list[pyarrow.Table]:
    """The facts of three tasks, each with some of the messages."""
    hours = range(HOUR, HOUR + 2)
    parts = by_message(events_of(records), 3)
    return [facts_in(events, hours, limits or {}) for _part, events in parts]


def facts_of(records: list[TraceRecord], limits: dict[str, int] | None = None) -> list[Facts]:
    """The facts of three tasks, by kind."""
    return [by_kind(facts) for facts in fact_tables(records, limits)]


def rows_of(tables: Iterable[pyarrow.Table]) -> list[Row]:
    return [SimpleNamespace(**row) for table in tables for row in table.to_pylist()]


def tables_in(records: list[TraceRecord], watermark_ms: int = START_MS) -> dict[str, list[Row]]:
    """All tables of HOUR, as one task per hour makes them from the results of three tasks."""
    partial = {name: [table] for name, table in empty_partial_tables().items()}
    for facts in fact_tables(records):
        mine = facts.filter(pc.equal(facts.column("hour_ms"), START_MS))
        for name, table in partial_tables(mine).items():
            partial[name].append(table)
    merged = {name: pyarrow.concat_tables(parts) for name, parts in partial.items()}
    made = tables_of(HOUR, merged, partial["awaited"], DERIVED, watermark_ms)
    for name, table in made.items():
        assert table.schema == arrow_schema(TABLES[name])
    return {name: rows_of([table]) for name, table in made.items()}


def minute_rows(records: list[TraceRecord]) -> dict[tuple[Any, ...], Row]:
    return {
        (
            (row.minute_ms - START_MS) // 60_000,
            row.topic,
            row.producer_group,
            row.consumer_group,
        ): row
        for row in tables_in(records)[MINUTE]
    }


def test_minutes_count_sends_and_consumption() -> None:
    records: list[TraceRecord] = [
        sent(0, "A", cost_ms=10),
        sent(1_000, "B", cost_ms=30),
        sent(2_000, "C", cost_ms=3000, success=False),
        sent(6_000, "C", cost_ms=20),
        sent(61_000, "D1,D2,D3", cost_ms=4, body_bytes=300),
        *consumed(1_005, "A", "r1"),
        *consumed(2_015, "B", "r2", success=False),
        *consumed(12_000, "B", "r3", retry_times=1),
        *consumed(61_102, "D2", "r4"),
        *consumed(5_000, "unknown", "r5"),
    ]
    rows = minute_rows([*records, records[0], *records[5:7]])  # with repeated records

    sends = rows[0, "orders", "shop", None]
    assert (sends.sends, sends.send_failures, sends.bytes) == (4, 1, 300)
    assert (sends.send_cost_p50, sends.send_cost_max) == (25.0, 3000.0)
    assert (sends.attempts, sends.latency_p50) == (0, None)
    assert rows[1, "orders", "shop", None].sends == 3

    billing = rows[0, "orders", "shop", "billing"]
    assert (billing.attempts, billing.successes, billing.failures, billing.retries) == (3, 2, 1, 1)
    assert (billing.latency_p50, billing.latency_max) == (1000.0, 1000.0)
    assert billing.sends == 0
    assert rows[1, "orders", "shop", "billing"].latency_max == 100.0  # a batch is one send

    lost_origin = rows[0, None, None, "billing"]
    assert (lost_origin.attempts, lost_origin.latency_max) == (1, None)
    assert len(rows) == 5


def test_lost_halves_of_an_attempt() -> None:
    begin_only, end_only = consumed(500, "A", "r1")[0], consumed(900, "B", "r2", cost_ms=50)[1]
    rows = {
        row.msg_id: row
        for row in rows_of(part.attempts for part in facts_of([begin_only, end_only]))
    }
    assert (rows["A"].success, rows["A"].duration_ms) == (None, None)
    assert rows["A"].start_ms == START_MS + 500
    assert (rows["B"].success, rows["B"].duration_ms, rows["B"].retry_times) == (True, 50, None)
    assert (rows["B"].start_ms, rows["B"].consumer_group) == (START_MS + 900, "billing")


def test_an_end_without_a_time_has_its_cost() -> None:
    """Clients before 4.9.4 record no time in SubAfter: the store time is seconds too late."""
    begin, end = consumed(500, "A", "r1", cost_ms=7)
    untimed = msgspec.structs.replace(end, timestamp_ms=None, group="")
    (row,) = rows_of(part.attempts for part in facts_of([sent(0, "A"), begin, untimed]))
    assert (row.start_ms, row.duration_ms, row.end_to_end_ms) == (START_MS + 500, 7, 507)


def test_histograms_add_up_and_slow_lists_are_limited() -> None:
    count = message_flow.LISTED_PER_HOUR_MAX + 5
    records: list[TraceRecord] = []
    for i in range(count):
        records += [sent(i, f"M{i:02}", cost_ms=2), *consumed(i + 1 + i * 100, f"M{i:02}", f"r{i}")]
    tables = tables_in(records, watermark_ms=START_MS + HOUR_MS)
    by_measure: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for row in tables[LATENCY]:
        by_measure[row.measure][row.bucket] += row.count
    assert by_measure["send_cost"] == {bucket_of(2): count}
    expected: dict[int, int] = defaultdict(int)
    for i in range(count):
        expected[bucket_of(i * 100)] += 1
    assert by_measure["latency"] == expected

    slow = sorted(tables[SLOW], key=lambda row: -row.latency_ms)
    assert [row.latency_ms for row in slow] == [100 * i for i in range(count - 1, 4, -1)]
    assert {(row.reason, row.at_ms - row.start_ms, row.attempts) for row in slow} == {
        ("slow", 0, 1)
    }


def missed_in(records: list[TraceRecord], watermark_ms: int) -> set[tuple[str, str]]:
    """Message and group of the untraced messages; the lists are long enough for all."""
    slow = tables_in(records, watermark_ms)[SLOW]
    return {(r.msg_id, r.consumer_group) for r in slow if r.reason == "untraced"}


def test_untraced_messages() -> None:
    late = 10 * 60_000
    records: list[TraceRecord] = [
        sent(0, "had"),
        *consumed(1_000, "had", "r1"),
        sent(1_000, "missed"),
        sent(1_500, "batch1,batch2", body_bytes=200),
        *consumed(1_600, "batch2", "r2"),
        sent(1_700, "other", topic="payments"),
        sent(1_800, "failed", success=False),
        sent(1_900, "delayed", msg_type=3),
        sent(2_000, "recalled"),
        Recall(timestamp_ms=START_MS + 2_500, group="shop", topic="orders", msg_id="recalled"),
        sent(2_100, "half", msg_type=1),
        sent(2_200, "committed", msg_type=1),
        EndTransaction(
            timestamp_ms=START_MS + 2_300,
            group="shop",
            topic="orders",
            msg_id="committed",
            transaction_state="COMMIT_MESSAGE",
        ),
        *consumed(3_000, "had", "r3", group="mail"),
        sent(late, "fresh"),
    ]
    assert missed_in(records, watermark_ms=START_MS + late + 5_000) == {
        ("batch1", "billing"),
        ("batch1", "mail"),
        ("batch2", "mail"),
        ("committed", "billing"),
        ("committed", "mail"),
        ("missed", "billing"),
        ("missed", "mail"),
    }
    # A group whose first event came much later was not expected to consume the messages.
    first_late = [*records, *consumed(late + 15_000, "had", "r9", group="new")]
    missed = missed_in(first_late, watermark_ms=START_MS + 2 * late)
    assert {group for name, group in missed if name == "missed"} == {"billing", "mail"}
    tables = tables_in(first_late, watermark_ms=START_MS + 2 * late)
    by_edge = {(row.topic, row.consumer_group): row for row in tables[EDGES]}
    orders = by_edge["orders", None]
    assert (orders.messages, orders.attempts, orders.failures) == (9, 10, 1)
    assert (orders.first_ms, orders.last_ms) == (START_MS, START_MS + late)
    billing = by_edge["orders", "billing"]
    assert (billing.messages, billing.attempts, billing.untraced) == (2, 2, 3)
    listed = [row for row in tables[SLOW] if row.reason == "untraced"]
    assert {(row.attempts, row.latency_ms, row.start_ms) for row in listed} == {(0, None, None)}
    untraced = tables[UNTRACED]
    assert sum(row.messages for row in untraced) == sum(row.untraced for row in tables[EDGES])
    assert {row.consumer_group for row in untraced} == {row.consumer_group for row in listed}


def test_untraced_messages_by_tags() -> None:
    many = message_flow.TAGS_PER_HOUR_MAX + 5
    records = [
        *(sent(10 * n, f"m{n}", tags=f"tag{n}") for n in range(many)),
        *(sent(10 * n + 5, f"n{n}", tags="tag0") for n in range(30)),
        sent(9_000, "batch1,batch2", tags="tag1", body_bytes=200),
        sent(9_500, "bare"),
        *consumed(1, "other", "r1"),
        sent(0, "other", tags="tag0"),
    ]
    tables = tables_in(records, watermark_ms=START_MS + 20 * 60_000)
    counts = {row.tags: row.messages for row in tables[UNTRACED]}
    few = {f"tag{n}": 1 for n in range(1, message_flow.TAGS_PER_HOUR_MAX)}
    # The tags of the batch are unknown, and tags after the limit, also no tags.
    assert counts == few | {"tag0": 31, None: 2 + 5 + 1}
    listed = Counter(row.tags for row in tables[SLOW] if row.reason == "untraced")
    assert listed["tag0"] == message_flow.LISTED_PER_HOUR_MAX
    assert listed["tag7"] == 1


def test_percentiles_are_exact_over_values_with_counts() -> None:
    luck = random.Random(SEED)
    for size in (1, 2, 3, 50):
        values = sorted(luck.choice((0, 1, 7, luck.randrange(10**9))) for _ in range(size))
        ids, (median, high, top) = percentiles(
            numpy.zeros(size, numpy.int64),
            numpy.array(luck.sample(values, size)),
            numpy.ones(size, numpy.int64),
            (0.5, 0.99, 1.0),
        )
        assert ids.tolist() == [0]
        assert (median[0], high[0], top[0]) == tuple(percentile(values, x) for x in (0.5, 0.99, 1))
    ids, (middle,) = percentiles(
        numpy.array([4, 4, 9]), numpy.array([10, 20, 5]), numpy.array([1, 3, 2]), (0.5,)
    )
    assert (ids.tolist(), middle.tolist()) == ([4, 9], [20.0, 5.0])


def test_an_hour_without_facts_has_empty_tables() -> None:
    assert set(map(len, tables_in([]).values())) == {0}


def random_journeys(luck: random.Random, count: int) -> dict[str, list[TraceRecord]]:
    """Messages with send retries, several groups, redeliveries, skewed clocks, lost records."""
    journeys: dict[str, list[TraceRecord]] = {}
    for number in range(count):
        msg_id, at_ms = f"M{number}", luck.randrange(1_000_000)
        records: list[TraceRecord] = []
        if luck.random() < 0.2:
            records.append(sent(at_ms, msg_id, 3000, success=False))
            at_ms += 3001
        if luck.random() < 0.9:
            records.append(sent(at_ms, msg_id, luck.randrange(1, 200)))
        for group in luck.sample(["billing", "stock", "mail"], luck.randint(0, 3)):
            skew_ms, begin = luck.choice((0, 0, -400, 300)), at_ms
            for retry in range(luck.randint(1, 3)):
                begin += luck.randrange(1, 3000) * (retry + 1)
                request = f"{msg_id}-{group}-{retry}"
                pair = consumed(
                    begin + (skew_ms if retry == 0 else 0),
                    msg_id,
                    request,
                    luck.randrange(50),
                    group=group,
                    retry_times=retry,
                    success=luck.random() < 0.5,
                )
                records += pair if luck.random() < 0.9 else [luck.choice(pair)]
        records += luck.sample(records, len(records) // 5)
        luck.shuffle(records)
        journeys[msg_id] = records
    return journeys


@pytest.mark.parametrize("seed", [SEED, SEED + 1])
def test_attempts_agree_with_the_timeline_of_each_message(seed: int) -> None:
    journeys = random_journeys(random.Random(seed), 300)
    everything = [record for records in journeys.values() for record in records if records]
    rows: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    limits = {"mail": 2, "stock": 1}
    for row in rows_of(part.attempts for part in facts_of(everything, limits)):
        rows[row.msg_id][row.consumer_group].append(row)

    for msg_id, records in journeys.items():
        timeline = build_timeline(records, msg_id=msg_id, retry_times_max=limits)
        assert {journey.group for journey in timeline.groups} == rows[msg_id].keys()
        for journey in timeline.groups:
            mine = rows[msg_id][journey.group]
            assert len(mine) == len(journey.attempts)
            states = [attempt.state for attempt in journey.attempts]
            assert sum(row.success is True for row in mine) == states.count(AttemptState.SUCCEEDED)
            assert sum(row.success is None for row in mine) == states.count(AttemptState.UNFINISHED)
            waited = [row.latency_ms for row in mine if row.latency_ms is not None]
            expected = journey.latencies.store_to_consume_ms
            assert waited == ([] if expected is None else [expected]), (msg_id, records)
            took = [row.end_to_end_ms for row in mine if row.end_to_end_ms is not None]
            expected = journey.latencies.end_to_end_ms
            assert took == ([] if expected is None else [expected]), (msg_id, records)
            order = [row.retry_times for row in sorted(mine, key=lambda row: row.attempt_index)]
            assert order == [attempt.retry_times for attempt in journey.attempts]
            died = sum(row.is_dead_letter for row in mine)
            assert died == (journey.outcome is Outcome.DEAD_LETTERED), (msg_id, records)


def test_only_facts_of_the_requested_hours_are_derived() -> None:
    records = [sent(at_ms, f"M{at_ms}") for at_ms in (-1, 0, HOUR_MS, 2 * HOUR_MS)]
    found = rows_of(part.sends for part in facts_of(records))
    assert sorted(row.sent_ms - START_MS for row in found) == [0, HOUR_MS]


def test_the_watermark_makes_hours_overdue() -> None:
    margin = message_flow.UNTRACED_AFTER_MS
    assert list(newly_overdue_hours(0, START_MS)) == []
    assert list(newly_overdue_hours(START_MS, START_MS)) == []
    assert list(newly_overdue_hours(START_MS + margin, START_MS + margin + 1)) == [HOUR]
    assert list(newly_overdue_hours(START_MS, START_MS + margin)) == [HOUR - 1, HOUR]
