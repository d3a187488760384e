"""The jobs of the trace lake: Spark programs (`python -m spark_jobs …`), registered as kinds."""

from __future__ import annotations

import sys
from typing import Final

from django.conf import settings
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from console.jobs import kinds
from console.jobs.control import Control
from console.jobs.models import Job
from console.jobs.places import lake_of, spark_run_dir
from console.jobs.program import run_program
from console.jobs.reports import Done
from console.jobs.states import State

INGEST: Final = "ingest"

STAGES: Final = {
    "wait": _("Waiting for another job of the lake"),
    "plan": _("Looking what is new"),
    "start": _("Starting Spark"),
    "read": _("Reading and decoding"),
    "rollup": _("Rolling up"),
    "commit": _("Committing"),
}
OUTPUTS: Final = {
    "records": _("Trace records"),
    "broken": _("Could not be decoded"),
    "lost": _("Expired in the broker before they could be read"),
    "hours": _("Hours of the lake made anew"),
    "seconds": _("Seconds"),
}


def register_kinds() -> None:
    kinds.register(
        INGEST,
        run_spark,
        title=_("Read traces"),
        about=_(
            "Brings what clients have written to the trace topic since the last time into the lake."
        ),
        unit=_("messages"),
        by_hand=True,
        uses_spark=True,
        stages=STAGES,
        outputs=OUTPUTS,
    )


def run_spark(job: Job, control: Control) -> Done:
    """The work of all Spark jobs: the program of the same name, alone with the lake."""
    while _others_at_work(job):
        control.moved(stage="wait")
        control.wait(1.0)
    namesrv = settings.CONSOLE_CLUSTERS.get(job.cluster, "")
    job.inputs = {**job.inputs, "namesrv": namesrv, "lake": str(lake_of(job.cluster))}
    job.save(update_fields=["inputs"])
    return run_program(job, control, command_of(job.kind, job.cluster, namesrv))


def _others_at_work(job: Job) -> bool:
    """Whether a Spark job of the cluster runs that was there before."""
    names = [kind.name for kind in kinds.known() if kind.uses_spark]
    others = Job.objects.filter(cluster=job.cluster, kind__in=names, state=State.RUNNING)
    first = Q(started_at__lt=job.started_at) | Q(started_at=job.started_at, pk__lt=job.pk)
    return others.filter(first).exists()


def command_of(kind: str, cluster: str, namesrv: str) -> list[str]:
    """The program that does a kind of job."""
    master = ["--master", settings.SPARK_MASTER] if settings.SPARK_MASTER else []
    source = ["--namesrv", namesrv] if kind == INGEST else []
    return [
        *(sys.executable, "-m", "spark_jobs", kind),
        *source,
        *("--lake", str(lake_of(cluster))),
        *("--run-dir", str(spark_run_dir())),
        *master,
        "--progress-json",
        "--until-stdin-closes",
    ]
