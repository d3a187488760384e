"""Decode trace messages and write their events to Parquet files, in the tasks of Spark.

`trace.columns` decodes. A task reports its files and counts as one row, and the Java process never
handles the events.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from pyspark.sql import DataFrame

from spark_jobs.spark.hour_files import HourFiles, StagedFile
from spark_jobs.spark.packed import Batches, values_of
from spark_jobs.spark.worker_tasks import map_batches
from spark_jobs.tables.facts import message_hashes
from trace import columns
from trace.tables import EVENTS

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import SparkSession

#: Columns of the data source that `write_events` reads.
MESSAGE_COLUMNS: Final = ",".join(columns.MESSAGE_COLUMNS)
#: Messages decoded at once. Larger batches exceed the CPU caches and are slower.
MESSAGES_DECODED: Final = 1000

QueueOffsets = dict[str, dict[int, int]]
#: Returns the messages of a task, with MESSAGE_COLUMNS; picklable.
Reader = Callable[[], Iterator["RecordBatch"]]


class Written(msgspec.Struct):
    """Files and counts of a task, or of all tasks of a micro-batch."""

    files: list[StagedFile] = []
    #: One after the last message, by broker name and queue.
    offsets: QueueOffsets = {}
    messages: int = 0
    records: int = 0
    broken: int = 0
    #: Store time of the newest message, ms.
    watermark_ms: int = 0

    def count(self, messages: "RecordBatch", events: "RecordBatch") -> None:
        """Add the counts of decoded messages and their events."""
        import pyarrow
        import pyarrow.compute as pc

        names = ["broker_name", "queue_id"]
        queues = pyarrow.Table.from_batches([messages.select([*names, "queue_offset"])])
        for row in queues.group_by(names).aggregate([("queue_offset", "max")]).to_pylist():
            reached = {row["broker_name"]: {row["queue_id"]: row["queue_offset_max"] + 1}}
            self.offsets = _highest(self.offsets, reached)
        self.messages += messages.num_rows
        self.records += events.num_rows
        self.broken += pc.sum(pc.equal(events.column("kind"), columns.BROKEN)).as_py() or 0
        newest_ms = pc.max(messages.column("store_timestamp")).cast(pyarrow.int64()).as_py() // 1000
        self.watermark_ms = max(self.watermark_ms, newest_ms)

    def add(self, other: "Written") -> None:
        """Add the files and counts of another task, with other messages."""
        self.files = self.files + other.files
        self.offsets = _highest(self.offsets, other.offsets)
        self.messages += other.messages
        self.records += other.records
        self.broken += other.broken
        self.watermark_ms = max(self.watermark_ms, other.watermark_ms)


def write_events(messages: DataFrame, staging: Path) -> Written:
    """Write the events of `messages`, with MESSAGE_COLUMNS, to files in `staging`."""
    return _total(map_batches(messages, _task(staging), "written binary"))


def write_events_of(spark: "SparkSession", readers: Sequence[Reader], staging: Path) -> Written:
    """`write_events` for the messages of `readers`, which run in a task each.

    Unlike a data source, the readers need no Python processes for plans, and the messages do not
    pass through Java.
    """
    write = _task(staging)

    def read_and_write(batches: Batches) -> Batches:
        numbers = (number for (number,) in values_of(batches))
        return write(messages for number in numbers for messages in readers[number]())

    numbers = spark.range(0, len(readers), 1, max(1, len(readers)))
    return _total(map_batches(numbers, read_and_write, "written binary"))


def _total(tasks: DataFrame) -> Written:
    total = Written()
    for row in tasks.collect():
        total.add(msgspec.json.decode(row.written, type=Written))
    return total


def _highest(some: QueueOffsets, others: QueueOffsets) -> QueueOffsets:
    highest = {name: dict(queues) for name, queues in some.items()}
    for name, queues in others.items():
        known = highest.setdefault(name, {})
        for queue_id, offset in queues.items():
            known[queue_id] = max(known.get(queue_id, 0), offset)
    return highest


def _task(staging: Path) -> Callable[[Batches], Batches]:
    def write(batches: Batches) -> Batches:
        import pyarrow

        written = Written()
        with closing(HourFiles(staging, EVENTS, hashes=message_hashes)) as files:
            for batch in batches:
                for begin in range(0, batch.num_rows, MESSAGES_DECODED):
                    messages = batch.slice(begin, MESSAGES_DECODED)
                    events = columns.decode_events(messages)
                    files.add(events)
                    written.count(messages, events)
        written.files = files.finished
        row = pyarrow.array([msgspec.json.encode(written)], pyarrow.binary())
        yield pyarrow.RecordBatch.from_arrays([row], ["written"])

    return write
