"""The job that writes a list into a file: all rows of the list, or as many as were asked for."""

from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

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
    cluster: Cluster, wish: dict[str, Any], *, by: AbstractBaseUser | AnonymousUser | None
) -> Job:
    """Start an export of a table. Raises AlreadyActive while the table has one."""
    return tasks.start(cluster.name, KIND, scope=wish["table"], inputs=wish, by=by)


def work(job: Job, control: "Control") -> Done:
    """Write the file of a job. A cluster that does not answer for a moment is asked again."""
    wish = job.inputs
    table = tables.find(wish["table"])
    if table is None:
        raise JobFailed(f"no table {wish['table']!r}")
    cluster = gateway.cluster(job.cluster)
    found = with_retries(control, lambda: found_whole(cluster, table, wish))
    most = min(wish["most"], found.total)
    name = f"{table.name}.{wish['format']}"
    with files.writing(job.pk, name) as file:
        rows, silent = _written(table, found, wish["format"], most, file, control)
    return Done(
        done=rows,
        outputs={
            "rows": rows,
            "left_out": found.total - rows,
            "not_looked_at": found.left_out,
            "silent_brokers": len(silent),
        },
    )


def found_whole(cluster: Cluster, table: Table, wish: dict[str, Any]) -> Found:
    """A broker whose rows are missing is an error, for a file must not have holes."""
    found = table.found(cluster, Asked(wish["q"], wish["filter"], wish["ordering"]))
    if found.failures:
        raise GatewayError(found.failures[0].reason, failures=found.failures)
    return found


def _written(
    table: Table, found: Found, kind: str, most: int, file: Any, control: "Control"
) -> tuple[int, set[str]]:
    """How many rows were written, and the brokers that did not tell some number of them."""
    rows, silent = 0, set()
    with writer(kind, file, table.all_columns, cut=tables.CUT) as writing:
        parts = iter(found.parts)
        while rows < most and (part := _next(parts)) is not None:
            for row in part.rows[: most - rows]:
                writing.write(table.row(row))
                rows += 1
            silent |= {each.broker for each in part.failures}
            control.moved(stage="read", done=rows, total=most, outputs={"rows": rows})
            control.check()
    return rows, silent


def _next(parts: Any) -> tables.Part | None:
    try:
        return next(parts, None)
    except GatewayError as failure:
        raise JobFailed(str(failure.detail)) from failure
