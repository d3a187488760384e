"""`df.write.format("rocketmq")` and `df.writeStream.format("rocketmq")`: rows become messages.

    paid.repartition("customer").sortWithinPartitions("paid_at").select(
        "customer", "body", "tags", "keys"
    ).write.format("rocketmq").mode("append").option("namesrv", "127.0.0.1:9876").option(
        "topic", "paid"
    ).option("orderingColumn", "customer").save()

`sources.write_options.WriteOptions` documents the options, `sources.sink_rows.SINK_COLUMNS` names
the columns. A write is at least once: a task succeeds after brokers acknowledged every row, and a
repeated task or micro-batch stores its rows again.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from core_broker.errors import ClientError
from spark_jobs.sources.sink_rows import check_schema
from spark_jobs.sources.sink_sends import send_rows
from spark_jobs.sources.write_options import WriteOptions

if TYPE_CHECKING:
    from pyarrow import RecordBatch

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Acknowledged(WriterCommitMessage):
    """The end of a task: the number of messages that brokers acknowledged."""

    messages: int


class RocketMQWriter(DataSourceArrowWriter):
    """A batch write."""

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        """Check the columns; raises ClientError."""
        if overwrite:
            raise ClientError(
                'A topic cannot be overwritten; write with .mode("append"), or '
                '.outputMode("append") or "update" in a stream.'
            )
        check_schema(schema, options)
        self._options = options

    def write(self, iterator: "Iterator[RecordBatch]") -> Acknowledged:
        """Send the rows of one task; returns after the acknowledgement of the last message."""
        return Acknowledged(asyncio.run(send_rows(self._options, iterator)))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log the number of messages: the brokers stored the messages before the commit."""
        log.info("Brokers acknowledged %d messages", _count(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log the failure: stored messages remain, and a repeated write stores them again."""
        log.warning("The write failed; at least %d messages were stored", _count(messages))


class RocketMQStreamWriter(DataSourceStreamArrowWriter):
    """A streaming write: each micro-batch is a batch write."""

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        self._batch_writer = RocketMQWriter(options, schema, overwrite=overwrite)

    def write(self, iterator: "Iterator[RecordBatch]") -> Acknowledged:
        """Send the rows of one task; returns after the acknowledgement of the last message."""
        return self._batch_writer.write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark passes the name
        """Log the number of messages; Spark's checkpoint holds the progress."""
        self._batch_writer.commit(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark passes the name
        """Log the failure; the restarted query sends the micro-batch again."""
        self._batch_writer.abort(messages)


def _count(messages: Sequence[WriterCommitMessage | None]) -> int:
    return sum(message.messages for message in messages if isinstance(message, Acknowledged))
