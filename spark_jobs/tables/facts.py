"""Facts from trace events: Spark brings the events of a message together, `trace.facts` derives.

One shuffle by message id groups all events of a message. The derivation runs in the tasks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trace.columns import BROKEN, arrow_schema
from trace.facts import ATTEMPT, CONSUMER, EVENT_COLUMNS, LOOKBACK_HOURS, SEND, facts_of
from trace.lake import HourIndex
from trace.tables import FACTS

if TYPE_CHECKING:
    from pyarrow import RecordBatch

#: Maximum delay, in hours, of an event that changes an earlier hour.
LOOKAHEAD_HOURS: Final = 24


def hours_around(hours: Iterable[HourIndex]) -> set[HourIndex]:
    """The hours whose events may concern messages of `hours`."""
    return {
        hour + distance
        for hour in hours
        for distance in range(-LOOKBACK_HOURS, LOOKAHEAD_HOURS + 1)
    }


def facts(
    events: DataFrame,
    hours: Sequence[HourIndex],
    retry_times_max: Mapping[str, int],
    *,
    partitions: int,
) -> DataFrame:
    """The rows of `trace.tables.FACTS` in `hours`; `events` must cover `hours_around(hours)`.

    `partitions` is the number of tasks, each of which holds its events in memory.
    """
    messages = events.where(F.col("kind") != BROKEN).select(
        *(name for name in EVENT_COLUMNS if not name.startswith(("msg_id", "batch"))),
        F.size(F.split("msg_id", ",")).alias("batch_size"),
        F.posexplode(F.split("msg_id", ",")).alias("batch_index", "msg_id"),
    )
    together = messages.select(*EVENT_COLUMNS).repartition(partitions, "msg_id")
    return together.mapInArrow(_task(tuple(hours), dict(retry_times_max)), FACTS.schema)


def sends(facts: DataFrame) -> DataFrame:
    """The sends; a batch is one row with `messages` greater than 1."""
    return facts.where((F.col("fact") == SEND) & (F.col("messages") > 0))


def attempts(facts: DataFrame) -> DataFrame:
    """The attempts to consume a message, with the values of its send."""
    return facts.where(F.col("fact") == ATTEMPT)


def awaited(facts: DataFrame) -> DataFrame:
    """One row per stored message that is meant to be consumed."""
    return facts.where(F.col("awaited_groups").isNotNull())


def consumers(facts: DataFrame) -> DataFrame:
    """The first attempts of every group on a topic, by hour; the same hour may occur twice."""
    return facts.where(F.col("fact") == CONSUMER)


def _task(
    hours: Sequence[HourIndex], retry_times_max: Mapping[str, int]
) -> "Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]]":
    def derive(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        import pyarrow

        events = list(batches)
        if not events:
            return
        schema = arrow_schema(FACTS)
        for columns in facts_of(pyarrow.Table.from_batches(events), hours, retry_times_max):
            if columns:
                arrays = [pyarrow.array(columns[field.name], field.type) for field in schema]
                yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema)

    return derive
