"""Direct delivery of one dead letter to one consumer, recorded in the ledger."""

from dataclasses import replace
from uuid import uuid4

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.views import ClusterResource
from console.areas.deadletters.ledger import Person, person
from console.areas.deadletters.models import Resend
from console.areas.deadletters.views import dead_letter_crumbs
from console.areas.messages.direct import DirectResultSerializer, for_readers
from console.areas.messages.views import found_message
from console.audit.recording import audited
from console.frame.pages import ClusterPage
from console.gateway import Cluster
from console.gateway.dead_letters.direct import deliver_directly
from console.gateway.dead_letters.resend import Result
from console.gateway.messages.direct import DirectResult, ListenerResult
from console.gateway.messages.stored import view

DIRECT_ACTION = "deadletter.try"
#: Target of a direct delivery in the ledger.
TARGET = "consumer"


def deliver_to_consumer(
    request: HttpRequest | Request, cluster: Cluster, group: str, offset_msg_id: str
) -> DirectResult:
    """Deliver a dead letter to one consumer. The ledger records a success as a resend."""
    with audited(request, DIRECT_ACTION, cluster=cluster.name, target=group) as entry:
        result = cluster.do(deliver_directly, group, offset_msg_id)
        entry.after = {
            "letter": offset_msg_id.upper(),
            "client": result.client,
            "verdict": result.verdict.value,
        }
        letter = found_message(cluster.ask(view, offset_msg_id), offset_msg_id).message
        shown, reason = for_readers(cluster, letter, result)
        if result.verdict is not ListenerResult.SUCCESS:
            entry.failed(reason or result.verdict.value)
    recorded = replace(result, remark=reason)
    _record(cluster.name, group, offset_msg_id.upper(), recorded, request.user)
    return shown


def _record(
    cluster: str, group: str, dead_letter_id: str, result: DirectResult, by: Person
) -> None:
    took = result.verdict is ListenerResult.SUCCESS
    Resend.objects.create(
        cluster=cluster,
        group=group,
        offset_msg_id=dead_letter_id,
        died_ms=result.died_ms,
        batch=uuid4(),
        msg_id=result.msg_id,
        target=TARGET,
        result=Result.SENT if took else Result.FAILED,
        reason=result.remark or ("" if took else result.verdict.value),
        by=person(by),
    )


class TryPage(ClusterPage):
    """Direct delivery from the page of a dead letter, and its result."""

    template = "deadletters/direct_result.html"
    actions = {"post": DIRECT_ACTION}

    def get(
        self, request: HttpRequest, cluster: str, group: str, offset_msg_id: str
    ) -> HttpResponseBase:
        return redirect("deadletters:letter", self.cluster.name, group, offset_msg_id)

    def post(
        self, request: HttpRequest, cluster: str, group: str, offset_msg_id: str
    ) -> HttpResponse:
        result = deliver_to_consumer(request, self.cluster, group, offset_msg_id)
        title = _("Result of the direct delivery")
        return self.show(
            title=title,
            crumbs=dead_letter_crumbs(self.cluster.name, group, title),
            group=group,
            offset_msg_id=offset_msg_id,
            result=result,
        )


class DeadLetterTry(ClusterResource):
    actions = {"post": DIRECT_ACTION}

    @extend_schema(request=None, responses=DirectResultSerializer)
    def post(self, request: Request, cluster: str, group: str, offset_msg_id: str) -> Response:
        """Deliver a dead letter to one online consumer and return the result of the listener.

        A successful delivery consumes the message. 409 when no consumer is online.
        """
        result = deliver_to_consumer(request, self.cluster, group, offset_msg_id)
        return Response(DirectResultSerializer(result).data)
