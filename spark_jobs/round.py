"""One round of the ingest job: read a range of each queue, roll up, commit."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from spark_jobs import facts, rollup
from spark_jobs.affected import affected_hours
from spark_jobs.decode import BROKEN, decode_events
from spark_jobs.lake_frames import read_events, write_hours
from spark_jobs.lake_writer import LakeWriter
from spark_jobs.offsets import QueueRange, next_offsets
from spark_jobs.progress import Progress, Stage
from spark_jobs.source import RocketMQDataSource
from spark_jobs.watch import watching
from trace.lake import (
    EVENTS,
    HourIndex,
    Parts,
    Snapshot,
    extended_parts,
    hour_of,
    replaced_parts,
)

if TYPE_CHECKING:
    from spark_jobs.ingest import Ingest, Result

LOOKBACK_HOURS: Final = 24
"""So old may be the send, or an earlier attempt, of a message that is consumed now."""
LOOKAHEAD_HOURS: Final = 2
"""So late may the end of an attempt be told."""

AllParts = dict[str, dict[HourIndex, list[int]]]


def ingest_round(
    spark: SparkSession,
    job: "Ingest",
    writer: LakeWriter,
    before: Snapshot,
    ranges: Sequence[QueueRange],
    progress: Progress,
    result: "Result",
    now_ms: int,
) -> Snapshot:
    """Do the round and add what it did to `result`; returns what is committed then."""
    step = _Round(spark, job, writer, before, ranges, progress)
    progress.enter(Stage.READ)
    records, broken = step.write_events()
    progress.enter(Stage.ROLLUP)
    hours = step.write_rollups()
    progress.enter(Stage.COMMIT)
    rows, lost = sum(part.count for part in ranges), sum(part.lost for part in ranges)
    snapshot = msgspec.structs.replace(
        before,
        topic=job.topic,
        run=step.run,
        committed_ms=now_ms,
        offsets=merged(before.offsets, next_offsets(ranges)),
        parts=not_before(step.parts, hour_of(now_ms) - job.retain_days * 24),
        messages=before.messages + rows,
        records=before.records + records,
        broken_records=before.broken_records + broken,
        lost_messages=before.lost_messages + lost,
    )
    writer.lake.commit(snapshot)
    result.add(rows=rows, records=records, broken=broken, lost=lost, hours=len(hours))
    return snapshot


class _Round:
    """What the parts of a round share."""

    def __init__(
        self,
        spark: SparkSession,
        job: "Ingest",
        writer: LakeWriter,
        before: Snapshot,
        ranges: Sequence[QueueRange],
        progress: Progress,
    ) -> None:
        self.run = writer.next_run()
        self.parts: AllParts = {name: dict(hours) for name, hours in before.parts.items()}
        self._spark = spark
        self._job = job
        self._lake = writer.lake
        self._before = before
        self._ranges = ranges
        self._progress = progress

    def write_events(self) -> tuple[int, int]:
        """Read the ranges and write their events; returns records and how many are broken."""
        rows_after = self._progress.rows + sum(part.count for part in self._ranges)
        counts = Observation()
        events = decode_events(self._messages()).observe(
            counts,
            F.count("*").alias("records"),
            F.count_if(F.col("kind") == BROKEN).alias("broken"),
        )
        with watching(self._spark, self._progress):
            written = write_hours(events, self._lake, EVENTS, self.run, "event_ms")
        self._progress.rows = rows_after
        self.parts[EVENTS] = extended_parts(self.parts.get(EVENTS, {}), self.run, written)
        return counts.get["records"], counts.get["broken"]

    def write_rollups(self) -> list[HourIndex]:
        """Make the rollups of all affected hours again; returns those hours."""
        with watching(self._spark, self._progress, share=(0, 0.3)):
            hours = self._affected_hours()
        events = self._events(self.parts[EVENTS], _around(hours))
        if events is None:
            return []
        sends = rollup.in_hours(facts.sends(events), "sent_ms", hours).persist()
        deliveries = rollup.in_hours(facts.deliveries(events), "start_ms", hours).persist()
        outputs = (
            ("minute", rollup.per_minute(sends, deliveries), "minute_ms"),
            ("latency", rollup.latency_histograms(sends, deliveries), "minute_ms"),
            ("slow", rollup.slowest(deliveries), "start_ms"),
        )
        for place, (name, frame, time_column) in enumerate(outputs):
            share = (0.3 + 0.7 * place / len(outputs), 0.3 + 0.7 * (place + 1) / len(outputs))
            with watching(self._spark, self._progress, share=share):
                written = write_hours(frame, self._lake, name, self.run, time_column)
            known = self.parts.get(name, {})
            self.parts[name] = replaced_parts(known, self.run, written, redone=hours)
        sends.unpersist()
        deliveries.unpersist()
        return hours

    def _messages(self) -> DataFrame:
        self._spark.dataSource.register(RocketMQDataSource)
        starting = next_offsets(replace(part, end=part.start) for part in self._ranges)
        return (
            self._spark.read.format("rocketmq")
            .option("namesrv", self._job.namesrv)
            .option("topic", self._job.topic)
            .option("startingOffsets", json.dumps(starting))
            .option("endingOffsets", json.dumps(next_offsets(self._ranges)))
            .option("maxRowsPerPartition", self._job.rows_per_task)
            .option("retryTimeoutMs", self._job.retry_timeout_ms)
            .option("failOnDataLoss", "false")
            .option("columns", "broker_name,queue_id,queue_offset,store_timestamp,body")
            .load()
        )

    def _affected_hours(self) -> list[HourIndex]:
        runs_by_hour = self.parts[EVENTS]
        new_parts = {hour: [self.run] for hour, runs in runs_by_hour.items() if self.run in runs}
        new = self._events(new_parts, new_parts)
        if new is None:
            return []
        older = self._events(self._before.parts.get(EVENTS, {}), _around(new_parts))
        return sorted(row.hour for row in affected_hours(new, older).collect())

    def _events(self, parts: Parts, hours: Iterable[HourIndex]) -> DataFrame | None:
        return read_events(self._spark, self._lake, parts, hours)


def _around(hours: Iterable[HourIndex]) -> set[HourIndex]:
    """The hours whose events may say something about what happened in `hours`."""
    return {
        hour + distance
        for hour in hours
        for distance in range(-LOOKBACK_HOURS, LOOKAHEAD_HOURS + 1)
    }


def not_before(parts: AllParts, oldest: HourIndex) -> AllParts:
    """The parts without the hours before `oldest`."""
    return {
        name: {hour: runs for hour, runs in sorted(hours.items()) if hour >= oldest}
        for name, hours in parts.items()
    }


def merged(
    before: dict[str, dict[int, int]], reached: dict[str, dict[int, int]]
) -> dict[str, dict[int, int]]:
    """A broker or queue that is away for now keeps its place."""
    return before | {name: before.get(name, {}) | queues for name, queues in reached.items()}
