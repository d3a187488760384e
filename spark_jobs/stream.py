"""`spark.readStream.format("rocketmq")`: the same read as an endless sequence of micro-batches.

Offsets in the checkpoint are `{broker name: {queue: next offset}}`. A queue that appears later
starts at its first message. With the trigger availableNow the stream ends at what was there when it
started.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from spark_jobs.offsets import QueueBounds, limited, next_offsets, ranges_to_read
from spark_jobs.options import ReadOptions
from spark_jobs.source import (
    QueueSlice,
    bounds_for,
    check_loss,
    plan,
    read_partition,
    starting_offsets,
)

if TYPE_CHECKING:
    from pyarrow import RecordBatch

Checkpoint = dict[str, dict[str, int]]


class RocketMQStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream. The state is Spark's checkpoint; nothing is kept here but the frozen target."""

    def __init__(self, options: ReadOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._target: list[QueueBounds] | None = None

    def initialOffset(self) -> Checkpoint:
        bounds = bounds_for(self._options)
        ranges = ranges_to_read(bounds, starting_offsets(self._options, bounds))
        return _checkpoint(next_offsets(replace(part, end=part.start) for part in ranges))

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.rows_per_batch_max)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = bounds_for(self._options)

    def latestOffset(self, start: Checkpoint, limit: ReadLimit) -> Checkpoint:
        bounds = self._target if self._target is not None else bounds_for(self._options)
        ranges = ranges_to_read(bounds, _offsets(start))
        if isinstance(limit, ReadMaxRows):
            ranges = limited(ranges, limit.max_rows)
        # A broker that is away keeps its place.
        return start | _checkpoint(next_offsets(ranges))

    def partitions(self, start: Checkpoint, end: Checkpoint) -> list[QueueSlice]:
        ranges = ranges_to_read(bounds_for(self._options), _offsets(start), _offsets(end))
        check_loss(self._options, ranges)
        return plan(self._options, ranges)

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        return read_partition(self._options, self._columns, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: the checkpoint is the truth, group offsets belong to the group's consumers."""


def _checkpoint(offsets: dict[str, dict[int, int]]) -> Checkpoint:
    return {
        name: {str(queue_id): offset for queue_id, offset in queues.items()}
        for name, queues in offsets.items()
    }


def _offsets(checkpoint: Checkpoint) -> dict[str, dict[int, int]]:
    return {
        name: {int(queue_id): offset for queue_id, offset in queues.items()}
        for name, queues in checkpoint.items()
    }
