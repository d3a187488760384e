"""`spark.read.format("commitlog")`: a store folder of RocketMQ or Gantry as a DataFrame, no broker.

    spark.dataSource.register(CommitLogDataSource)
    backup = (
        spark.read.format("commitlog")
        .option("path", "/backup/store")
        .option("topic", "orders")
        .option("startingTimestamp", "2026-11-05T13:00:00Z")
        .load()
    )

Files are split into slices, one slice per task. The source returns every record in the log: a
message exists until its file is deleted, even after its queue has expired the message. Damage and
torn tails are skipped and logged by the task, or returned as rows.
"""

import logging
import mmap
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from core_broker.errors import ClientError, ProtocolError
from core_broker.message.model import MessageExt
from core_broker.message.record import decode_record
from spark_jobs.sources.batch_builders import VectorBatchBuilder
from spark_jobs.sources.columns import COLUMNS, Column, arrow_type, spark_schema, to_arrow
from spark_jobs.sources.log_scan import Damage, LogSlice, ScannedRecord, log_slices, scan
from spark_jobs.sources.options import (
    TIME_MS_MAX,
    checked_names,
    column_names,
    flag,
    positive,
    time_ms,
)
from spark_jobs.sources.queues import ReadError
from spark_jobs.sources.record_heads import (
    HEAD_COLUMNS,
    STORE_SIZE,
    STORE_TIMESTAMP,
    packed,
)

if TYPE_CHECKING:
    from pyarrow import RecordBatch

log = logging.getLogger(__name__)

POSITION: Final = "physical_offset"
DAMAGED: Final = "damaged_bytes"
DAMAGE_KINDS: Final = ("skip", "rows", "fail")
BATCH_ROWS: Final = 8192
BATCH_BYTES: Final = 16 * 1024 * 1024

LOG_COLUMNS: Final = {**COLUMNS, DAMAGED: Column("bigint", "int64", lambda _: 0)}


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Options of a read of a store folder."""

    #: `path`: the store folder, or its folder commitlog; every worker must see the path. Required.
    path: str
    #: `topic`: one topic, or several separated by commas; by default all topics.
    topics: frozenset[str] = frozenset()
    #: `startingTimestamp`: first store time.
    starting_ms: int = 0
    #: `endingTimestamp`: exclusive end of the store times.
    ending_ms: int = TIME_MS_MAX + 1
    #: `columns`: names separated by commas; by default all columns.
    columns: tuple[str, ...] = ()
    #: `brokerName`: value of the column broker_name; a commit log does not contain the name.
    broker_name: str = ""
    #: `maxBytesPerPartition`: maximum file range of one task, bytes.
    bytes_per_partition_max: int = 256 * 1024 * 1024
    #: `checkCrc`: whether a body with a wrong checksum counts as damage.
    check_crc: bool = True
    #: `damage`: `skip` skips and logs damaged ranges, `rows` returns a row for each damaged range
    #: with only physical_offset and damaged_bytes, `fail` ends the read.
    damage: str = "skip"


OPTION_NAMES: Final = {
    "path": "path",
    "topic": "topics",
    "startingTimestamp": "starting_ms",
    "endingTimestamp": "ending_ms",
    "columns": "columns",
    "brokerName": "broker_name",
    "maxBytesPerPartition": "bytes_per_partition_max",
    "checkCrc": "check_crc",
    "damage": "damage",
}


def read_log_options(raw_options: Mapping[str, str]) -> LogOptions:
    """Check and convert the options; a ClientError names the first wrong option and the expected
    value.
    """
    texts = checked_names("commitlog", raw_options, OPTION_NAMES)
    values = {OPTION_NAMES[key]: _value(key, text) for key, text in texts.items()}
    if not values.get("path"):
        raise ClientError("The data source commitlog needs the option path.")
    options = LogOptions(**values)  # type: ignore[arg-type]
    if options.damage == "rows" and options.columns and DAMAGED not in options.columns:
        raise ClientError(f"damage=rows needs {DAMAGED} among the columns.")
    return options


def _value(key: str, text: str) -> object:
    if key in {"startingTimestamp", "endingTimestamp"}:
        return time_ms(key, text)
    if key == "topic":
        return frozenset(name.strip() for name in text.split(",") if name.strip())
    if key == "columns":
        return column_names(text, tuple(LOG_COLUMNS))
    if key == "maxBytesPerPartition":
        return positive(key, text)
    if key == "checkCrc":
        return flag(key, text)
    if key == "damage" and text.strip().lower() not in DAMAGE_KINDS:
        raise ClientError(f"damage must be {', '.join(DAMAGE_KINDS)}, not {text[:40]!r}.")
    return text.strip().lower() if key == "damage" else text.strip()


class CommitLogDataSource(DataSource):
    """The data source `commitlog`, for batch."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._log_options = read_log_options(options)

    @classmethod
    def name(cls) -> str:
        return "commitlog"

    def schema(self) -> str:
        return spark_schema(self._log_options.columns, LOG_COLUMNS)

    def reader(self, schema: StructType) -> "CommitLogReader":
        return CommitLogReader(self._log_options, schema.fieldNames())


