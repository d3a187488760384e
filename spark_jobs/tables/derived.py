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
) -> Iterator[dict[str, DataFrame]]:
    """The DataFrames of `datasets` for `hours`, by name.

    `events` must cover `facts.hours_around(hours)`. The intermediate results stay persisted until
    the block ends.
    """
    all_sends = facts.sends(events)
    all_deliveries = facts.deliveries(events, retry_times_max).persist()
    sends = rollup.in_hours(all_sends, "sent_ms", hours).persist()
    deliveries = rollup.in_hours(all_deliveries, "start_ms", hours)
    missed = message_flow.never_consumed(
        events, facts.origins(all_sends), all_deliveries, hours, watermark_ms
    ).persist()
    frames = {
        MINUTE: lambda: rollup.per_minute(sends, deliveries),
        LATENCY: lambda: rollup.latency_histograms(sends, deliveries),
        EDGES: lambda: message_flow.edges(sends, deliveries, missed),
        SLOW: lambda: message_flow.slow(deliveries, missed),
    }
    try:
        yield {name: frames[name]() for name in DERIVED if name in datasets}
    finally:
        for persisted in (missed, sends, all_deliveries):
            persisted.unpersist()
