"""The job that writes a list into a file: all rows, or the first rows up to a maximum."""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from console.frame.access import Need
from console.frame.masking import mask_of_everybody
from console.frame.permissions import Target
from console.gateway import Cluster, GatewayError, gateway
from console.services.exports import tables
from console.services.exports.files import writer
from console.services.exports.tables import Asked, Found, Table
from console.services.jobs import files, tasks
from console.services.jobs.control import JobFailed
from console.services.jobs.models import Job
from console.services.jobs.reports import Done
from console.services.jobs.retry import with_retries

if TYPE_CHECKING:
    from console.services.jobs.control import Control

KIND: Final = "export-table"


def begin(
    cluster: Cluster, inputs: dict[str, Any], *, by: AbstractBaseUser | AnonymousUser | None
) -> Job:
    """Start an export of a list. Raises AlreadyActive while an export of the list is active."""
    return tasks.start(cluster.name, KIND, scope=inputs["table"], inputs=inputs, by=by)


def work(job: Job, control: "Control") -> Done:
    """Write the file of a job; requests to the cluster are retried."""
    inputs = job.inputs
    table = tables.find(inputs["table"])
    if table is None:
        raise JobFailed(f"the console has no list {inputs['table']!r}")
    cluster = gateway.cluster(job.cluster)
    cluster.mask = partial(mask_of_everybody, job.cluster)
    listing = with_retries(control, lambda: complete_rows(cluster, table, inputs))
    most = min(inputs["most"], listing.total)
    name = f"{table.name}.{inputs['format']}"
    with files.writing(job.pk, name) as file:
        rows, silent = _written(table, listing, inputs["format"], most, file, control)
    return Done(
        done=rows,
        outputs={
            "rows": rows,
            "left_out": listing.total - rows,
            "not_looked_at": listing.left_out,
            "silent_brokers": len(silent),
        },
    )


def reach(job: Job) -> tuple[tuple[Need, Target], ...]:
    """An export has the whole list."""
    table = tables.find(job.scope)
    return ((Need.READ, Target("exports" if table is None else table.resource, job.cluster)),)


def complete_rows(cluster: Cluster, table: Table, inputs: dict[str, Any]) -> Found:
    """All rows of the list. Raises GatewayError when rows of a broker are missing."""
    listing = table.found(cluster, Asked(inputs["q"], inputs["filter"], inputs["ordering"]))
    if listing.failures:
        raise GatewayError(listing.failures[0].reason, failures=listing.failures)
    return listing


def _written(
    table: Table, listing: Found, kind: str, most: int, file: Any, control: "Control"
) -> tuple[int, set[str]]:
    """Write the rows; returns the row count and the brokers with missing metrics."""
    rows, silent = 0, set()
    with writer(kind, file, table.all_columns, cut=tables.CUT) as writing:
        parts = iter(listing.parts)
        while rows < most and (part := _next(parts)) is not None:
            for row in part.rows[: most - rows]:
                writing.write(table.row(row))
                rows += 1
            silent |= {failure.broker for failure in part.failures}
            control.moved(stage="read", done=rows, total=most, outputs={"rows": rows})
            control.check()
    return rows, silent


def _next(parts: Any) -> tables.Part | None:
    try:
        return next(parts, None)
    except GatewayError as failure:
        raise JobFailed(str(failure.detail)) from failure
