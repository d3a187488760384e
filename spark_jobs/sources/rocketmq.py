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

`sources.options.ReadOptions` documents the options, `sources.columns` the columns. A queue is split
into offset ranges, one per task. The plan fixes the ranges, so a repeated read returns the same
rows. The source never commits group offsets: Spark's own checkpoint holds the position of a stream.
`sources.sink` describes writes.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from spark_jobs.sources.columns import COLUMNS, spark_schema
from spark_jobs.sources.offsets import ranges_to_read
from spark_jobs.sources.options import ReadOptions, read_options
from spark_jobs.sources.planning import (
    QueuePartition,
    bounds_for,
    check_data_loss,
    ending_offsets,
    plan_partitions,
    read_partition,
    starting_offsets,
)
from spark_jobs.sources.sink import RocketMQStreamWriter, RocketMQWriter
from spark_jobs.sources.stream import RocketMQStreamReader
from spark_jobs.sources.write_options import write_options

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class RocketMQDataSource(DataSource):
    """The data source `rocketmq`, for batch and stream, read and write."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        # Reads and writes have different options: each method checks the options of its direction.
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    def schema(self) -> str:
        return spark_schema(self._read_options().columns)

    def reader(self, schema: StructType) -> "RocketMQReader":
        return RocketMQReader(self._read_options(), schema.fieldNames())

    def streamReader(self, schema: StructType) -> RocketMQStreamReader:
        return RocketMQStreamReader(self._read_options(), schema.fieldNames())

    def writer(self, schema: StructType, overwrite: bool) -> RocketMQWriter:
        return RocketMQWriter(write_options(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> RocketMQStreamWriter:
        return RocketMQStreamWriter(write_options(self.options), schema, overwrite=overwrite)

    def _read_options(self) -> ReadOptions:
        return read_options(self.options, COLUMNS)


class RocketMQReader(DataSourceReader):
    """A batch read, fixed to the queue bounds at planning time."""

    def __init__(self, options: ReadOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = tuple(columns)

    def partitions(self) -> list[QueuePartition]:
        options = self._options
        bounds = bounds_for(options)
        ranges = ranges_to_read(
            bounds, starting_offsets(options, bounds), ending_offsets(options, bounds)
        )
        check_data_loss(options, ranges)
        return plan_partitions(options, ranges)

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        return read_partition(self._options, self._columns, partition)
