"""Facts from trace events, in Arrow tables.

The facts of a message in an hour are derived from its events in the hours around this hour.
`by_message` splits events into parts by message id. All events of a part, from all tasks, are the
input of `facts_in`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy
import pyarrow
import pyarrow.compute as pc

from spark_jobs.tables.groups import ints
from trace.attempts import COST_MAX_MS
from trace.columns import arrow_schema
from trace.fact_columns import ATTEMPT, EVENT_COLUMNS, SEND, facts_of
from trace.lake import HOUR_MS, HourIndex
from trace.scan import hash_texts
from trace.tables import CONSUMERS, EVENTS, FACTS, LOOKBACK_HOURS

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyarrow import Table

#: Maximum delay, in hours, of an event that changes an earlier hour.
LOOKAHEAD_HOURS: Final = 24
#: Columns of event files that the facts need.
FILE_COLUMNS: Final = [name for name in EVENT_COLUMNS if name in EVENTS.names]
#: Kind of a row that replaces all rows of its message in its hour, and adds none.
NONE: Final = "none"
_IS_NEW: Final = "is_new"
#: Selects messages by their hashes.
Wanted = Callable[["NDArray[Any]"], "NDArray[Any]"]


class Facts(NamedTuple):
    """The facts of some messages in one hour, by kind, with the columns of FACTS."""

    #: A batch is one row with `messages` greater than 1.
    sends: "Table"
    attempts: "Table"
    #: One row per stored message that is meant to be consumed.
    awaited: "Table"
    #: As `trace.tables.CONSUMERS`.
    consumers: "Table"


def hours_around(hours: Iterable[HourIndex], times: int = 1) -> set[HourIndex]:
    """The hours whose events may concern messages of `hours`, or `times` hops from there."""
    distances = range(-times * LOOKBACK_HOURS, times * LOOKAHEAD_HOURS + 1)
    return {hour + distance for hour in set(hours) for distance in distances}


def message_hashes(events: "Table") -> "NDArray[Any]":
    """The distinct hashes of the message ids in `events`, in ascending order."""
    return numpy.unique(_hashes(_members(events.select(["msg_id"]))))


def by_message(
    events: "Table", parts: int, *, is_new: bool = True, wanted: Wanted | None = None
) -> "Iterator[tuple[int, Table]]":
    """The events by part, from 0 up to `parts`; a part has all events of its messages.

    `events` has FILE_COLUMNS; the result has EVENT_COLUMNS and the flag `is_new`.
    """
    members = _members(events).select(list(EVENT_COLUMNS))
    members = members.append_column(_IS_NEW, pyarrow.repeat(is_new, len(members)))
    hashes = _hashes(members)
    if wanted is not None:
        is_wanted = wanted(hashes)
        members, hashes = members.filter(pyarrow.array(is_wanted)), hashes[is_wanted]
    part_of = (hashes % numpy.uint64(parts)).astype(numpy.int64)
    order = numpy.argsort(part_of, kind="stable")
    bounds = numpy.searchsorted(part_of[order], numpy.arange(parts + 1)).tolist()
    ordered = members.take(pyarrow.array(order))
    for part, (first, after) in enumerate(pairwise(bounds)):
        if first < after:
            yield part, ordered.slice(first, after - first)


def changed_facts(events: "Table", retry_times_max: Mapping[str, int]) -> "Table":
    """The facts that the new events change, as rows of FACTS, of all hours.

    A message whose rows of an hour change has all its new rows of this hour, or a row NONE.
    """
    is_new = events.column(_IS_NEW).combine_chunks()
    after = facts_in(events, None, retry_times_max)
    if is_new.true_count == len(events):
        return after
    before = facts_in(events.filter(pc.invert(is_new)), None, retry_times_max)
    texts, texts_before = _texts(after), _texts(before)
    changes = [
        _places(rows).filter(pc.invert(pc.is_in(mine, value_set=others)))
        for rows, mine, others in ((after, texts, texts_before), (before, texts_before, texts))
    ]
    changed = pyarrow.concat_arrays(changes).unique()
    places = _places(after)
    gone = changed.filter(pc.invert(pc.is_in(changed, value_set=places)))
    first = pc.index_in(gone, value_set=_places(before))
    rows = before.take(first)
    empty = {
        name: pyarrow.nulls(len(rows), arrow_schema(FACTS).field(name).type) for name in FACTS.names
    }
    empty |= {
        "fact": pyarrow.repeat(NONE, len(rows)),
        "msg_id": rows.column("msg_id"),
        "hour_ms": rows.column("hour_ms"),
    }
    nones = pyarrow.table(empty, schema=arrow_schema(FACTS))
    return pyarrow.concat_tables([after.filter(pc.is_in(places, value_set=changed)), nones])


def facts_in(
    events: "Table", hours: Iterable[HourIndex] | None, retry_times_max: Mapping[str, int]
) -> "Table":
    """The facts in `hours`, or in all hours, of all messages of `events`, with EVENT_COLUMNS.

    The events must cover `hours_around(hours)`. The rows are as `trace.tables.FACTS`.
    """
    at_ms, cost_ms = ints(events, "event_ms"), ints(events, "cost_ms").clip(0, COST_MAX_MS)
    if not len(at_ms):
        return arrow_schema(FACTS).empty_table()
    # Every hour of a fact is the hour of one of these times.
    first, last = (at_ms - cost_ms) // HOUR_MS, (at_ms + cost_ms) // HOUR_MS
    found = numpy.unique(
        numpy.concatenate([at_ms // HOUR_MS, first, (at_ms + cost_ms // 2) // HOUR_MS])
    )
    wanted = found if hours is None else numpy.intersect1d(found, list(hours))
    codes = events.column("msg_id").combine_chunks().dictionary_encode().indices.to_numpy()
    low, high = numpy.full(codes.max() + 1, last.max()), numpy.full(codes.max() + 1, first.min())
    numpy.minimum.at(low, codes, first)
    numpy.maximum.at(high, codes, last)
    is_long = (high - low > min(LOOKBACK_HOURS, LOOKAHEAD_HOURS))[codes]
    if not is_long.any():
        return _derived(events, wanted.tolist(), retry_times_max)
    parts = [_derived(events.filter(pyarrow.array(~is_long)), wanted.tolist(), retry_times_max)]
    for hour in wanted.tolist():
        event_hour = at_ms // HOUR_MS
        is_near = (
            is_long & (event_hour >= hour - LOOKBACK_HOURS) & (event_hour <= hour + LOOKAHEAD_HOURS)
        )
        parts.append(_derived(events.filter(pyarrow.array(is_near)), [hour], retry_times_max))
    return pyarrow.concat_tables(parts)


def by_kind(facts: "Table") -> Facts:
    """The facts of one hour by kind; `facts` has the columns of FACTS."""
    kind, hour_ms = facts.column("fact"), ints(facts, "hour_ms")
    is_send = pc.equal(kind, SEND).to_numpy()
    is_sent = is_send & (ints(facts, "messages") > 0) & (_hour_ms(facts, "sent_ms") == hour_ms)
    is_stored = facts.column("awaited_groups").is_valid().to_numpy() & (
        _hour_ms(facts, "stored_ms") == hour_ms
    )
    attempts = facts.filter(pc.equal(kind, ATTEMPT))
    known = attempts.filter(
        pc.and_(
            pc.is_valid(attempts.column("topic")), pc.is_valid(attempts.column("consumer_group"))
        )
    )
    return Facts(
        facts.filter(pyarrow.array(is_sent)),
        attempts,
        facts.filter(pyarrow.array(is_stored)),
        first_starts(known.select(CONSUMERS.names)),
    )


def first_starts(consumers: "Table") -> "Table":
    """The first start of each topic and group."""
    keys = ["topic", "consumer_group"]
    found = consumers.group_by(keys, use_threads=False).aggregate([("start_ms", "min")])
    return found.rename_columns(list(CONSUMERS.names)).cast(arrow_schema(CONSUMERS))


def _derived(
    events: "Table", hours: Sequence[HourIndex], retry_times_max: Mapping[str, int]
) -> "Table":
    facts = facts_of(events.combine_chunks(), hours, retry_times_max)
    is_send = pc.equal(facts.column("fact"), SEND).to_numpy()
    sent, stored = _hour_ms(facts, "sent_ms"), _hour_ms(facts, "stored_ms")
    hour_ms = numpy.where(is_send, sent, _hour_ms(facts, "start_ms"))
    is_in = numpy.isin(hour_ms // HOUR_MS, hours)
    rows = [(facts.filter(pyarrow.array(is_in)), hour_ms[is_in])]
    is_later = (
        is_send
        & facts.column("stored_ms").is_valid().to_numpy()
        & (sent != stored)
        & numpy.isin(stored // HOUR_MS, hours)
    )
    rows.append((facts.filter(pyarrow.array(is_later)), stored[is_later]))
    place = FACTS.names.index("hour_ms")
    return pyarrow.concat_tables(
        [some.set_column(place, "hour_ms", pyarrow.array(at_ms)) for some, at_ms in rows]
    )


def _hour_ms(table: "Table", name: str) -> "NDArray[Any]":
    times = ints(table, name)
    return times - times % HOUR_MS


def _places(facts: "Table") -> Any:
    """Message and hour of each row, as one text."""
    hour = facts.column("hour_ms").cast(pyarrow.string())
    return pc.binary_join_element_wise(hour, facts.column("msg_id"), " ").combine_chunks()


def _texts(facts: "Table") -> Any:
    """The values of each row, as one text."""
    columns = []
    for name in FACTS.names:
        column = facts.column(name)
        if name == "awaited_groups":
            column = pc.binary_join(column.combine_chunks(), ",")
        columns.append(column.cast(pyarrow.string()))
    options = {"null_handling": "replace", "null_replacement": "\0"}
    return pc.binary_join_element_wise(*columns, "\1", **options).combine_chunks()


def _hashes(members: "Table") -> "NDArray[Any]":
    """The hash of each message id."""
    ids = members.column("msg_id").combine_chunks()
    hashes = numpy.zeros(len(ids), numpy.uint64)
    _, ends, data = ids.buffers()
    if data is not None and len(ids):
        offsets = numpy.frombuffer(ends, numpy.int32)[ids.offset : ids.offset + len(ids) + 1]
        hash_texts(memoryview(data).cast("B"), offsets.data, hashes.data)
    return hashes


def _members(events: "Table") -> "Table":
    """One row for each message of a batch, which has the ids of all its messages."""
    place = events.schema.get_field_index("msg_id")
    events = events.filter(pc.is_valid(events.column("msg_id")))  # a broken record has no message
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
    return events.combine_chunks()
