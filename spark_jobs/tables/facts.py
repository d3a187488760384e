"""Facts from trace events, in Arrow tables.

`by_message` splits events into parts by message id. All events of a part, from all tasks, are the
input of `facts_in`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy
import pyarrow
import pyarrow.compute as pc

from spark_jobs.tables.groups import ints
from trace.columns import arrow_schema
from trace.fact_columns import ATTEMPT, CONSUMER, EVENT_COLUMNS, SEND, facts_of
from trace.facts import LOOKBACK_HOURS
from trace.lake import HOUR_MS, HourIndex
from trace.scan import spread_texts
from trace.tables import EVENTS

if TYPE_CHECKING:
    from pyarrow import Table

#: Maximum delay, in hours, of an event that changes an earlier hour.
LOOKAHEAD_HOURS: Final = 24
#: Columns of event files that the facts need.
FILE_COLUMNS: Final = [name for name in EVENT_COLUMNS if name in EVENTS.names]


class Facts(NamedTuple):
    """The facts of some messages, by kind; all tables have the columns of FACTS."""

    #: A batch is one row with `messages` greater than 1.
    sends: "Table"
    attempts: "Table"
    #: One row per stored message that is meant to be consumed.
    awaited: "Table"
    #: The first attempts of every group on a topic, by hour.
    consumers: "Table"


def hours_around(hours: Iterable[HourIndex]) -> set[HourIndex]:
    """The hours whose events may concern messages of `hours`."""
    return {
        hour + distance
        for hour in hours
        for distance in range(-LOOKBACK_HOURS, LOOKAHEAD_HOURS + 1)
    }


def by_message(events: "Table", parts: int) -> "Iterator[tuple[int, Table]]":
    """The events by part, from 0 up to `parts`; a part has all events of its messages.

    `events` has FILE_COLUMNS; the result has EVENT_COLUMNS.
    """
    members = _members(events)
    ids = members.column("msg_id").combine_chunks()
    part_of = numpy.empty(len(ids), numpy.int32)
    _, ends, data = ids.buffers()
    if data is not None:
        offsets = numpy.frombuffer(ends, numpy.int32)[ids.offset : ids.offset + len(ids) + 1]
        spread_texts(memoryview(data).cast("B"), offsets.data, parts, part_of.data)
    order = numpy.argsort(part_of, kind="stable")
    bounds = numpy.searchsorted(part_of[order], numpy.arange(parts + 1)).tolist()
    ordered = members.take(pyarrow.array(order))
    for part, (first, after) in enumerate(pairwise(bounds)):
        if first < after:
            yield part, ordered.slice(first, after - first)


def facts_in(
    events: "Table", hours: Sequence[HourIndex], retry_times_max: Mapping[str, int]
) -> Facts:
    """The facts in `hours` of all messages of `events`, with EVENT_COLUMNS.

    The events must cover `hours_around(hours)`.
    """
    facts = facts_of(events.combine_chunks(), hours, retry_times_max)
    kind, hour = facts.column("fact"), ints(facts, "sent_ms") // HOUR_MS
    is_sent = numpy.isin(hour, list(hours)) & (ints(facts, "messages") > 0)
    return Facts(
        facts.filter(pc.and_(pc.equal(kind, SEND), pyarrow.array(is_sent))),
        facts.filter(pc.equal(kind, ATTEMPT)),
        facts.filter(pc.is_valid(facts.column("awaited_groups"))),
        facts.filter(pc.equal(kind, CONSUMER)),
    )


def no_events() -> "Table":
    """An empty table with EVENT_COLUMNS."""
    return _members(arrow_schema(EVENTS).empty_table())


def _members(events: "Table") -> "Table":
    """One row for each message of a batch, which has the ids of all its messages."""
    place = events.schema.get_field_index("msg_id")
    # A broken record has no message; the derivation skips its kind.
    events = events.set_column(place, "msg_id", pc.fill_null(events.column("msg_id"), ""))
    index, size = numpy.zeros(len(events), numpy.int64), numpy.ones(len(events), numpy.int64)
    if pc.any(pc.match_substring(events.column("msg_id"), ",")).as_py():
        lists = pc.split_pattern(events.column("msg_id").combine_chunks(), ",")
        parents, sizes = pc.list_parent_indices(lists), pc.list_value_length(lists).to_numpy()
        rows = parents.to_numpy()
        index, size = numpy.arange(len(rows)) - (numpy.cumsum(sizes) - sizes)[rows], sizes[rows]
        events = events.take(parents).set_column(place, "msg_id", lists.flatten())
    both = {"batch_index": pyarrow.array(index), "batch_size": pyarrow.array(size)}
    for name, column in both.items():
        events = events.append_column(name, column.cast(pyarrow.int64()))
    return events.select(list(EVENT_COLUMNS)).combine_chunks()
