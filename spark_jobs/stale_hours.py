"""The jobs rollup, edges and slow: tables made from the lake's events, nothing read from a cluster.

Without hours they make what is stale. With hours they make exactly these again, which is how late
data or a new rule gets into old hours; the result does not depend on how often they run.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from core_broker.errors import ClientError
from spark_jobs.ingest import Clock, Result, StartSpark
from spark_jobs.lake_writer import only_writer, sweep
from spark_jobs.progress import Progress, Stage
from trace.lake import EDGES, LATENCY, MINUTE, SLOW, HourIndex, Lake

SHORT_RUN_RECORDS_MAX: Final = 100_000
HOURS_ASKED_MAX: Final = 24 * 366

#: Which tables each job makes; `ingest` makes all of them.
TABLES_OF_JOB: Final[Mapping[str, tuple[str, ...]]] = {
    "rollup": (MINUTE, LATENCY),
    "edges": (EDGES,),
    "slow": (SLOW,),
}


@dataclass(frozen=True, slots=True)
class Derive:
    """Which tables to make, and of which hours."""

    lake: Path
    datasets: tuple[str, ...]
    #: None: those that are stale.
    hours: Collection[HourIndex] | None = None


def run_derive(job: Derive, progress: Progress, start_spark: StartSpark, now_ms: Clock) -> Result:
    """Run the job to its end. Raises LakeError when another job holds the lake."""
    from spark_jobs.derive import chunks_to_make, derive

    result = Result()
    progress.enter(Stage.PLAN)
    with only_writer(Lake(job.lake)) as writer:
        snapshot = writer.lake.snapshot()
        sweep(writer.lake, snapshot)
        chunks = chunks_to_make(snapshot, job.datasets, job.hours)
        if not chunks:
            result.note = "No hour has changed." if job.hours is None else "No events in this time."
            return result
        progress.enter(Stage.START)
        with start_spark(snapshot.records <= SHORT_RUN_RECORDS_MAX) as spark:
            progress.spark_is_at(spark.sparkContext.uiWebUrl)
            derive(spark, writer, snapshot, job.datasets, chunks, progress, now_ms)
        result.hours = sum(map(len, chunks))
    return result


def hours_between(begin: str, end: str) -> range:
    """The hours from `begin` up to and with `end`, written like 2026-11-05T13, in UTC."""
    first, last = _hour("--from", begin), _hour("--to", end)
    if last < first:
        raise ClientError(f"--to {end} lies before --from {begin}.")
    if last - first >= HOURS_ASKED_MAX:
        raise ClientError(f"--from {begin} --to {end} are more than {HOURS_ASKED_MAX} hours.")
    return range(first, last + 1)


def _hour(option: str, text: str) -> HourIndex:
    wrong = f"{option} must be an hour like 2026-11-05T13, not {text[:40]!r}."
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d", text, re.ASCII):
        raise ClientError(wrong)
    try:
        return int(datetime.strptime(text, "%Y-%m-%dT%H").replace(tzinfo=UTC).timestamp()) // 3600
    except (ValueError, OverflowError):
        raise ClientError(wrong) from None
