"""SQL queries of the analytics pages and resources, over the tables of the lake.

Percentiles come from histograms (see `trace.latency`), since percentiles of minutes cannot be
summed; the error is at most 1 %. Grouping sets read every table once per query.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from console.services.analytics.aggregates import (
    Aggregates,
    Counts,
    Edge,
    Overview,
    Percentiles,
    Point,
    Scope,
    SlowDelivery,
    Step,
    funnel_of,
)
from console.services.analytics.duck import LakeReader, Row
from console.services.analytics.heatmap import FIRST_BUCKETS
from console.services.analytics.unconsumed import missed, total, with_missed
from trace.lake import EDGES, HOUR_MS, LATENCY, MINUTE, SLOW
from trace.latency import bucket_value_ms
from trace.tables import MEASURES, MESSAGE_KINDS, SLOW_REASON

#: Default and maximum number of slow deliveries.
SLOW_SHOWN: Final = 50
SLOW_MAX: Final = 500
#: Maximum number of topics or groups in a table, busiest first.
ROWS_SHOWN: Final = 200
#: Maximum number of edges, busiest first.
EDGES_MAX: Final = 2_000

_WHERE: Final = """
    WHERE {time} >= $begin AND {time} < $end
      AND ($topic IS NULL OR topic = $topic)
      AND ($consumer_group IS NULL OR consumer_group = $consumer_group)
      AND ($msg_type IS NULL OR msg_type = $msg_type)
"""
# {sets}, {key} and {which} are SQL expressions of this module; user input is passed as parameters
# only. LakeReader replaces {{files}}.
_COUNTS: Final = """
    SELECT {key} AS key, {which} AS which, sum(sends)::BIGINT, sum(send_failures)::BIGINT,
           sum(bytes)::BIGINT, sum(attempts)::BIGINT, sum(successes)::BIGINT,
           sum(failures)::BIGINT, sum(retries)::BIGINT, sum(dead_letters)::BIGINT,
           sum(deliveries)::BIGINT, sum(consumed)::BIGINT
    FROM {{files}} {where} GROUP BY {sets}
"""
_PERCENTILES: Final = """
    WITH read AS (
        SELECT {cells}, measure, bucket, sum(count) AS n FROM {{files}} {where}
          AND list_contains($measures, measure)
        GROUP BY ALL
    ), counted AS (
        SELECT {key} AS key, {which} AS which, measure, bucket, sum(n) AS n FROM read
        GROUP BY {sets}
    ), running AS (
        SELECT key, which, measure, bucket,
               sum(n) OVER (PARTITION BY key, which, measure ORDER BY bucket) AS upto,
               sum(n) OVER (PARTITION BY key, which, measure) AS total
        FROM counted
    )
    SELECT key, which, measure,
           min(bucket) FILTER (upto >= 0.50 * total), min(bucket) FILTER (upto >= 0.95 * total),
           min(bucket) FILTER (upto >= 0.99 * total), max(bucket)
    FROM running GROUP BY key, which, measure
"""
_CELLS: Final = "topic, consumer_group, msg_type"
_WHICH: Final = "grouping_id(topic, consumer_group, msg_type)"
_KEY: Final = "coalesce(topic, consumer_group, msg_type::VARCHAR)"
_COUNT_SETS: Final = "GROUPING SETS ((), (topic), (consumer_group), (msg_type))"
_SPREAD_SETS: Final = (
    "GROUPING SETS ((measure, bucket), (topic, measure, bucket), "
    "(consumer_group, measure, bucket), (msg_type, measure, bucket))"
)
TOTAL, BY_TOPIC, BY_GROUP, BY_KIND = 0b111, 0b011, 0b101, 0b110

_BANDS: Final = """
    SELECT minute_ms // {step} * {step} AS point, {band} AS band, sum(count)::BIGINT
    FROM {{files}} {where} AND measure = $measure GROUP BY point, band
"""
_SLOW_ROWS: Final = """
    SELECT at_ms, reason, topic, producer_group, consumer_group, msg_type, msg_id, stored_ms,
           start_ms, latency_ms, end_to_end_ms, duration_ms, attempts, success
    FROM {files} WHERE at_ms >= $begin AND at_ms < $end AND reason = $reason
      AND ($topic IS NULL OR topic = $topic)
      AND ($consumer_group IS NULL OR consumer_group = $consumer_group)
      AND ($msg_type IS NULL OR msg_type = $msg_type)
    ORDER BY latency_ms DESC, at_ms DESC, msg_id LIMIT $limit
"""
_EDGE_ROWS: Final = """
    SELECT any_value(producer_group), topic, consumer_group, sum(messages)::BIGINT,
           sum(bytes)::BIGINT, sum(attempts)::BIGINT, sum(failures)::BIGINT,
           sum(dead_letters)::BIGINT, max(last_ms)
    FROM {files} WHERE hour_ms >= $begin_hour AND hour_ms < $end
      AND ($topic IS NULL OR topic = $topic)
      AND ($consumer_group IS NULL OR consumer_group = $consumer_group
           OR consumer_group IS NULL
              AND topic IN (SELECT topic FROM {files} WHERE consumer_group = $consumer_group))
    GROUP BY topic, consumer_group,
             CASE WHEN consumer_group IS NULL THEN producer_group ELSE '' END
    HAVING sum(attempts) > 0
    ORDER BY sum(messages) DESC, topic, consumer_group LIMIT $limit
