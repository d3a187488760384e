"""Discarded half messages as list rows, and the audited resumption of their checks."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from rest_framework.request import Request

from console.audit.recording import audited
from console.gateway import Answer, Cluster, NotFound
from console.gateway.messages.browse import MessagePage, browse
from console.gateway.messages.stored import MessageRef
from console.gateway.pending.half import Resumption, resume_checks
from core_broker.message.properties import PROPERTY_PRODUCER_GROUP, PROPERTY_REAL_TOPIC
from core_broker.message.topics import TRANS_CHECK_MAX_TIME_TOPIC
from core_broker.message.transactions import times_checked

CHECK_ACTION = "halfmessage.check"


@dataclass(frozen=True, slots=True)
class Discarded:
    """A discarded half message."""

    ref: MessageRef

    @property
    def real_topic(self) -> str:
        return self.ref.message.properties.get(PROPERTY_REAL_TOPIC, "")

    @property
    def producer_group(self) -> str:
        return self.ref.message.properties.get(PROPERTY_PRODUCER_GROUP, "")

    @property
    def checks(self) -> int:
        return times_checked(self.ref.message.properties)


def discarded_page(cluster: Cluster, cursor: str | None, limit: int) -> Answer[MessagePage] | None:
    """A page of discarded half messages, newest first; None before the first discard."""
    try:
        return cluster.ask(browse, TRANS_CHECK_MAX_TIME_TOPIC, None, None, cursor, limit)
    except NotFound:
        return None


def check_again(
    request: HttpRequest | Request, cluster: Cluster, ids: Sequence[str]
) -> tuple[Resumption, ...]:
    """Resume the checks of discarded half messages, with an audit row."""
    target = TRANS_CHECK_MAX_TIME_TOPIC
    with audited(request, CHECK_ACTION, cluster=cluster.name, target=target) as entry:
        entry.after = {"ids": list(ids)}
        outcomes = cluster.do(resume_checks, tuple(ids))
        entry.outcomes(outcomes)
    return outcomes
