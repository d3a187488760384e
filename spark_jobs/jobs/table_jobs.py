"""The jobs rollup, edges, slow and rebuild: derive tables from events, without a cluster.

Without hours the jobs derive the stale hours, from stored facts. With hours they derive the facts
of these hours from the events again, for example after a changed rule; so does `rebuild`, which
rebuilds all hours when no hours are given. Repeated runs give the same result.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from core_broker.errors import ClientError
from spark_jobs.jobs.run import Result, Runtime
from spark_jobs.spark.lake_writer import delete_unreferenced, exclusive_writer
from spark_jobs.spark.progress import Stage
from trace.lake import CONSUMERS, DERIVED, EDGES, LATENCY, MINUTE, SLOW, UNTRACED, HourIndex, Lake

SHORT_RUN_RECORDS_MAX: Final = 100_000
HOURS_REQUESTED_MAX: Final = 24 * 366

#: Tables of each job; `ingest` derives all of them.
TABLES_OF_JOB: Final[Mapping[str, tuple[str, ...]]] = {
    "rollup": (MINUTE, LATENCY),
    "edges": (CONSUMERS, EDGES),
    "slow": (CONSUMERS, SLOW, UNTRACED),
    "rebuild": (CONSUMERS, *DERIVED),
}


@dataclass(frozen=True, slots=True)
class Derive:
    """Options of the job: tables and hours."""

    lake: Path
    datasets: tuple[str, ...]
    #: Hours to derive from the events; None means the stale hours, from their facts.
    hours: Collection[HourIndex] | None = None
    #: Whether None means all hours, from the events.
    is_rebuild: bool = False


def run_derive(job: Derive, runtime: Runtime) -> Result:
    """Run the job to its end. Raises LakeError when another job holds the lake."""
    from spark_jobs.jobs.derive import derive, present_hours, rebuild_facts, stale_hours

    result = Result()
    runtime.progress.enter(Stage.PLAN)
    with exclusive_writer(Lake(job.lake)) as writer:
        snapshot = writer.lake.snapshot()
        delete_unreferenced(writer.lake, snapshot)
        from_events = job.is_rebuild or job.hours is not None
        requested = present_hours(snapshot, job.hours) if from_events else []
        has_stale = snapshot.pending or stale_hours(snapshot, job.datasets)
        if not (requested if from_events else has_stale):
            result.note = "No events in this time." if from_events else "No hour has changed."
            return result
        is_short = snapshot.records <= SHORT_RUN_RECORDS_MAX
        with runtime.start(job, writer, result, is_short=is_short) as run:
            derive(run, rebuild_facts(run, snapshot, requested), job.datasets)
    return result


def hours_between(begin: str, end: str) -> range:
    """The hours from `begin` to `end` inclusive, in UTC, in the form 2026-11-05T13."""
    first, last = _hour("--from", begin), _hour("--to", end)
    if last < first:
        raise ClientError(f"--to {end} lies before --from {begin}.")
    if last - first >= HOURS_REQUESTED_MAX:
        raise ClientError(f"--from {begin} --to {end} are more than {HOURS_REQUESTED_MAX} hours.")
    return range(first, last + 1)


def _hour(option: str, text: str) -> HourIndex:
    wrong = f"{option} must be an hour like 2026-11-05T13, not {text[:40]!r}."
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d", text, re.ASCII):
        raise ClientError(wrong)
    try:
        return int(datetime.strptime(text, "%Y-%m-%dT%H").replace(tzinfo=UTC).timestamp()) // 3600
    except (ValueError, OverflowError):
        raise ClientError(wrong) from None