"""


def series(reader: LakeReader, scope: Scope) -> list[Point]:
    """One entry per point of the range; points without records have no counts."""
    step = scope.range.step_ms
    point = f"minute_ms // {step} * {step}"
    counted = reader.rows(
        _COUNTS.format(key=point, which="0", sets="ALL", where=_where("minute_ms")),
        MINUTE,
        scope.range,
        scope.parameters,
    )
    by_point = {row[0]: row for row in counted}
    percentiles = _percentiles(
        reader, scope, cells=f"{point} AS point", key="point", which="0", sets="ALL"
    )
    return [
        Point(
            at,
            _counts(by_point[at]) if at in by_point else None,
            **{name: percentiles.get((at, 0, name)) or Percentiles() for name in MEASURES},
        )
        for at in scope.range.points
    ]


def overview(reader: LakeReader, scope: Scope, measures: Sequence[str] = MEASURES) -> Overview:
    """Totals of the range, and aggregates by topic, group and message type.

    Percentiles are computed for `measures` only.
    """
    counts = _COUNTS.format(key=_KEY, which=_WHICH, sets=_COUNT_SETS, where=_where("minute_ms"))
    counted = reader.rows(counts, MINUTE, scope.range, scope.parameters, is_whole=True)
    percentiles = _percentiles(
        reader,
        scope,
        cells=_CELLS,
        key=_KEY,
        which=_WHICH,
        sets=_SPREAD_SETS,
        measures=measures,
        is_whole=True,
    )

    def cut(which: int) -> list[Aggregates]:
        return [
            _aggregates(
                row[0], row, {name: percentiles.get((row[0], which, name)) for name in MEASURES}
            )
            for row in counted
            if row[1] == which
        ]

    total = cut(TOTAL)
    groups = [entry for entry in cut(BY_GROUP) if entry.name is not None]
    return Overview(
        total[0] if total else Aggregates(None),
        _busiest(cut(BY_TOPIC), lambda counts: counts.sends + counts.attempts),
        _busiest(groups, lambda counts: counts.attempts),
        _busiest(
            [_named_kind(entry) for entry in cut(BY_KIND)],
            lambda counts: counts.sends + counts.attempts,
        ),
    )


def bands(reader: LakeReader, scope: Scope, measure: str) -> list[tuple[int, int, int]]:
    """(point, index of the band in BANDS_MS, count) of a measure."""
    above = reversed(list(enumerate(FIRST_BUCKETS))[1:])
    band = " ".join(f"WHEN bucket >= {first} THEN {index}" for index, first in above)
    sql = _BANDS.format(
        step=scope.range.step_ms, band=f"CASE {band} ELSE 0 END", where=_where("minute_ms")
    )
    rows = reader.rows(sql, LATENCY, scope.range, {**scope.parameters, "measure": measure})
    return [(point, index, count) for point, index, count in rows]


def slowest(reader: LakeReader, scope: Scope, *, limit: int = SLOW_SHOWN) -> list[SlowDelivery]:
    """The deliveries with the highest latency, among the slow deliveries that the job keeps per
    hour."""
    parameters = {**scope.parameters, "reason": SLOW_REASON, "limit": min(limit, SLOW_MAX)}
    rows = reader.rows(_SLOW_ROWS, SLOW, scope.range, parameters)
    return [SlowDelivery(*row) for row in rows]


def edges(reader: LakeReader, scope: Scope) -> list[Edge]:
    """The edges of the topology, busiest first. Edges are stored per hour without message type:
    hours at both ends of the range count whole, and `scope.kind` is ignored."""
    begin_ms = scope.range.hours[0] * HOUR_MS
    parameters = {name: scope.parameters[name] for name in ("end", "topic", "consumer_group")}
    parameters |= {"begin_hour": begin_ms, "limit": EDGES_MAX}
    found = [Edge(*row) for row in reader.rows(_EDGE_ROWS, EDGES, scope.range, parameters)]
    whole = replace(scope, range=replace(scope.range, begin_ms=begin_ms), kind=None)
    return with_missed(found, missed(reader, whole))


def funnel(reader: LakeReader, scope: Scope, whole: Aggregates) -> list[Step]:
    """The steps from sent to succeeded, with the messages that groups never consumed."""
    return funnel_of(whole.counts, total(missed(reader, scope)))


def _percentiles(
    reader: LakeReader,
    scope: Scope,
    *,
    cells: str,
    key: str,
    which: str,
    sets: str,
    measures: Sequence[str] = MEASURES,
    is_whole: bool = False,
) -> dict[tuple[Any, int, str], Percentiles]:
    sql = _PERCENTILES.format(
        cells=cells, key=key, which=which, sets=sets, where=_where("minute_ms")
    )
    parameters = {**scope.parameters, "measures": list(measures)}
    rows = reader.rows(sql, LATENCY, scope.range, parameters, is_whole=is_whole)
    return {
        (name, cut, measure): Percentiles(*(round(bucket_value_ms(bucket), 1) for bucket in row))
        for name, cut, measure, *row in rows
    }


def _where(time_column: str) -> str:
    return _WHERE.format(time=time_column)


def _aggregates(
    name: str | None, row: Row, percentiles: Mapping[str, Percentiles | None]
) -> Aggregates:
    return Aggregates(
        name, _counts(row), **{key: value or Percentiles() for key, value in percentiles.items()}
    )


def _counts(row: Row) -> Counts:
    return Counts(*(value or 0 for value in row[2:]))


def _named_kind(entry: Aggregates) -> Aggregates:
    name = None if entry.name is None else MESSAGE_KINDS.get(int(entry.name), str(entry.name))
    return Aggregates(name, entry.counts, entry.latency, entry.send_cost, entry.end_to_end)


def _busiest(entries: Sequence[Aggregates], weight: Callable[[Counts], int]) -> list[Aggregates]:
    ordered = sorted(entries, key=lambda entry: (-weight(entry.counts), str(entry.name)))
    return ordered[:ROWS_SHOWN]
