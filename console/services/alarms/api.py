"""REST resources of alarms and silences."""

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.paging import cut, list_parameters
from console.api.views import ClusterResource
from console.audit.recording import audited
from console.frame.access import Need
from console.frame.tables import TableQuery
from console.services.alarms import episodes, silences
from console.services.alarms.models import Delivery
from console.services.alarms.rules import rule_numbered
from console.services.alarms.scope import check_scope
from console.services.alarms.serializers import (
    KIND_CHOICES,
    AcknowledgeSerializer,
    AlarmDetailSerializer,
    AlarmPageSerializer,
    AlarmSerializer,
    SilenceFields,
    SilenceListSerializer,
    SilenceSerializer,
)
from console.services.findings.finding import Severity

CHOICES = {
    "state": ["open", *episodes.SHOWN],
    "severity": [each.value for each in Severity],
    "kind": KIND_CHOICES,
}
DELIVERIES_SHOWN_MAX = 100


class AlarmList(ClusterResource):
    @extend_schema(
        parameters=list_parameters(
            episodes.COLUMNS,
            *(OpenApiParameter(name, OpenApiTypes.STR, enum=CHOICES[name]) for name in CHOICES),
            OpenApiParameter("object", OpenApiTypes.STR, description="Name of the object."),
        ),
        responses=AlarmPageSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Alarms of the cluster: the open ones by default, or those of a state.

        `resolved` has the newest 2,000.
        """
        params = request.query_params
        for name, known in CHOICES.items():
            if params.get(name) and params[name] not in known:
                text = _("Expected one of: %(known)s") % {"known": ", ".join(known)}
                raise ValidationError({name: [text]})
        wanted = params.get("state") or "open"
        read = episodes.resolved_rows if wanted == "resolved" else episodes.open_rows
        rows = [
            row
            for row in read(cluster)
            if wanted in ("open", row.shown)
            and params.get("severity", "") in ("", row.episode.severity)
            and params.get("kind", "") in ("", row.episode.kind)
            and params.get("object", "") in ("", row.episode.name)
        ]
        found = TableQuery.read(params, episodes.COLUMNS, default="severity").matching(rows)
        part = cut(params, episodes.COLUMNS, found, default="severity")
        body = {
            "items": alarm_bodies(part.rows),
            "total": part.total,
            "next_cursor": part.next_cursor,
        }
        return Response(body)


class AlarmOne(ClusterResource):
    @extend_schema(responses=AlarmDetailSerializer)
    def get(self, request: Request, cluster: str, number: int) -> Response:
        """One alarm with its notices, the newest first."""
        return Response(detail_body(episodes.episode_numbered(cluster, number)))


class AlarmAcknowledgement(ClusterResource):
    actions = {"put": "alarm.acknowledge"}

    @extend_schema(request=AcknowledgeSerializer, responses=AlarmDetailSerializer)
    def put(self, request: Request, cluster: str, number: int) -> Response:
        """Acknowledge a firing alarm: who works on it, with a note."""
        episode = episodes.episode_numbered(cluster, number)
        serializer = AcknowledgeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        note = serializer.validated_data["note"]
        with audited(request, "alarm.acknowledge", cluster=cluster, target=str(episode)) as entry:
            episodes.acknowledge(episode, request.user, note)
            entry.after = {"note": note}
        return Response(detail_body(episodes.episode_numbered(cluster, number)))


class AlarmSilenceList(ClusterResource):
    actions = {"post": "alarm-silence.create"}

    @extend_schema(responses=SilenceListSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Silences of the cluster and of all clusters: those that have not ended first."""
        rows = silences.silences_of(cluster)
        return Response({"items": SilenceSerializer(rows, many=True).data})

    @extend_schema(request=SilenceFields, responses={201: SilenceSerializer})
    def post(self, request: Request, cluster: str) -> Response:
        """Silence alarms for a time: no firing notices; pages still show the alarms.

        An alarm that still fires at the end of the silence sends its notice then.
        """
        serializer = SilenceFields(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data
        rule = fields["rule"]
        values = {
            **fields,
            "cluster": "" if fields["all_clusters"] else cluster,
            "rule": None if rule is None else rule_numbered(cluster, rule),
        }
        check_scope(request, Need.WRITE, values["cluster"])
        with audited(request, "alarm-silence.create", cluster=cluster) as entry:
            silence = silences.create(values, request.user)
            entry.target, entry.after = str(silence.pk), silences.state_of(silence)
        return Response(SilenceSerializer(silence).data, status.HTTP_201_CREATED)


class AlarmSilenceOne(ClusterResource):
    actions = {"delete": "alarm-silence.end"}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, cluster: str, number: int) -> Response:
        """End a silence now."""
        silence = silences.silence_numbered(cluster, number)
        check_scope(request, Need.WRITE, silence.cluster)
        before = silences.state_of(silence)
        with audited(
            request, "alarm-silence.end", cluster=cluster, target=str(number), before=before
        ):
            silences.end(silence)
        return Response(status=status.HTTP_204_NO_CONTENT)


def alarm_bodies(rows: Iterable[episodes.Row]) -> list[dict[str, Any]]:
    """Return the JSON of episodes, by one serializer: a serializer copies all fields when made."""
    return list(AlarmSerializer([_Shown(row) for row in rows], many=True).data)


class _Shown:
    """A row under the names of the serializer."""

    def __init__(self, row: episodes.Row, deliveries: Any = ()) -> None:
        self.episode, self.silence = row.episode, row.silence
        self.state, self.text = row.shown, row.text
        self.deliveries = deliveries


def detail_body(episode: Any) -> dict[str, Any]:
    """Return the JSON of an episode with its deliveries."""
    deliveries = deliveries_of(episode)
    return AlarmDetailSerializer(_Shown(episodes.row_of(episode), deliveries)).data


def deliveries_of(episode: Any) -> list[Delivery]:
    """Return the notices of an episode, the newest first."""
    rows = Delivery.objects.filter(notified__episode=episode).select_related("rule").order_by("-pk")
    return list(rows[:DELIVERIES_SHOWN_MAX])
