"""Facts as Arrow tables, from the events of messages as Arrow tables.

`trace.facts` derives the facts in flat arrays. numpy and Arrow make the arrays, and the columns of
`trace.tables.FACTS`, without an object per row.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from trace.columns import arrow_schema
from trace.facts import ATTEMPT_COLUMNS, SEND_COLUMNS, UNKNOWN, Events, MessageFacts
from trace.scan import KINDS
from trace.tables import FACTS

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray

SEND, ATTEMPT = "send", "attempt"
#: Columns of the events that `facts_of` reads. A batch has one row for each of its messages, with
#: `batch_index` from 0.
EVENT_COLUMNS: Final = (
    *("kind", "event_ms", "stored_ms", "timestamp_ms", "group_name", "topic", "request_id"),
    *("msg_type", "cost_ms", "body_bytes", "retry_times", "success", "transaction_state"),
    *("msg_id", "batch_index", "batch_size", "tags"),
)
_NUMBERS: Final = frozenset(
    {"event_ms", "stored_ms", "timestamp_ms", "msg_type", "cost_ms", "body_bytes", "retry_times"}
    | {"success", "batch_index", "batch_size"}
)


def facts_of(
    events: "pyarrow.Table", hours: Sequence[int], retry_times_max: Mapping[str, int]
) -> "pyarrow.Table":
    """The rows of `trace.tables.FACTS` within `hours`, with a null `hour_ms`.

    `events` has EVENT_COLUMNS and all events of its messages, in any order.
    """
    import numpy
    import pyarrow
    import pyarrow.compute as pc

    arrays, texts = {}, {}
    for name in ("msg_id", "request_id", "topic", "group_name", "tags"):
        arrays[name], texts[name] = _codes(events.column(name))
    kind = _flat(pc.index_in(events.column("kind"), pyarrow.array(KINDS)))
    is_call = numpy.isin(kind, [KINDS.index("SubBefore"), KINDS.index("SubAfter")])
    # The events of a request stand together, behind the other events of the message.
    arrays["request_id"] = numpy.where(is_call, arrays["request_id"], 0)
    key = arrays["msg_id"] * len(texts["request_id"]) + arrays["request_id"]
    order = numpy.argsort(key, kind="stable")
    is_commit = pc.equal(events.column("transaction_state"), "COMMIT_MESSAGE")
    arrays |= {"kind": kind, "is_commit": _flat(is_commit), "is_call": is_call.astype(numpy.int64)}
    arrays |= {name: _flat(events.column(name)) for name in EVENT_COLUMNS if name in _NUMBERS}
    calls, sends = int(is_call.sum()), int((kind == KINDS.index("Pub")).sum())
    send_rows = numpy.empty((sends, len(SEND_COLUMNS)), numpy.int64)
    attempt_rows = numpy.empty((calls, len(ATTEMPT_COLUMNS)), numpy.int64)
    awaited = numpy.empty(len(attempt_rows), numpy.int64)
    facts = MessageFacts(
        Events({name: array[order].data for name, array in arrays.items()}),
        {name: texts[name].to_pylist() for name in ("request_id", "topic", "group_name")},
        (send_rows.reshape(-1).data, attempt_rows.reshape(-1).data, awaited.data),
        (hours, retry_times_max),
    )
    facts.derive()
    rows: tuple[tuple[str, Sequence[str], NDArray[Any]], ...] = (
        (SEND, SEND_COLUMNS, send_rows[: facts.sends]),
        (ATTEMPT, ATTEMPT_COLUMNS, attempt_rows[: facts.attempts]),
    )
    return pyarrow.concat_tables([_table(*fact, awaited, texts) for fact in rows])


def _codes(column: "pyarrow.ChunkedArray[Any]") -> "tuple[NDArray[Any], pyarrow.Array[Any]]":
    """A number for each text, and the texts by number; null and the empty text have 0."""
    import numpy
    import pyarrow
    import pyarrow.compute as pc

    encoded = column.combine_chunks().dictionary_encode()
    texts = pyarrow.concat_arrays([pyarrow.array([""]), encoded.dictionary])
    codes = pc.fill_null(encoded.indices, -1).to_numpy().astype(numpy.int64) + 1
    is_empty = pc.equal(texts, "").to_numpy(zero_copy_only=False)
    return numpy.where(is_empty[codes], 0, codes), texts


def _flat(column: "pyarrow.ChunkedArray[Any] | pyarrow.Array[Any]") -> "NDArray[Any]":
    """The numbers or flags of a column; null becomes UNKNOWN."""
    import pyarrow
    import pyarrow.compute as pc

    values: NDArray[Any] = pc.fill_null(column.cast(pyarrow.int64()), UNKNOWN).to_numpy()
    return values


def _table(
    fact: str,
    names: Sequence[str],
    rows: "NDArray[Any]",
    awaited: "NDArray[Any]",
    texts: "Mapping[str, pyarrow.Array[Any]]",
) -> "pyarrow.Table":
    """Flat rows as a table of FACTS."""
    import numpy
    import pyarrow

    columns: list[pyarrow.Array[Any]] = []
    for field in arrow_schema(FACTS):
        if field.name == "fact":
            columns.append(pyarrow.repeat(fact, len(rows)))
        elif field.name not in names:
            columns.append(pyarrow.nulls(len(rows), field.type))
        else:
            values = numpy.ascontiguousarray(rows[:, names.index(field.name)])
            if field.name == "msg_id":
                columns.append(texts["msg_id"].take(pyarrow.array(values)))
            elif field.name == "awaited_groups":
                is_null = values == UNKNOWN
                ends = numpy.append(0, numpy.cumsum(numpy.where(is_null, 0, values)))
                groups = texts["group_name"].take(pyarrow.array(awaited[: ends[-1]]))
                offsets = pyarrow.array(ends, pyarrow.int32())
                mask = pyarrow.array(is_null)
                columns.append(pyarrow.ListArray.from_arrays(offsets, groups, mask=mask))
            elif field.name == "tags":
                codes = pyarrow.array(values, mask=values == UNKNOWN)
                columns.append(texts["tags"].take(codes))
            elif field.type == pyarrow.string():
                codes = pyarrow.array(values, mask=values == 0)
                columns.append(
                    texts["topic" if field.name == "topic" else "group_name"].take(codes)
                )
            else:
                columns.append(pyarrow.array(values, mask=values == UNKNOWN).cast(field.type))
    return pyarrow.Table.from_arrays(columns, schema=arrow_schema(FACTS))
