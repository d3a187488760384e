"""All derived tables of a set of hours, with their shared intermediate results."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame

from spark_jobs.tables import facts, message_flow, rollup
from trace.lake import DERIVED, EDGES, LATENCY, MINUTE, SLOW, HourIndex


@contextmanager
def derived_tables(
    events: DataFrame,
    hours: Sequence[HourIndex],
    datasets: Collection[str],
    *,
    watermark_ms: int,
    retry_times_max: Mapping[str, int],
    partitions: int,
) -> Iterator[dict[str, DataFrame]]:
    """The DataFrames of `datasets` for `hours`, by name.

    `events` must cover `facts.hours_around(hours)`. The facts stay persisted until the block ends.
    """
    derived = facts.facts(events, hours, retry_times_max, partitions=partitions).persist()
    sends = rollup.in_hours(facts.sends(derived), "sent_ms", hours)
    attempts = facts.attempts(derived)
    missed = message_flow.never_consumed(
        facts.awaited(derived), facts.consumers(derived), hours, watermark_ms
    )
    frames = {
        MINUTE: lambda: rollup.per_minute(sends, attempts),
        LATENCY: lambda: rollup.latency_histograms(sends, attempts),
        EDGES: lambda: message_flow.edges(sends, attempts, missed),
        SLOW: lambda: message_flow.slow(attempts, missed),
    }
    try:
        yield {name: frames[name]() for name in DERIVED if name in datasets}
    finally:
        derived.unpersist()
