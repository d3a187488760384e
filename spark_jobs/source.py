"""`spark.read.format("rocketmq")`: any topic of any RocketMQ or Gantry cluster as a DataFrame.

    spark.dataSource.register(RocketMQDataSource)
    orders = (
        spark.read.format("rocketmq")
        .option("namesrv", "127.0.0.1:9876")
        .option("topic", "orders")
        .option("startingOffsets", '{"broker-a": {"0": 100}}')
        .option("columns", "queue_offset,body")
        .load()
    )

The options are those of `spark_jobs.options.ReadOptions`, the columns those of
`spark_jobs.columns`. A queue is cut into ranges of offsets, each read by its own task. The range
is fixed when the read is planned, so reading twice gives the same rows. Group offsets are never
committed: Spark's own checkpoint tells how far a stream has come.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from spark_jobs.columns import COLUMNS, spark_schema
from spark_jobs.offsets import Offsets, QueueBounds, QueueRange, ranges_to_read, slices
from spark_jobs.options import ReadOptions, read_options
from spark_jobs.pull import read_slice
from spark_jobs.queues import ReadError, fetch_bounds, fetch_offsets_at

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from spark_jobs.stream import RocketMQStreamReader


class RocketMQDataSource(DataSource):
    """The data source `rocketmq`, for batch and stream."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._read_options = read_options(options, COLUMNS)

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    def schema(self) -> str:
        return spark_schema(self._read_options.columns)

    def reader(self, schema: StructType) -> "RocketMQReader":
        return RocketMQReader(self._read_options, schema.fieldNames())

    def streamReader(self, schema: StructType) -> "RocketMQStreamReader":
        from spark_jobs.stream import RocketMQStreamReader

        return RocketMQStreamReader(self._read_options, schema.fieldNames())


class QueueSlice(InputPartition):
    """One task's share: a range of one queue."""

    def __init__(self, part: QueueRange) -> None:
        super().__init__(part)
        self.part = part


class RocketMQReader(DataSourceReader):
    """A batch read, fixed to the offsets found when it is planned."""

    def __init__(self, options: ReadOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = tuple(columns)

    def partitions(self) -> list[QueueSlice]:
        options = self._options
        bounds = bounds_for(options)
        ranges = ranges_to_read(
            bounds, starting_offsets(options, bounds), ending_offsets(options, bounds)
        )
        check_loss(options, ranges)
        return plan(options, ranges)

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        return read_partition(self._options, self._columns, partition)


def bounds_for(options: ReadOptions) -> list[QueueBounds]:
    """The bounds of all queues of the topic, waiting for brokers that are away."""
    return fetch_bounds(
        options.namesrv,
        options.topic,
        **_how_to_ask(options),
    )


def starting_offsets(options: ReadOptions, bounds: Sequence[QueueBounds]) -> Offsets | int:
    """Where the options say to start; a time becomes an offset of each queue."""
    if options.starting_ms is None:
        return options.starting_offsets
    return fetch_offsets_at(
        options.namesrv, options.topic, bounds, options.starting_ms, **_how_to_ask(options)
    )


def ending_offsets(options: ReadOptions, bounds: Sequence[QueueBounds]) -> Offsets | int:
    """Where the options say to end."""
    if options.ending_ms is None:
        return options.ending_offsets
    return fetch_offsets_at(
        options.namesrv, options.topic, bounds, options.ending_ms, **_how_to_ask(options)
    )


def _how_to_ask(options: ReadOptions) -> dict[str, Any]:
    return {
        "timeout_ms": options.request_timeout_ms,
        "retry_timeout_ms": options.retry_timeout_ms,
        "hooks": options.hooks,
    }


def check_loss(options: ReadOptions, ranges: Sequence[QueueRange]) -> None:
    """Raise ReadError when messages that were asked for are gone and that matters."""
    lost = sum(part.lost for part in ranges)
    if lost and options.fail_on_data_loss:
        raise ReadError(
            f"{lost} messages of {options.topic} have expired before they were read. "
            "Set failOnDataLoss=false to go on without them."
        )


def plan(options: ReadOptions, ranges: Sequence[QueueRange]) -> list[QueueSlice]:
    """The tasks of a read; at least one, since Spark wants one."""
    parts = slices(ranges, options.rows_per_partition_max)
    return [QueueSlice(part) for part in parts or [QueueRange("", 0, 0, 0)]]


def read_partition(
    options: ReadOptions, columns: Sequence[str], partition: InputPartition
) -> Iterator["RecordBatch"]:
    """What a worker does: pull the slice and hand it to Spark as Arrow batches."""
    assert isinstance(partition, QueueSlice)
    return read_slice(options, partition.part, columns)
