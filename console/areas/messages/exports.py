"""Exports of messages as jobs: whatever a list of messages shows, in one file.

The export reads the pages of the same question as the list, newest message first. Messages that
are stored while it runs are not in it.
"""

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from console.areas.messages.export_files import COLUMNS, CUT, row_of
from console.gateway import Cluster, GatewayError, gateway
from console.gateway.messages.browse import MessagePage, browse
from console.gateway.messages.filters import BodyTest, MessageFilter
from console.services.exports.files import writer
from console.services.jobs import files, tasks
from console.services.jobs.models import Job
from console.services.jobs.reports import Done
from console.services.jobs.retry import with_retries

if TYPE_CHECKING:
    from console.services.jobs.control import Control

KIND: Final = "export"
PAGE_ROWS: Final = 200
NAME_CHARS_MAX: Final = 80


def begin(
    cluster: Cluster, wish: dict[str, Any], *, by: AbstractBaseUser | AnonymousUser | None
) -> Job:
    """Start an export; `wish` is what `ExportForm` asks for. Raises NotFound for a topic that is
    none, FilterError for a filter that cannot be used, AlreadyActive while the topic has one."""
    _page(cluster, wish, None, 1)
    return tasks.start(cluster.name, KIND, scope=wish["topic"], inputs=wish, by=by)


def work(job: Job, control: "Control") -> Done:
    """Write the file of a job. A cluster that does not answer for a moment is asked again."""
    wish = job.inputs
    cluster = gateway.cluster(job.cluster)
    kind, most = wish["format"], wish["most"]
    rows = scanned = 0
    cursor: str | None = None
    name = f"{_file_stem(wish['topic'])}.{kind}"
    with files.writing(job.pk, name) as file, writer(kind, file, COLUMNS, cut=CUT) as writing:
        while True:
            page = with_retries(control, partial(_page, cluster, wish, cursor, PAGE_ROWS))
            for ref in page.rows[: most - rows]:
                writing.write(row_of(ref))
                rows += 1
            scanned += page.scanned
            cursor = page.next_cursor
            total = scanned + page.left
            is_filtered = bool(filter_of(wish))
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


def filter_of(wish: dict[str, Any]) -> MessageFilter:
    return MessageFilter(wish["tags"], wish["sql"], wish["body"], BodyTest(wish["body_test"]))


def _page(cluster: Cluster, wish: dict[str, Any], cursor: str | None, limit: int) -> MessagePage:
    """One page; a broker that is missing from it is an error, for a file must not have holes."""
    answer = cluster.ask(
        browse,
        wish["topic"],
        wish["begin_ms"],
        wish["end_ms"],
        cursor,
        limit,
        wish["queue"],
        filter_of(wish),
    )
    if answer.failures:
        raise GatewayError(answer.failures[0].reason, failures=answer.failures)
    return answer.value


def _file_stem(topic: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", topic).lstrip("._-")[:NAME_CHARS_MAX] or "messages"
