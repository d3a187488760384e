"""The ingest job: what is new in the trace topic becomes events and rollups in the lake.

Each round reads a range of every queue, writes its events, makes the rollups of the affected hours
again and commits all of that together with the offsets reached (see `trace.lake`). A run that is
killed has committed whole rounds only, so the next one goes on without gaps and without doubles.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark_jobs.lake_writer import only_writer, sweep
from spark_jobs.offsets import EARLIEST, QueueRange, limited, ranges_to_read
from spark_jobs.progress import Progress, Stage
from spark_jobs.queues import TopicMissingError, fetch_bounds
from trace.lake import Lake, LakeError, Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
MESSAGES_PER_ROUND: Final = 1_000_000
RETAIN_DAYS: Final = 30

SHORT_RUN_MESSAGES_MAX: Final = 20_000

StartSpark = Callable[[bool], AbstractContextManager["SparkSession"]]
"""Starts Spark, told whether the run will be a short one. Called only when there is something to
read: Spark takes seconds to start, and half a gigabyte."""


@dataclass(frozen=True, slots=True)
class Ingest:
    """What to ingest, and where to."""

    namesrv: str
    lake: Path
    topic: str = TRACE_TOPIC
    messages_per_round: int = MESSAGES_PER_ROUND
    rows_per_task: int = 20_000
    retain_days: int = RETAIN_DAYS
    retry_timeout_ms: int = 60_000


@dataclass(slots=True)
class Result:
    """What a run did, over all its rounds."""

    rows: int = 0
    records: int = 0
    broken: int = 0
    lost: int = 0
    hours: int = 0
    note: str = ""
    """Why there was nothing to do."""

    def add(self, *, rows: int, records: int, broken: int, lost: int, hours: int) -> None:
        """Count one round."""
        self.rows += rows
        self.records += records
        self.broken += broken
        self.lost += lost
        self.hours += hours


def run_ingest(
    job: Ingest, progress: Progress, start_spark: StartSpark, now_ms: Callable[[], int]
) -> Result:
    """Run the job to its end: everything that was in the topic when it began is in the lake then.

    Raises LakeError when another job holds the lake, ReadError when a queue cannot be read, and
    whatever `start_spark` raises.
    """
    result = Result()
    progress.enter(Stage.PLAN)
    with only_writer(Lake(job.lake)) as writer:
        snapshot = _own_snapshot(writer.lake, job.topic)
        sweep(writer.lake, snapshot)
        try:
            bounds = fetch_bounds(job.namesrv, job.topic, retry_timeout_ms=job.retry_timeout_ms)
        except TopicMissingError as missing:
            result.note = f"{missing} It appears with the first client that traces its messages."
            return result
        ranges = ranges_to_read(bounds, snapshot.offsets or EARLIEST)
        progress.rows_total = sum(part.count for part in ranges)
        if not progress.rows_total:
            result.note = "Nothing new in the trace topic."
            return result
        rounds = rounds_of(ranges, job.messages_per_round)
        progress.rounds = len(rounds)
        progress.enter(Stage.START)
        with start_spark(progress.rows_total <= SHORT_RUN_MESSAGES_MAX) as spark:
            from spark_jobs.round import ingest_round

            progress.spark_is_at(spark.sparkContext.uiWebUrl)
            for progress.round_index, part in enumerate(rounds):
                snapshot = ingest_round(
                    spark, job, writer, snapshot, part, progress, result, now_ms()
                )
    return result


def _own_snapshot(lake: Lake, topic: str) -> Snapshot:
    snapshot = lake.snapshot()
    if snapshot.topic not in {"", topic}:
        raise LakeError(f"The lake {lake.root} holds traces of {snapshot.topic}, not of {topic}.")
    return snapshot


def rounds_of(ranges: Sequence[QueueRange], rows_max: int) -> list[list[QueueRange]]:
    """The ranges cut into rounds of about `rows_max` messages, every queue in each."""
    rounds = []
    left = list(ranges)
    while any(part.count for part in left):
        now = limited(left, rows_max)
        rounds.append(now)
        left = [replace(part, start=done.end, lost=0) for part, done in zip(left, now, strict=True)]
    return rounds
