"""The questions of the analytics pages and resources, as SQL over the rollups.

Percentiles come from the histograms (see `trace.latency`), since those of single minutes cannot be
added up; they are within 1 % of the true ones. What nobody recorded is None, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from console.analytics.duck import LakeReader, Row
from console.analytics.ranges import TimeRange
from trace.latency import bucket_value_ms

SLOW_SHOWN: Final = 50
ROWS_SHOWN: Final = 200
"""Topics or groups in one table, the busiest first."""

_WHERE: Final = """
    WHERE minute_ms >= $begin AND minute_ms < $end
      AND ($topic IS NULL OR topic = $topic)
      AND ($consumer_group IS NULL OR consumer_group = $consumer_group)
"""
# In the templates {key} is one of this module's own expressions; what a person asked for comes in
# as parameters only. {{files}} stays for the reader to fill in.
_COUNTS: Final = """
    SELECT {key} AS key, sum(sends)::BIGINT, sum(send_failures)::BIGINT, sum(bytes)::BIGINT,
           sum(attempts)::BIGINT, sum(successes)::BIGINT, sum(failures)::BIGINT,
           sum(retries)::BIGINT
    FROM {{files}} {where} GROUP BY key
"""
_PERCENTILES: Final = """
    WITH counted AS (
        SELECT {key} AS key, measure, bucket, sum(count) AS n FROM {{files}} {where}
        GROUP BY ALL
    ), running AS (
        SELECT key, measure, bucket,
               sum(n) OVER (PARTITION BY key, measure ORDER BY bucket) AS upto,
               sum(n) OVER (PARTITION BY key, measure) AS total
        FROM counted
    )
    SELECT key, measure,
           min(bucket) FILTER (upto >= 0.50 * total), min(bucket) FILTER (upto >= 0.95 * total),
           min(bucket) FILTER (upto >= 0.99 * total), max(bucket)
    FROM running GROUP BY key, measure
"""

_SLOWEST: Final = """
    SELECT start_ms, topic, producer_group, consumer_group, msg_id, stored_ms, latency_ms,
           duration_ms, success
    FROM {files}
    WHERE start_ms >= $begin AND start_ms < $end
      AND ($topic IS NULL OR topic = $topic)
      AND ($consumer_group IS NULL OR consumer_group = $consumer_group)
    ORDER BY latency_ms DESC, msg_id LIMIT $limit
"""


@dataclass(frozen=True, slots=True)
class Scope:
    """What to look at: a time range, and maybe one topic and one consumer group."""

    range: TimeRange
    topic: str | None = None
    consumer_group: str | None = None

    @property
    def parameters(self) -> dict[str, object]:
        return {
            "begin": self.range.begin_ms,
            "end": self.range.end_ms,
            "topic": self.topic,
            "consumer_group": self.consumer_group,
        }


@dataclass(frozen=True, slots=True)
class Counts:
    """What was sent and consumed. A batch counts as its messages."""

    sends: int = 0
    send_failures: int = 0
    bytes: int = 0
    attempts: int = 0
    successes: int = 0
    failures: int = 0
    retries: int = 0

    @property
    def send_success(self) -> float | None:
        return 1 - self.send_failures / self.sends if self.sends else None

    @property
    def consume_success(self) -> float | None:
        """Of the attempts whose end was recorded."""
        ended = self.successes + self.failures
        return self.successes / ended if ended else None


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles in milliseconds."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything about one point in time, topic or group. `name` None: nobody recorded which."""

    name: str | int | None
    counts: Counts
    latency: Spread
    """From stored to the first time a listener had it."""
    send_cost: Spread


@dataclass(frozen=True, slots=True)
class SlowDelivery:
    start_ms: int
    topic: str | None
    producer_group: str | None
    consumer_group: str | None
    msg_id: str
    stored_ms: int
    latency_ms: int
    duration_ms: int | None
    success: bool | None


def series(reader: LakeReader, scope: Scope) -> list[Figures]:
    """One entry per point of the range's grid; a point nothing was recorded for has counts 0."""
    step = scope.range.step_ms
    found = _figures(reader, scope, f"minute_ms // {step} * {step}", consumers_only=False)
    by_point = {entry.name: entry for entry in found}
    nothing = (Counts(), Spread(), Spread())
    return [by_point.get(point) or Figures(point, *nothing) for point in scope.range.points]


def totals(reader: LakeReader, scope: Scope) -> Figures:
    """Over the whole range."""
    found = _figures(reader, scope, "0", consumers_only=False)
    return found[0] if found else Figures(0, Counts(), Spread(), Spread())


def topics(reader: LakeReader, scope: Scope) -> list[Figures]:
    """By topic, the busiest first."""
    found = _figures(reader, scope, "topic", consumers_only=False)
    return _busiest(found, lambda entry: entry.counts.sends + entry.counts.attempts)


def groups(reader: LakeReader, scope: Scope) -> list[Figures]:
    """By consumer group, the busiest first."""
    found = _figures(reader, scope, "consumer_group", consumers_only=True)
    return _busiest(found, lambda entry: entry.counts.attempts)


def slowest(reader: LakeReader, scope: Scope) -> list[SlowDelivery]:
    """The deliveries that waited longest, of those the job keeps from each hour."""
    parameters = {**scope.parameters, "limit": SLOW_SHOWN}
    rows = reader.rows(_SLOWEST, "slow", scope.range.hours, parameters)
    return [SlowDelivery(*row) for row in rows]


def _figures(reader: LakeReader, scope: Scope, key: str, *, consumers_only: bool) -> list[Figures]:
    where = _WHERE + ("AND consumer_group IS NOT NULL" if consumers_only else "")
    hours, parameters = scope.range.hours, scope.parameters
    counted = reader.rows(_COUNTS.format(key=key, where=where), "minute", hours, parameters)
    percentiles = _PERCENTILES.format(key=key, where=where)
    spreads = _spreads(reader.rows(percentiles, "latency", hours, parameters))
    return [
        Figures(
            name,
            Counts(*counts),
            spreads.get((name, "latency"), Spread()),
            spreads.get((name, "send_cost"), Spread()),
        )
        for name, *counts in counted
    ]


def _spreads(rows: Iterable[Row]) -> dict[tuple[Any, str], Spread]:
    return {
        (key, measure): Spread(*(round(bucket_value_ms(bucket), 1) for bucket in buckets))
        for key, measure, *buckets in rows
    }


def _busiest(found: Sequence[Figures], weight: Callable[[Figures], int]) -> list[Figures]:
    ordered = sorted(found, key=lambda entry: (-weight(entry), str(entry.name)))
    return ordered[:ROWS_SHOWN]
