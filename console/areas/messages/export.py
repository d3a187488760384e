"""Exports of messages as jobs: one file with the messages of a list.

The job reads the same pages as the list, newest message first. Messages stored after the start of
the job are not exported.
"""

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from console.areas.messages.export_files import COLUMNS, CUT, row_of
from console.frame.access import Need, may
from console.frame.masking import RESOURCE, mask_of_everybody, mask_of_job, seen_by
from console.frame.permissions import Target
from console.gateway import Cluster, GatewayError, gateway
from console.gateway.messages.browse import MessagePage, browse
from console.gateway.messages.filters import BodyTest, MessageFilter
from console.services.exports.files import writer
from console.services.jobs import files, tasks
from console.services.jobs.models import Job
from console.services.jobs.reports import Done
from console.services.jobs.retry import with_retries
from console.services.schemas.stored import decoder_for

if TYPE_CHECKING:
    from console.services.jobs.control import Control

KIND: Final = "export"
PAGE_ROWS: Final = 200
NAME_CHARS_MAX: Final = 80
#: Input of a job: the topics that the user saw unmasked (`console.frame.masking`).
UNMASKED: Final = "unmasked"


def begin(
    cluster: Cluster, params: dict[str, Any], *, by: AbstractBaseUser | AnonymousUser | None
) -> Job:
    """Start an export; `params` are the fields of `ExportForm`. Raises NotFound for an unknown
    topic, FilterError for an invalid filter, AlreadyActive while an export of the topic runs."""
    _page(cluster, params, None, 1)
    target = Target(RESOURCE, cluster.name, params["topic"])
    seen = seen_by(by, cluster.name) if may(by, Need.UNMASKED, target) else ()
    inputs = {**params, UNMASKED: seen}
    return tasks.start(cluster.name, KIND, scope=params["topic"], inputs=inputs, by=by)


def work(job: Job, control: "Control") -> Done:
    """Write the file of a job. Requests to an unreachable cluster are retried."""
    params = job.inputs
    cluster = gateway.cluster(job.cluster)
    cluster.mask = partial(mask_of_job, job.cluster, params.get(UNMASKED, ()))
    kind, most = params["format"], params["most"]
    decoder = decoder_for(cluster)
    rows = scanned = 0
    cursor: str | None = None
    name = f"{_file_stem(params['topic'])}.{kind}"
    with files.writing(job.pk, name) as file, writer(kind, file, COLUMNS, cut=CUT) as writing:
        while True:
            page = with_retries(control, partial(_page, cluster, params, cursor, PAGE_ROWS))
            for ref in page.rows[: most - rows]:
                writing.write(row_of(ref, decoder))
                rows += 1
            scanned += page.scanned
            cursor = page.next_cursor
            total = scanned + page.left
            is_filtered = bool(filter_of(params))
            control.moved(
                stage="read",
                done=scanned,
                total=total if is_filtered else min(total, most),
                outputs={"rows": rows},
            )
            control.check()
            if cursor is None or rows >= most:
                break
    return Done(done=scanned, outputs={"rows": rows, "left_out": page.left if cursor else 0})


def reach(job: Job) -> tuple[tuple[Need, Target], ...]:
    """An export has the bodies of a topic's messages; a file with unmasked fields is for those who
    may see the fields."""
    target = Target(RESOURCE, job.cluster, job.scope)
    unmasked = job.inputs.get(UNMASKED) if mask_of_everybody(job.cluster) else None
    return ((Need.WRITE, target), *([(Need.UNMASKED, target)] if unmasked else []))


def filter_of(params: dict[str, Any]) -> MessageFilter:
    return MessageFilter(
        params["tags"], params["sql"], params["body"], BodyTest(params["body_test"])
    )


def _page(cluster: Cluster, params: dict[str, Any], cursor: str | None, limit: int) -> MessagePage:
    """A page of messages. A failed broker raises GatewayError: a file must not miss messages."""
    answer = cluster.ask(
        browse,
        params["topic"],
        params["begin_ms"],
        params["end_ms"],
        cursor,
        limit,
        params["queue"],
        filter_of(params).decoding(decoder_for(cluster)),
    )
    if answer.failures:
        raise GatewayError(answer.failures[0].reason, failures=answer.failures)
    return answer.value


def _file_stem(topic: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", topic).lstrip("._-")[:NAME_CHARS_MAX] or "messages"
