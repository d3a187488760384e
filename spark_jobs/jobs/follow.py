"""The ingest job as a stream: runs until stopped and writes new events every few seconds.

Spark Structured Streaming reads the topic and passes micro-batches. The snapshot of the lake is the
only record of progress: events and offsets are committed together. Spark's own checkpoint lives
only during the run and starts from the snapshot, so a killed run leaves no second, different
offset.
"""

import json
import shutil
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core_broker.errors import GantryError
from spark_jobs.jobs.ingest import Ingest, make_tables, snapshot_of_topic, with_retry_limits
from spark_jobs.jobs.run import Result, Run, Runtime
from spark_jobs.spark.lake_writer import delete_unreferenced, exclusive_writer
from spark_jobs.spark.progress import Stage
from trace.lake import Lake, Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

#: Pause between two derivations of tables, as a multiple of the last derivation's duration: reading
#: has priority.
TABLES_PAUSE_TIMES: Final = 1.0
POLL_S: Final = 1
#: Folder in the lake for Spark's checkpoint of a running stream.
CHECKPOINT: Final = "checkpoint"


class StreamEndedError(GantryError):
    """Spark's stream ended by itself: reading or writing failed (operator)."""


def run_follow(
    job: Ingest,
    every_s: int,
    runtime: Runtime,
    *,
    is_over: Callable[[], bool] = lambda: False,
) -> Result:
    """Run until the process is stopped or `is_over` returns true. Raises as `run_ingest` does."""
    result = Result()
    runtime.progress.enter(Stage.PLAN)
    with exclusive_writer(Lake(job.lake)) as writer:
        snapshot = snapshot_of_topic(writer.lake, job.topic)
        delete_unreferenced(writer.lake, snapshot)
        snapshot = with_retry_limits(snapshot, job)
        with runtime.start(job, writer, result, is_short=False) as run:
            batches = _Batches(run, snapshot)
            checkpoint = job.lake / CHECKPOINT
            shutil.rmtree(checkpoint, ignore_errors=True)
            query = _start(run, batches, checkpoint, every_s)
            try:
                while not is_over():
                    if query.awaitTermination(POLL_S):
                        raise StreamEndedError("The stream of the trace topic ended.")
                    batches.make_due_tables()
            finally:
                query.stop()
                shutil.rmtree(checkpoint, ignore_errors=True)
    return result


def _start(
    run: Run[Ingest], batches: "_Batches", checkpoint: Path, every_s: int
) -> "StreamingQuery":
    from spark_jobs.jobs.write_events import MESSAGE_COLUMNS
    from spark_jobs.sources.rocketmq import RocketMQDataSource

    job = run.options
    run.session.dataSource.register(RocketMQDataSource)
    offsets = batches.snapshot.offsets
    return (
        run.session.readStream.format("rocketmq")
        .option("namesrv", job.namesrv)
        .option("topic", job.topic)
        .option("startingOffsets", json.dumps(offsets) if offsets else "earliest")
        .option("maxRowsPerBatch", job.messages_per_batch)
        .option("maxRowsPerPartition", job.rows_per_task)
        .option("retryTimeoutMs", job.retry_timeout_ms)
        .option("failOnDataLoss", "false")
        .option("columns", MESSAGE_COLUMNS)
        .load()
        .writeStream.foreachBatch(batches.process)
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=f"{every_s} seconds")
        .start()
    )


class _Batches:
    """Commits micro-batches on Spark's thread; derives tables on the main thread."""

    def __init__(self, run: Run[Ingest], snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._run = run
        self._tables_due_s = 0.0
        self._writing = threading.Lock()

    def process(self, messages: "DataFrame", _batch: int) -> None:
        """Commit a micro-batch."""
        from spark_jobs.jobs.micro_batch import ingest_batch
        from spark_jobs.jobs.write_events import write_events

        progress, result = self._run.progress, self._run.result
        with self._writing:
            progress.enter(Stage.READ)
            self.snapshot, counts = ingest_batch(
                self._run, self._run.options.topic, self.snapshot, partial(write_events, messages)
            )
            result.rows += counts.messages
            result.records += counts.records
            result.broken += counts.broken
            progress.rows = progress.rows_total = result.rows

    def make_due_tables(self) -> None:
        """Derive the tables of stale hours, unless the last derivation is too recent."""
        begin_s = time.monotonic()
        if begin_s < self._tables_due_s:
            return
        with self._writing:
            if not any(self.snapshot.stale.values()):
                return
            delete_unreferenced(self._run.writer.lake, self.snapshot)
            self.snapshot = make_tables(self._run, self.snapshot)
        end_s = time.monotonic()
        self._tables_due_s = end_s + TABLES_PAUSE_TIMES * (end_s - begin_s)
