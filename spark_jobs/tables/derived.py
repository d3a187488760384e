"""All derived tables of an hour, from partial tables of the facts of some messages."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow

from spark_jobs.tables import message_flow, rollup
from spark_jobs.tables.facts import Facts
from trace.facts import LOOKBACK_HOURS
from trace.lake import EDGES, HOUR_MS, LATENCY, MINUTE, SLOW, HourIndex

if TYPE_CHECKING:
    from pyarrow import Table

#: Partial table: its time column.
_PARTIAL: Final = {
    "counts": "minute_ms",
    "values": "minute_ms",
    "edges": "hour_ms",
    "slowest": "start_ms",
    "awaited": "stored_ms",
    "consumers": "start_ms",
}


def partial_tables(facts: Facts) -> "dict[str, Table]":
    """The facts of some messages, reduced as far as one task can."""
    return {
        "counts": rollup.partial_counts(facts.sends, facts.attempts),
        "values": rollup.partial_values(facts.sends, facts.attempts),
        "edges": message_flow.partial_edges(facts.sends, facts.attempts),
        "slowest": message_flow.slowest(facts.attempts),
        "awaited": facts.awaited,
        "consumers": facts.consumers,
    }


def tables_of(
    partial: "Mapping[str, Table]", datasets: Collection[str], watermark_ms: int
) -> "dict[str, Table]":
    """The tables of one hour from the partial tables of all its messages."""
    missed = message_flow.never_consumed(partial["awaited"], partial["consumers"], watermark_ms)
    tables: dict[str, Callable[[], Table]] = {
        MINUTE: lambda: rollup.per_minute(partial["counts"], partial["values"]),
        LATENCY: lambda: rollup.latency_histograms(partial["values"]),
        EDGES: lambda: message_flow.edges(partial["edges"], missed),
        SLOW: lambda: message_flow.slow(partial["slowest"], missed),
    }
    return {name: tables[name]() for name in datasets}


def by_hour(
    name: str, table: "Table", hours: Sequence[HourIndex]
) -> "Iterator[tuple[HourIndex, Table]]":
    """A partial table by hour; consumers belong to all hours of the look-back."""
    row_hours = table.column(_PARTIAL[name]).combine_chunks().to_numpy() // HOUR_MS
    lookback = LOOKBACK_HOURS if name == "consumers" else 0
    for hour in hours:
        yield (
            hour,
            table.filter(pyarrow.array((row_hours <= hour) & (row_hours >= hour - lookback))),
        )
