"""`spark.readStream.format("rocketmq")`: the same read as a sequence of micro-batches.

Checkpoint offsets are `{broker name: {queue: next offset}}`. A queue created later starts at its
first message. With the trigger availableNow the stream ends at the queue bounds of its start.
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

from spark_jobs.sources.offsets import QueueBounds, limited, next_offsets, ranges_to_read
from spark_jobs.sources.options import ReadOptions
from spark_jobs.sources.planning import (
    QueuePartition,
    bounds_for,
    check_data_loss,
    plan_partitions,
    read_partition,
    starting_offsets,
)

if TYPE_CHECKING:
    from pyarrow import RecordBatch

Checkpoint = dict[str, dict[str, int]]


class RocketMQStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream reader. Spark's checkpoint holds the state; the reader keeps only the target
    offsets.
    """

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
        # An unreachable broker keeps its offsets.
        return start | _checkpoint(next_offsets(ranges))

    def partitions(self, start: Checkpoint, end: Checkpoint) -> list[QueuePartition]:
        ranges = ranges_to_read(bounds_for(self._options), _offsets(start), _offsets(end))
        check_data_loss(self._options, ranges)
        return plan_partitions(self._options, ranges)

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        return read_partition(self._options, self._columns, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the checkpoint holds the position, and group offsets belong to consumers."""


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
