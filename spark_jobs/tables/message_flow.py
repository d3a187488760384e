"""The tables `edges`, `slow` and `untraced`, as functions on Arrow tables.

Each task reduces its facts (`partial_*`); one task per hour adds the results of all tasks. The task
judges the awaited messages in pieces (`untraced_messages`), and keeps sums and listed messages.

A message is untraced in a group when the group is known to consume the topic, the message was
stored at least UNTRACED_AFTER_MS before the watermark, and the group has no recorded attempt on the
message. Traces do not say whether such a message is pending, filtered, or consumed without a trace.
Delayed messages are excluded, because no record holds their due time; recalled messages and
uncommitted transactions are excluded, too.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy
import pyarrow
import pyarrow.compute as pc

from spark_jobs.tables.groups import MINUTE_MS, floor_to, group_ids, ints, ranks, summed
from trace.columns import arrow_schema
from trace.lake import HOUR_MS
from trace.tables import EDGES, FACTS, SLOW, SLOW_REASON, UNTRACED, UNTRACED_REASON

if TYPE_CHECKING:
    from pyarrow import Table

#: Maximum messages listed per hour, topic, group and reason; counts include all messages.
LISTED_PER_HOUR_MAX: Final = 20
#: Maximum distinct tags of untraced messages per hour, topic and group; further tags become null.
TAGS_PER_HOUR_MAX: Final = 50
#: Minimum age of an untraced message, ms.
UNTRACED_AFTER_MS: Final = 10 * 60_000

_EDGE_KEYS: Final = ("hour_ms", "producer_group", "topic", "consumer_group")
_EDGE_COUNTS: Final = EDGES.names[len(_EDGE_KEYS) : -2]
_TIMES: Final = EDGES.names[-2:]
_UNTRACED_KEYS: Final = UNTRACED.names[: UNTRACED.names.index("messages")]


def untraced_messages(awaited: "Table", consumers: "Table", watermark_ms: int) -> "Table":
    """The facts of messages of one hour without an attempt of a group, one row per group.

    `consumers` are the groups that started to consume in that hour or the day before it.
    """
    stored_ms = awaited.column("stored_ms")
    due = awaited.filter(pc.less_equal(stored_ms, watermark_ms - UNTRACED_AFTER_MS))
    lists = due.column("awaited_groups").combine_chunks()
    groups = lists.flatten()
    rows = pc.list_parent_indices(lists).to_numpy()
    stored = ints(due, "stored_ms")
    found = [due.slice(0, 0)]
    starts = consumers.group_by(["topic", "consumer_group"], use_threads=False)
    for start in starts.aggregate([("start_ms", "min")]).to_pylist():
        is_missed = pc.equal(due.column("topic"), start["topic"]).fill_null(False).to_numpy().copy()
        is_missed &= stored + UNTRACED_AFTER_MS >= start["start_ms_min"]
        is_missed[rows[pc.equal(groups, start["consumer_group"]).to_numpy(False)]] = False
        missed = due.filter(pyarrow.array(is_missed))
        group = pyarrow.repeat(start["consumer_group"], len(missed))
        place = FACTS.names.index("consumer_group")
        found.append(missed.set_column(place, "consumer_group", group))
    return _with_few_tags(pyarrow.concat_tables(found), "stored_ms")


def partial_edges(sends: "Table", attempts: "Table") -> "Table":
    """Message counts per hour between groups and topics."""
    messages, success = ints(sends, "messages"), ints(sends, "success")
    sent = {
        "messages": messages * success,
        "bytes": ints(sends, "bytes") * success,
        "attempts": messages,
        "failures": messages * (1 - success),
    }
    consumed = {
        "messages": (ints(attempts, "attempt_index") == 0).astype(numpy.int64),
        "attempts": numpy.ones(len(attempts), numpy.int64),
        "failures": attempts.column("success").is_valid().to_numpy() - ints(attempts, "success"),
        "dead_letters": ints(attempts, "is_dead_letter"),
    }
    return _edges([_edge_rows(sends, "sent_ms", sent), _edge_rows(attempts, "start_ms", consumed)])


def edges(partial: "Table", untraced: "Table") -> "Table":
    """The sums of all tasks and the untraced messages, as `trace.tables.EDGES`."""
    missed = _edge_rows(untraced, "minute_ms", {"untraced": ints(untraced, "messages")})
    for name in _TIMES:
        missed = missed.set_column(missed.schema.get_field_index(name), name, untraced.column(name))
    return _edges([partial, missed]).cast(arrow_schema(EDGES))


def slowest(attempts: "Table") -> "Table":
    """The first attempts with the highest latencies, of each hour, topic and group."""
    waited = attempts.filter(attempts.column("latency_ms").is_valid())
    return _listed(waited, "start_ms", -ints(waited, "latency_ms"))


def first_untraced(missed: "Table") -> "Table":
    """The untraced messages that were stored first, of each hour, topic, group and tags."""
    return _listed(missed, "stored_ms", ints(missed, "stored_ms"), "tags")


def slow(attempts: "Table", missed: "Table") -> "Table":
    """The slowest and the first untraced messages, as `trace.tables.SLOW`.

    Lists are per hour, topic, group and reason, and per tags of untraced messages, with at most
    LISTED_PER_HOUR_MAX messages.
    """
    waited, absent = slowest(attempts), first_untraced(_with_few_tags(missed, "stored_ms"))
    parts = []
    for facts, reason, time in (
        (waited, SLOW_REASON, "start_ms"),
        (absent, UNTRACED_REASON, "stored_ms"),
    ):
        columns = {name: facts.column(name) for name in FACTS.names}
        columns |= {
            "at_ms": facts.column(time),
            "reason": pyarrow.repeat(reason, len(facts)),
            "end_to_end_ms": facts.column("group_end_to_end_ms"),
        }
        if reason == UNTRACED_REASON:
            columns |= {
                "attempts": pyarrow.repeat(0, len(facts)),
                "success": pyarrow.nulls(len(facts), pyarrow.bool_()),
            }
        table = pyarrow.table([columns[name] for name in SLOW.names], names=SLOW.names)
        parts.append(table.cast(arrow_schema(SLOW)))
    return pyarrow.concat_tables(parts)


def untraced_counts(missed: "Table") -> "Table":
    """The counts of some untraced messages of an hour, as `trace.tables.UNTRACED`."""
    stored_ms = missed.column("stored_ms")
    columns = {"minute_ms": floor_to(stored_ms, MINUTE_MS)}
    columns |= {name: missed.column(name) for name in _UNTRACED_KEYS[1:]}
    columns |= {"messages": pyarrow.array(numpy.ones(len(missed), numpy.int64))}
    rows = pyarrow.table({**columns, **dict.fromkeys(_TIMES, stored_ms)})
    return _untraced([rows])


def untraced(parts: "Sequence[Table]") -> "Table":
    """The sums of `untraced_counts` of all messages of an hour."""
    return _untraced([_with_few_tags(pyarrow.concat_tables(parts), "first_ms")])


def _untraced(parts: "Sequence[Table]") -> "Table":
    rows = pyarrow.concat_tables(parts)
    return summed(rows, _UNTRACED_KEYS, ["messages"], _TIMES).cast(arrow_schema(UNTRACED))


def _with_few_tags(missed: "Table", time: str) -> "Table":
    """`missed` with the first TAGS_PER_HOUR_MAX tags per hour, topic and group: clients choose
    tags."""
    tags, stored_ms = missed.column("tags").combine_chunks(), ints(missed, time)
    groups = _hour_ids(missed, time)
    numbers = group_ids(pyarrow.table({"group": groups, "tags": tags}), ("group", "tags"))
    by_time = numpy.argsort(stored_ms, kind="stable")
    _, first, place = numpy.unique(numbers[by_time], return_index=True, return_inverse=True)
    groups_of_tags = groups[by_time][first]
    rank = ranks(groups_of_tags, numpy.lexsort((first, groups_of_tags)))
    is_rare = numpy.empty(len(missed), numpy.bool_)
    is_rare[by_time] = rank[place] >= TAGS_PER_HOUR_MAX
    unknown = pyarrow.scalar(None, pyarrow.string())
    few = pc.if_else(pyarrow.array(is_rare), unknown, tags)
    return missed.set_column(missed.schema.get_field_index("tags"), "tags", few)


def _hour_ids(facts: "Table", time: str, *more: str) -> Any:
    """A number per row, equal for rows of one hour, topic and group, and equal columns `more`."""
    hour = floor_to(facts.column(time), HOUR_MS)
    keys = ("topic", "consumer_group", *more)
    return group_ids(facts.select(keys).append_column("hour", hour), (*keys, "hour"))


def _listed(facts: "Table", time: str, order: Any, *more: str) -> "Table":
    """The first rows of each hour, topic, group and `more` in `order`, then by message id."""
    ids = _hour_ids(facts, time, *more)
    rank = ranks(ids, numpy.lexsort((order, ids)))
    last = numpy.full(len(ids), numpy.iinfo(numpy.int64).min)
    numpy.maximum.at(last, ids[rank < LISTED_PER_HOUR_MAX], order[rank < LISTED_PER_HOUR_MAX])
    is_near = order <= last[ids]  # also all rows that tie with the last listed row
    facts, ids, order = facts.filter(pyarrow.array(is_near)), ids[is_near], order[is_near]
    names = facts.column("msg_id").to_numpy().astype(str)
    rank = ranks(ids, numpy.lexsort((names, order, ids)))
    return facts.filter(pyarrow.array(rank < LISTED_PER_HOUR_MAX))


def _edge_rows(facts: "Table", time: str, counts: dict[str, Any]) -> "Table":
    at_ms = facts.column(time)
    columns = {"hour_ms": floor_to(at_ms, HOUR_MS)}
    columns |= {name: facts.column(name) for name in _EDGE_KEYS[1:]}
    zeros = numpy.zeros(len(facts), numpy.int64)
    columns |= {name: pyarrow.array(counts.get(name, zeros)) for name in _EDGE_COUNTS}
    return pyarrow.table({**columns, **dict.fromkeys(_TIMES, at_ms)})


def _edges(parts: "Sequence[Table]") -> "Table":
    return summed(pyarrow.concat_tables(parts), _EDGE_KEYS, _EDGE_COUNTS, _TIMES)
