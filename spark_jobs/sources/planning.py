"""Plan a read of a topic: offsets from the options, queue ranges, one partition per Spark task."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from spark_jobs.sources.offsets import Offsets, QueueBounds, QueueRange, slices
from spark_jobs.sources.options import ReadOptions
from spark_jobs.sources.partition_reader import read_range
from spark_jobs.sources.queues import ReadError, fetch_bounds, fetch_offsets_at

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class QueuePartition(InputPartition):
    """The input of one task: a range of one queue."""

    def __init__(self, part: QueueRange) -> None:
        super().__init__(part)
        self.part = part


def bounds_for(options: ReadOptions) -> list[QueueBounds]:
    """The bounds of all queues of the topic; retries while brokers are unreachable."""
    return fetch_bounds(options, options.topic)


def starting_offsets(options: ReadOptions, bounds: Sequence[QueueBounds]) -> Offsets | int:
    """The starting offsets of the options; a timestamp becomes an offset for each queue."""
    if options.starting_ms is None:
        return options.starting_offsets
    return fetch_offsets_at(options, options.topic, bounds, options.starting_ms)


def ending_offsets(options: ReadOptions, bounds: Sequence[QueueBounds]) -> Offsets | int:
    """The ending offsets of the options; a timestamp becomes an offset for each queue."""
    if options.ending_ms is None:
        return options.ending_offsets
    return fetch_offsets_at(options, options.topic, bounds, options.ending_ms)


def check_data_loss(options: ReadOptions, ranges: Sequence[QueueRange]) -> None:
    """Raise ReadError when requested messages have expired and failOnDataLoss is set."""
    lost = sum(part.lost for part in ranges)
    if lost and options.fail_on_data_loss:
        raise ReadError(
            f"{lost} messages of {options.topic} expired before the read. "
            "Set failOnDataLoss=false to continue without them."
        )


def plan_partitions(options: ReadOptions, ranges: Sequence[QueueRange]) -> list[QueuePartition]:
    """The partitions of a read; an empty read has one empty partition, because Spark needs one."""
    parts = slices(ranges, options.rows_per_partition_max)
    return [QueuePartition(part) for part in parts or [QueueRange("", 0, 0, 0)]]


def read_partition(
    options: ReadOptions, columns: Sequence[str], partition: InputPartition
) -> Iterator["RecordBatch"]:
    """Pull the range of a partition in a Spark worker, as Arrow record batches."""
    assert isinstance(partition, QueuePartition)
    return read_range(options, partition.part, columns)
