"""Labels that a deleted topic or group has left: another tool deleted it, and a new object of the
same name must not inherit them.

They go before this console creates the name anew, and in a task of the worker, for the rest.
Neither deletes labels of an object that a silent broker may have.
"""

import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any, Final

from celery import shared_task
from django.conf import settings

from console.gateway import Cluster, GatewayError, gateway, now_ms
from console.gateway.engine.questions import Question
from console.gateway.groups.listing import group_rows
from console.gateway.topics.listing import topic_rows
from console.resources import labels
from console.resources.models import Kind, LabelSet
from console.resources.resource import Resource

log = logging.getLogger(__name__)

#: Questions for all objects of the kinds with labels.
ROWS: Final[dict[Kind, Question[[], tuple[Any, ...]]]] = {
    Kind.TOPIC: topic_rows,
    Kind.GROUP: group_rows,
}
#: Age of labels that the task deletes: definitions label an object before its first client comes.
AGE_MS_MIN: Final = int(timedelta(hours=1) / timedelta(milliseconds=1))
#: Names per database query.
NAMES_AT_ONCE: Final = 500


def forget_before(
    cluster: Cluster, resource: Resource, name: str, settings: Any, brokers: Sequence[str] | None
) -> None:
    """Delete the labels of an earlier object, before a new one of this name is created. The other
    arguments are those of the creation."""
    if resource.kind in ROWS and labels.labels_of(cluster.name, resource.kind, name):
        # A command, also a dry run, drops the cached answers: the object may just have gone.
        cluster.do(resource.create, name, settings, brokers, dry_run=True)
        forget_absent(cluster, resource.kind, [name])


def forget_absent(cluster: Cluster, kind: Kind, names: Iterable[str]) -> int:
    """Delete the labels of the named objects that no broker has; return the number of these names.

    Does nothing while a broker does not answer; the console knows the brokers that are down.
    """
    labeled = set(labels.labels_by_name(cluster.name, kind, names))
    answer = cluster.ask(ROWS[kind]) if labeled else None
    if answer is None or answer.failures:
        return 0
    absent = labeled - {row.name for row in answer.value}
    for name in absent:
        labels.forget(cluster.name, kind, name)
    return len(absent)


@shared_task(name="console.resources.forget_left_labels")
def forget_on_schedule() -> None:
    for name in settings.CONSOLE_CLUSTERS:
        try:
            forget_old(gateway.cluster(name))
        except GatewayError as failure:
            log.info("labels of %s are not checked: %s", name, failure.detail)


def forget_old(cluster: Cluster) -> None:
    """Delete the labels of deleted objects that nobody changed within AGE_MS_MIN."""
    for kind in ROWS:
        old = LabelSet.objects.filter(
            cluster=cluster.name, kind=kind, changed_ms__lte=now_ms() - AGE_MS_MIN
        )
        names = iter(list(old.values_list("name", flat=True)))
        count = 0
        while part := list(islice(names, NAMES_AT_ONCE)):
            count += forget_absent(cluster, kind, part)
        if count:
            log.info("deleted the labels of %d deleted %ss of %s", count, kind, cluster.name)
