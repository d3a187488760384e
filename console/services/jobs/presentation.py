"""Texts of jobs for pages, and the JSON of the live feed."""

from typing import Any

from django.utils.translation import gettext

from console.frame.formats import number
from console.services.jobs.models import Job


def title(job: Job) -> str:
    """The kind, in the language of the request."""
    return str(job.definition.title) if job.definition else job.kind


def stage_title(job: Job) -> str:
    """The current stage, in the language of the request."""
    titles = job.definition.stages if job.definition else {}
    return str(titles.get(job.stage, job.stage))


def reason(job: Job) -> str:
    """The error. Rows store English texts of the console; the result is translated."""
    return gettext(job.error) if job.error else ""


def results(job: Job) -> list[tuple[str, Any]]:
    """Titles and values of the outputs, without the note and without empty values."""
    titles = job.definition.outputs if job.definition else {}
    empty: tuple[Any, ...] = ("", None, [], {})
    outputs = {
        name: ", ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in job.outputs.items()
        if name != "note" and value not in empty
    }
    return [
        (str(titles.get(name, name)), number(value) if type(value) is int else value)
        for name, value in outputs.items()
    ]


def change_of(job: Job) -> dict[str, Any]:
    """The message of the live feed for a changed job."""
    return {
        "id": job.pk,
        "cluster": job.cluster,
        "kind": job.kind,
        "state": job.state,
        "stage": job.stage,
        "percent": job.percent,
        "scope": job.scope,
        "done": job.done,
        "total": job.total,
        "rate": job.rate,
        "detail": job.detail,
    }