class LogPartition(InputPartition):
    """The input of one task: a slice of one file."""

    def __init__(self, part: LogSlice) -> None:
        super().__init__(part)
        self.part = part


class CommitLogReader(DataSourceReader):
    """A batch read of the files present at planning time."""

    def __init__(self, options: LogOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = tuple(columns)

    def partitions(self) -> list[LogPartition]:
        options = self._options
        slices = log_slices(Path(options.path), options.bytes_per_partition_max)
        return [LogPartition(part) for part in slices]

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        assert isinstance(partition, LogPartition)
        return read_log_slice(self._options, self._columns, partition.part)


def read_log_slice(
    options: LogOptions, columns: Sequence[str], part: LogSlice
) -> Iterator["RecordBatch"]:
    """The messages of a slice in order of position, in batches."""
    with Path(part.path).open("rb") as file:
        if part.end <= part.start:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
            yield from _SliceBatches(options, columns, part, log)


class _SliceBatches:
    """The batches of one slice; with damage=rows the damaged ranges come last."""

    def __init__(
        self, options: LogOptions, columns: Sequence[str], part: LogSlice, log: mmap.mmap
    ) -> None:
        self._options = options
        self._columns = columns
        self._part = part
        self._log = log
        self._topics = frozenset(topic.encode() for topic in options.topics)
        self._damage: list[Damage] = []

    def __iter__(self) -> Iterator["RecordBatch"]:
        options = self._options
        batch: list[ScannedRecord] = []
        size = 0
        for record in scan(self._part, self._log, check_crc=options.check_crc):
            if isinstance(record, Damage):
                self._report_damage(record)
                continue
            if self._topics and record.topic not in self._topics:
                continue
            if not options.starting_ms <= record.head[STORE_TIMESTAMP] < options.ending_ms:
                continue
            batch.append(record)
            size += record.head[STORE_SIZE]
            if len(batch) >= BATCH_ROWS or size >= BATCH_BYTES:
                yield self._to_arrow(batch)
                batch, size = [], 0
        if batch:
            yield self._to_arrow(batch)
        if options.damage == "rows" and self._damage:
            yield self._damage_rows()

    def _report_damage(self, damage: Damage) -> None:
        text = (
            f"{damage.bytes} bytes at position {damage.position} of {self._part.path} are damaged"
        )
        if self._options.damage == "fail":
            raise ReadError(f"{text}. Set damage=skip or damage=rows to read the rest.")
        log.warning(text)
        self._damage.append(damage)

    def _to_arrow(self, batch: Sequence[ScannedRecord]) -> "RecordBatch":
        names = [name for name in self._columns if name != DAMAGED]
        if HEAD_COLUMNS.issuperset(names):
            rows = VectorBatchBuilder()
            for record in batch:
                topic = record.topic.decode("utf-8", "replace")
                rows.add_record(packed(record.head, record.body), topic)
            arrow = rows.to_arrow(names, "", self._options.broker_name)
        else:
            arrow = to_arrow(self._messages(batch), names)
        return self._with_damage(arrow, [0] * arrow.num_rows)

    def _messages(self, batch: Sequence[ScannedRecord]) -> list[MessageExt]:
        messages = []
        for record in batch:
            size = record.head[STORE_SIZE]
            try:
                message = decode_record(self._log[record.at : record.at + size])
            except ProtocolError:  # valid frame, but malformed text
                self._report_damage(Damage(self._part.base + record.at, size))
                continue
            message.broker_name = self._options.broker_name
            messages.append(message)
        return messages

    def _damage_rows(self) -> "RecordBatch":
        import pyarrow

        positions = {POSITION: [damage.position for damage in self._damage]}
        count = len(self._damage)
        names = [name for name in self._columns if name != DAMAGED]
        arrays = [
            pyarrow.array(positions.get(name, [None] * count), arrow_type(LOG_COLUMNS[name]))
            for name in names
        ]
        rows = pyarrow.RecordBatch.from_arrays(arrays, names)
        return self._with_damage(rows, [damage.bytes for damage in self._damage])

    def _with_damage(self, rows: "RecordBatch", damaged: Sequence[int]) -> "RecordBatch":
        """The batch with the column damaged_bytes, when the read includes the column."""
        import pyarrow

        if DAMAGED not in self._columns:
            return rows
        index = self._columns.index(DAMAGED)
        arrays = list(rows.columns)
        arrays.insert(index, pyarrow.array(damaged, pyarrow.int64()))
        return pyarrow.RecordBatch.from_arrays(arrays, list(self._columns))
