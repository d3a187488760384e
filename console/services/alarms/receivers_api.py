"""REST resources of the receivers of alarms."""

from typing import Any

from django.core.exceptions import ValidationError as WrongValues
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.serializers import patched
from console.api.views import IF_MATCH, ClusterResource, expected_etag, tagged
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.gateway import now_ms
from console.gateway.changes import check_unchanged
from console.services.alarms import receivers
from console.services.alarms.models import Receiver
from console.services.alarms.scope import ALL_CLUSTERS, check_scope
from console.services.alarms.sending.content import test_notice
from console.services.alarms.sending.http import SendFailed
from console.services.alarms.sending.send import send
from console.services.alarms.serializers import (
    ReceiverFields,
    ReceiverListSerializer,
    ReceiverSerializer,
    TestOutcomeSerializer,
)


class AlarmReceiverList(ClusterResource):
    actions = {"post": "alarm-receiver.create"}

    @extend_schema(responses=ReceiverListSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Receivers of notices, for all clusters; without secrets."""
        rows = Receiver.objects.order_by("name")
        return Response({"items": ReceiverSerializer(rows, many=True).data})

    @needs(Need.ADMIN)
    @extend_schema(request=ReceiverFields, responses={201: ReceiverSerializer})
    def post(self, request: Request, cluster: str) -> Response:
        """Create a receiver. The URL and the secret are stored encrypted and never returned."""
        draft = read(request.data)
        check_scope(request, Need.ADMIN, ALL_CLUSTERS)
        about: dict[str, Any] = {"cluster": cluster, "target": draft.name}
        with audited(request, "alarm-receiver.create", **about) as entry:
            receiver = saved(None, draft, request.user, None)
            entry.after = ReceiverSerializer(receiver).data
        location = reverse("api-alarm-receiver", kwargs={"cluster": cluster, "number": receiver.pk})
        body, version = ReceiverSerializer(receiver).data, receivers.version(receiver)
        return tagged(body, version, status.HTTP_201_CREATED, Location=location)


class AlarmReceiverOne(ClusterResource):
    actions = {"patch": "alarm-receiver.update", "delete": "alarm-receiver.delete"}

    @extend_schema(responses=ReceiverSerializer)
    def get(self, request: Request, cluster: str, number: int) -> Response:
        """One receiver, without secrets."""
        receiver = receivers.receiver_numbered(number)
        return tagged(ReceiverSerializer(receiver).data, receivers.version(receiver))

    @needs(Need.ADMIN)
    @extend_schema(
        parameters=[IF_MATCH], request=ReceiverFields(partial=True), responses=ReceiverSerializer
    )
    def patch(self, request: Request, cluster: str, number: int) -> Response:
        """Change fields of a receiver; another host needs the secret again."""
        receiver = receivers.receiver_numbered(number)
        # The body gets the other fields of this version, so no other version may be replaced.
        version = receivers.version(receiver)
        check_unchanged(expected_etag(request), version)
        before = ReceiverSerializer(receiver).data
        draft = read(patched(ReceiverFields, before, request.data))
        check_scope(request, Need.ADMIN, ALL_CLUSTERS)
        about: dict[str, Any] = {"cluster": cluster, "target": receiver.name, "before": before}
        with audited(request, "alarm-receiver.update", **about) as entry:
            changed = saved(receiver, draft, request.user, version)
            entry.after = ReceiverSerializer(changed).data
        return tagged(ReceiverSerializer(changed).data, receivers.version(changed))

    @needs(Need.ADMIN)
    @extend_schema(parameters=[IF_MATCH], responses={204: None})
    def delete(self, request: Request, cluster: str, number: int) -> Response:
        """Delete a receiver; its waiting notices are not sent."""
        receiver, expected = receivers.receiver_numbered(number), expected_etag(request)
        check_unchanged(expected, receivers.version(receiver))
        check_scope(request, Need.ADMIN, ALL_CLUSTERS)
        about: dict[str, Any] = {
            "target": receiver.name,
            "before": ReceiverSerializer(receiver).data,
        }
        with audited(request, "alarm-receiver.delete", cluster=cluster, **about):
            receivers.delete(receiver, expected)
        return Response(status=status.HTTP_204_NO_CONTENT)


@needs(Need.ADMIN)
class AlarmReceiverTest(ClusterResource):
    actions = {"post": "alarm-receiver.test"}

    @extend_schema(request=None, responses=TestOutcomeSerializer)
    def post(self, request: Request, cluster: str, number: int) -> Response:
        """Send a test notice now, and return what the receiver answered."""
        receiver = receivers.receiver_numbered(number)
        check_scope(request, Need.ADMIN, ALL_CLUSTERS)
        return Response(tested(request, cluster, receiver))


def tested(request: Any, cluster: str, receiver: Receiver) -> dict[str, str]:
    """Send a test notice; return the outcome, which the audit row has, too."""
    at_ms = now_ms()
    about: dict[str, Any] = {"cluster": cluster, "target": receiver.name}
    with audited(request, "alarm-receiver.test", **about) as entry:
        try:
            answer = send(test_notice(receiver.language, cluster, at_ms), receiver, at_ms)
        except SendFailed as failure:
            entry.failed(failure)
            return {"result": "failed", "detail": failure.result.text}
    return {"result": "sent", "detail": answer.text}


def read(data: Any) -> receivers.Draft:
    """Return the draft of a body. Raises ValidationError."""
    serializer = ReceiverFields(data=data)
    serializer.is_valid(raise_exception=True)
    return receivers.Draft(**serializer.validated_data)


def saved(
    receiver: Receiver | None, draft: receivers.Draft, user: Any, expected: str | None
) -> Receiver:
    try:
        return receivers.save(receiver, draft, user, expected)
    except WrongValues as wrong:
        raise ValidationError(wrong.message_dict) from wrong
