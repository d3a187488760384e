"""All derived tables of an hour, from partial tables of its facts."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow
import pyarrow.compute as pc

from spark_jobs.tables import message_flow, rollup
from spark_jobs.tables.facts import by_kind, first_starts
from trace.columns import arrow_schema
from trace.lake import (
    CONSUMERS,
    EDGES,
    HOUR_MS,
    LATENCY,
    MINUTE,
    SLOW,
    UNTRACED,
    WITH_UNTRACED,
    HourIndex,
)
from trace.tables import FACTS

if TYPE_CHECKING:
    from pyarrow import Table

#: The partial table of messages that are meant to be consumed: one row per message, so the partial
#: tables of an hour are too large for the memory of one task.
AWAITED: Final = "awaited"


def partial_tables(facts: "Table") -> "dict[str, Table]":
    """Some facts of one hour, reduced as far as one task can."""
    kinds = by_kind(facts)
    return {
        "counts": rollup.partial_counts(kinds.sends, kinds.attempts),
        "values": rollup.partial_values(kinds.sends, kinds.attempts),
        "edges": message_flow.partial_edges(kinds.sends, kinds.attempts),
        "slowest": message_flow.slowest(kinds.attempts),
        AWAITED: kinds.awaited,
        "consumers": kinds.consumers,
    }


def empty_partial_tables() -> "dict[str, Table]":
    """The partial tables of no facts."""
    return partial_tables(arrow_schema(FACTS).empty_table())


def tables_of(
    hour: HourIndex,
    partial: "Mapping[str, Table]",
    awaited: "Iterable[Table]",
    datasets: Collection[str],
    watermark_ms: int,
) -> "dict[str, Table]":
    """The tables of one hour from the partial tables of all its facts.

    `partial` has also the consumers of the look-back; `awaited` are read one after another.
    """
    consumers = partial["consumers"]
    own = pc.greater_equal(consumers.column("start_ms"), hour * HOUR_MS)
    missed = [partial[AWAITED].slice(0, 0)]
    counts = [message_flow.untraced_counts(missed[0])]
    for some in awaited if {*WITH_UNTRACED} & {*datasets} else ():
        found = message_flow.untraced_messages(some, consumers, watermark_ms)
        missed.append(message_flow.first_untraced(found))
        counts.append(message_flow.untraced_counts(found))
    untraced = message_flow.untraced(counts)
    tables: dict[str, Callable[[], Table]] = {
        MINUTE: lambda: rollup.per_minute(partial["counts"], partial["values"]),
        LATENCY: lambda: rollup.latency_histograms(partial["values"]),
        EDGES: lambda: message_flow.edges(partial["edges"], untraced),
        SLOW: lambda: message_flow.slow(partial["slowest"], pyarrow.concat_tables(missed)),
        UNTRACED: lambda: untraced,
        CONSUMERS: lambda: first_starts(consumers.filter(own)),
    }
    return {name: tables[name]() for name in datasets}
