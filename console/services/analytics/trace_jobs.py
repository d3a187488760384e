"""Trace jobs: the Spark programs of the trace lake (`python -m spark_jobs …`) as job kinds."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from console.gateway import gateway
from console.services.analytics.day_rollups import write_day_rollups
from console.services.jobs import kinds
from console.services.jobs.control import Control
from console.services.jobs.models import Job
from console.services.jobs.paths import job_credentials, lake_of
from console.services.jobs.reports import Done, Progress
from console.services.jobs.spark import session_arguments
from console.services.jobs.spark_program import run_spark_program
from console.services.jobs.states import State

INGEST: Final = "ingest"
COMPACT: Final = "compact"
#: Progress after the Spark program, percent; the rest is the day rollups.
SUMMARIES_PERCENT: Final = 99.0

TITLES: Final[dict[str, tuple[Any, Any]]] = {
    INGEST: (
        _("Refresh analytics"),
        _("Reads the new records of the trace topic into the lake."),
    ),
    "rollup": (
        _("Rebuild aggregates"),
        _("Rebuilds the per-minute aggregates of all hours that changed since the last rollup."),
    ),
    "edges": (
        _("Rebuild topology"),
        _("Rebuilds the topology edges of all changed hours."),
    ),
    "slow": (
        _("Rebuild slowest messages"),
        _("Rebuilds the lists of slow and never-consumed messages of all changed hours."),
    ),
    COMPACT: (
        _("Compact the lake"),
        _("Merges small files, and deletes hours older than CONSOLE_LAKE_DAYS."),
    ),
}
STAGES: Final = {
    "wait": _("Waiting for another trace job"),
    "plan": _("Looking for new records"),
    "start": _("Starting Spark"),
    "read": _("Reading and decoding"),
    "rollup": _("Rolling up"),
    "compact": _("Compacting files"),
    "commit": _("Committing"),
    "summaries": _("Aggregating days"),
}
OUTPUTS: Final = {
    "records": _("Trace records"),
    "broken": _("Could not be decoded"),
    "lost": _("Expired in the broker before the job read them"),
    "hours": _("Hours rebuilt"),
    "files": _("Files"),
    "seconds": _("Seconds"),
    "days": _("Days aggregated"),
}


def register_kinds() -> None:
    for name, (title, about) in TITLES.items():
        kinds.register(
            name,
            run_spark,
            title=title,
            about=about,
            unit=_("messages") if name == INGEST else "",
            by_hand=True,
            uses_spark=True,
            stages=STAGES,
            outputs=OUTPUTS,
        )


def run_spark(job: Job, control: Control) -> Done:
    """Run the Spark program of the job kind, exclusively on the lake. A killed run leaves no
    committed files, so the next run needs no repair."""
    while _has_earlier_run(job):
        control.moved(stage="wait")
        control.wait(1.0)
    namesrv = settings.CONSOLE_CLUSTERS.get(job.cluster, "")
    cluster_inputs = {"namesrv": namesrv, "master": settings.SPARK_MASTER or "local[*]"}
    job.inputs = {**job.inputs, **cluster_inputs, "lake": str(lake_of(job.cluster))}
    job.save(update_fields=["inputs"])
    with _credentials(job) as file:
        arguments = arguments_of(job.kind, job.cluster, namesrv, file)
        done = run_spark_program(job, control, arguments)
    last = Progress(stage="summaries", percent=SUMMARIES_PERCENT, done=done.done, total=job.total)
    days = write_day_rollups(job.cluster, lambda: control.report(last))
    return Done(done=done.done, outputs={**done.outputs, "days": days}, note=done.note)


def _has_earlier_run(job: Job) -> bool:
    """True while a Spark job of the cluster that started earlier is running."""
    names = [kind.name for kind in kinds.known() if kind.uses_spark]
    others = Job.objects.filter(cluster=job.cluster, kind__in=names, state=State.RUNNING)
    earlier = Q(started_at__lt=job.started_at) | Q(started_at=job.started_at, pk__lt=job.pk)
    return others.filter(earlier).exists()


@contextmanager
def _credentials(job: Job) -> Iterator[Path | None]:
    """A private file with the keys that sign the job's requests to brokers; None without keys."""
    path = job_credentials(job.cluster)
    try:
        is_signing = job.kind == INGEST and gateway.cluster(job.cluster).save_credentials(path)
        yield path if is_signing else None
    finally:
        path.unlink(missing_ok=True)


def arguments_of(
    kind: str, cluster: str, namesrv: str, credentials: Path | None = None
) -> list[str]:
    """The command line of a job kind, after `python -m spark_jobs`."""
    source = ["--namesrv", namesrv] if kind == INGEST else []
    if kind == INGEST and (tls_file := settings.CONSOLE_CLUSTER_TLS_FILES.get(cluster)):
        source += ["--tls-config", tls_file]
    if credentials:
        source += ["--credentials", str(credentials)]
    retention = ["--retain-days", str(settings.LAKE_DAYS)] if kind in (INGEST, COMPACT) else []
    return [
        kind,
        *source,
        *retention,
        *("--lake", str(lake_of(cluster))),
        *session_arguments(),
        "--progress-json",
    ]
