"""The ingest job as a stream: it stays, and brings what is new into the lake every few seconds.

Spark's structured streaming reads the topic, each micro-batch is one round. The lake's snapshot is
the only truth about how far the job has come: events and offsets are committed together. Spark's
own checkpoint lives as long as the run and starts from the snapshot, so that a killed run leaves
no second opinion.
"""

import json
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core_broker.errors import GantryError
from spark_jobs.ingest import (
    Clock,
    Ingest,
    Result,
    StartSpark,
    make_tables,
    own_snapshot,
    with_retry_limits,
)
from spark_jobs.lake_writer import LakeWriter, only_writer, sweep
from spark_jobs.progress import Progress, Stage
from trace.lake import Lake, Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

#: Between two makings of tables lies so many times what the last one took: reading goes first.
TABLES_PAUSE_TIMES: Final = 1.0
POLL_S: Final = 1
#: Folder in the lake for what Spark keeps of a running stream.
CHECKPOINT: Final = "checkpoint"


class StreamEndedError(GantryError):
    """Spark's stream ended by itself: it could not be read or written (operator)."""


def run_follow(
    job: Ingest,
    every_s: int,
    progress: Progress,
    start_spark: StartSpark,
    now_ms: Clock,
    *,
    is_over: Callable[[], bool] = lambda: False,
) -> Result:
    """Run until the process is stopped, or `is_over` says so. Raises as `run_ingest` does."""
    progress.enter(Stage.PLAN)
    with only_writer(Lake(job.lake)) as writer:
        snapshot = own_snapshot(writer.lake, job.topic)
        sweep(writer.lake, snapshot)
        snapshot = with_retry_limits(snapshot, job)
        progress.enter(Stage.START)
        with start_spark(False) as spark:
            progress.spark_is_at(spark.sparkContext.uiWebUrl)
            batches = _Batches(spark, job, writer, snapshot, progress, now_ms)
            checkpoint = job.lake / CHECKPOINT
            shutil.rmtree(checkpoint, ignore_errors=True)
            query = _start(spark, job, batches, checkpoint, every_s)
            try:
                while not is_over():
                    if query.awaitTermination(POLL_S):
                        raise StreamEndedError("The stream of the trace topic ended.")
                    batches.make_due_tables()
            finally:
                query.stop()
                shutil.rmtree(checkpoint, ignore_errors=True)
    return batches.result


def _start(
    spark: "SparkSession", job: Ingest, batches: "_Batches", checkpoint: Path, every_s: int
) -> "StreamingQuery":
    from spark_jobs.round import MESSAGE_COLUMNS
    from spark_jobs.source import RocketMQDataSource

    spark.dataSource.register(RocketMQDataSource)
    offsets = batches.snapshot.offsets
    return (
        spark.readStream.format("rocketmq")
        .option("namesrv", job.namesrv)
        .option("topic", job.topic)
        .option("startingOffsets", json.dumps(offsets) if offsets else "earliest")
        .option("maxRowsPerBatch", job.messages_per_round)
        .option("maxRowsPerPartition", job.rows_per_task)
        .option("retryTimeoutMs", job.retry_timeout_ms)
        .option("failOnDataLoss", "false")
        .option("columns", MESSAGE_COLUMNS)
        .load()
        .writeStream.foreachBatch(batches.take)
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=f"{every_s} seconds")
        .start()
    )


class _Batches:
    """What becomes of the micro-batches. Spark's thread brings them, ours makes the tables."""

    def __init__(
        self,
        spark: "SparkSession",
        job: Ingest,
        writer: LakeWriter,
        snapshot: Snapshot,
        progress: Progress,
        now_ms: Clock,
    ) -> None:
        self.result = Result()
        self.snapshot = snapshot
        self._spark = spark
        self._job = job
        self._writer = writer
        self._progress = progress
        self._now_ms = now_ms
        self._tables_due_s = 0.0
        self._writing = threading.Lock()

    def take(self, messages: "DataFrame", _batch: int) -> None:
        """Commit a micro-batch."""
        from spark_jobs.round import ingest_round

        with self._writing:
            self._progress.enter(Stage.READ)
            self.snapshot, tally = ingest_round(
                self._spark, self._job, self._writer, self.snapshot, messages, self._now_ms()
            )
            self.result.rows += tally.rows
            self.result.records += tally.records
            self.result.broken += tally.broken
            self._progress.rows = self._progress.rows_total = self.result.rows

    def make_due_tables(self) -> None:
        """Make the tables of changed hours, if the last time is long enough ago."""
        begun_s = time.monotonic()
        if begun_s < self._tables_due_s:
            return
        with self._writing:
            if not any(self.snapshot.stale.values()):
                return
            sweep(self._writer.lake, self.snapshot)
            self.snapshot = make_tables(
                self._spark,
                self._job,
                self._writer,
                self.snapshot,
                self._progress,
                self.result,
                self._now_ms,
            )
        ended_s = time.monotonic()
        self._tables_due_s = ended_s + TABLES_PAUSE_TIMES * (ended_s - begun_s)
