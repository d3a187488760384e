"""The tables `minute` and `latency` from the facts, as functions on Arrow tables.

Each task sums its facts (`partial_*`); one task per hour adds the sums of all tasks. In `minute`,
rows without a consumer group count sends; rows with a group count attempts to consume. Exact
percentiles need all values: a value travels with its number of occurrences.
"""

from typing import TYPE_CHECKING, Any, Final

import numpy
import pyarrow
import pyarrow.compute as pc

from spark_jobs.tables.groups import MINUTE_MS, floor_to, group_ids, ints, percentiles, summed
from trace.columns import arrow_schema
from trace.latency import LOG_GAMMA
from trace.tables import LATENCY, LEVELS, MEASURES, MINUTE

if TYPE_CHECKING:
    from pyarrow import Table

_KEYS: Final = ("minute_ms", "topic", "producer_group", "consumer_group", "msg_type")
_COUNTS: Final = tuple(
    name for name in MINUTE.names[len(_KEYS) :] if not name.endswith(("_max", "_rate", *LEVELS))
)
_VALUE_KEYS: Final = (*_KEYS, "measure", "value")
#: Measure: column of the facts.
_COLUMNS: Final = {"send_cost": "cost_ms", "latency": "latency_ms", "end_to_end": "end_to_end_ms"}


def partial_counts(sends: "Table", attempts: "Table") -> "Table":
    """The counters of each minute."""
    messages, success = ints(sends, "messages"), ints(sends, "success")
    sent = {
        "sends": messages,
        "send_failures": messages * (1 - success),
        "bytes": ints(sends, "bytes") * success,
    }
    success, is_known = ints(attempts, "success"), 1 - _is_null(attempts, "success")
    consumed = {
        "attempts": numpy.ones(len(attempts), numpy.int64),
        "successes": success,
        "failures": is_known - success,
        "unfinished": 1 - is_known,
        "retries": (ints(attempts, "retry_times") > 0).astype(numpy.int64),
        "dead_letters": ints(attempts, "is_dead_letter"),
        "deliveries": (ints(attempts, "attempt_index") == 0).astype(numpy.int64),
        "consumed": ints(attempts, "is_first_success"),
    }
    parts = [_with(_keyed(sends, "sent_ms"), sent), _with(_keyed(attempts, "start_ms"), consumed)]
    return summed(pyarrow.concat_tables(parts), _KEYS, _COUNTS)


def partial_values(sends: "Table", attempts: "Table") -> "Table":
    """The values of every measure in each minute, with the column `count`."""
    parts = []
    for measure in MEASURES:
        facts, time = (sends, "sent_ms") if measure == "send_cost" else (attempts, "start_ms")
        values = facts.column(_COLUMNS[measure])
        keyed = _keyed(facts, time).append_column("value", values).filter(pc.is_valid(values))
        parts.append(keyed.append_column("measure", pyarrow.repeat(measure, len(keyed))))
    table = pyarrow.concat_tables(parts)
    table = table.append_column("count", pyarrow.repeat(1, len(table)))
    return summed(table, _VALUE_KEYS, ["count"])


def per_minute(counts: "Table", values: "Table") -> "Table":
    """The counters and percentiles of each minute, as `trace.tables.MINUTE`."""
    counts = summed(counts, _KEYS, _COUNTS)
    values = summed(values, _VALUE_KEYS, ["count"])
    rows = len(counts)
    ids = group_ids(pyarrow.concat_tables([counts.select(_KEYS), values.select(_KEYS)]), _KEYS)
    row_of = numpy.empty(rows, numpy.int64)
    row_of[ids[:rows]] = numpy.arange(rows)
    columns: dict[str, Any] = {name: counts.column(name) for name in (*_KEYS, *_COUNTS)}
    finished = ints(counts, "successes") + ints(counts, "failures")
    rate = ints(counts, "successes") / numpy.maximum(finished, 1)
    columns["success_rate"] = pyarrow.array(rate, mask=finished == 0)
    for measure in MEASURES:
        mine = pc.equal(values.column("measure"), measure).to_numpy()
        found, spread = percentiles(
            ids[rows:][mine],
            ints(values, "value")[mine],
            ints(values, "count")[mine],
            (*LEVELS.values(), 1.0),
        )
        is_absent = numpy.ones(rows, bool)
        is_absent[row_of[found]] = False
        for name, figures in zip((*LEVELS, "max"), spread, strict=True):
            column = numpy.zeros(rows)
            column[row_of[found]] = figures
            columns[f"{measure}_{name}"] = pyarrow.array(column, mask=is_absent)
    return pyarrow.table([columns[name] for name in MINUTE.names], names=MINUTE.names).cast(
        arrow_schema(MINUTE)
    )


def latency_histograms(values: "Table") -> "Table":
    """Histogram counts of the measures of `per_minute`, as `trace.tables.LATENCY`."""
    value = numpy.maximum(ints(values, "value"), 1)
    bucket = numpy.ceil(numpy.log(value) / LOG_GAMMA).astype(numpy.int32)
    table = values.append_column("bucket", pyarrow.array(bucket))
    return summed(table, (*_KEYS, "measure", "bucket"), ["count"]).cast(arrow_schema(LATENCY))


def _keyed(facts: "Table", time: str) -> "Table":
    minute = floor_to(facts.column(time), MINUTE_MS)
    return facts.select(_KEYS[1:]).add_column(0, "minute_ms", minute)


def _with(keyed: "Table", counts: dict[str, Any]) -> "Table":
    zeros = numpy.zeros(len(keyed), numpy.int64)
    for name in _COUNTS:
        keyed = keyed.append_column(name, pyarrow.array(counts.get(name, zeros)))
    return keyed


def _is_null(table: "Table", name: str) -> Any:
    return table.column(name).is_null().to_numpy().astype(numpy.int64)
