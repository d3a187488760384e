"""REST resources of replays: preview, start, status, outcomes."""

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import read_flag
from console.api.paging import read_limit
from console.api.views import ClusterResource
from console.areas.deadletters import replays, serializers
from console.areas.deadletters.models import Replay
from console.areas.deadletters.replaying import START_ACTION, replay_of
from console.areas.deadletters.requests import filter_of, for_user, plan_of
from console.audit.recording import audited
from console.frame.masking import without_values
from console.gateway.dead_letters.search import count

REPLAYS_SHOWN = 50
NUMBER_DIGITS_MAX = 18


def replay_row(replay: Replay) -> dict[str, Any]:
    job = replays.job_of(replay)
    fields = ("group", "rate", "total", "looked_at", "matched")
    wish = without_values(replay.cluster, replay.wish)
    return {
        "id": replay.pk,
        "wish": {name: value for name, value in wish.items() if name != replays.UNMASKED},
        **{name: getattr(replay, name) for name in fields},
        **replays.counts(replay),
        "by": replay.by.get_username() if replay.by else None,
        "at": replay.at,
        "job": job.pk if job else None,
        "state": job.state if job else None,
    }


class ReplayList(ClusterResource):
    actions = {"post": START_ACTION}

    @extend_schema(responses=serializers.ReplayListSerializer)
    def get(self, request: Request, cluster: str, group: str) -> Response:
        """The newest replays of the group."""
        rows = Replay.objects.filter(cluster=self.cluster.name, group=group).select_related("by")
        found = [replay_row(each) for each in rows[:REPLAYS_SHOWN]]
        return Response(serializers.ReplayListSerializer({"items": found}).data)

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "dry_run", OpenApiTypes.BOOL, description="Preview: count matches, send nothing."
            )
        ],
        request=serializers.ReplayRequestSerializer,
        responses={200: serializers.ReplayCountSerializer, 202: serializers.ReplaySerializer},
        examples=[
            OpenApiExample(
                "Open dead letters with a tag, 50 messages/s",
                value={"filter": {"tag": "lost", "state": "open"}, "target": "retry", "rate": 50},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request, cluster: str, group: str) -> Response:
        """Start a replay of all matching dead letters: 202 with the job, 409 while one runs."""
        asked = serializers.ReplayRequestSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wish = dict(asked.validated_data)
        rate = wish.pop("rate")
        for_user(request, cluster, plan_of(wish))
        if read_flag(request, "dry_run"):
            wanted = filter_of(self.cluster.name, group, wish.get("filter") or {})
            counted = self.cluster.ask(count, group, wanted).value
            return Response(serializers.ReplayCountSerializer(counted).data)
        with audited(request, START_ACTION, cluster=cluster, target=group) as entry:
            replay, job = replays.begin(self.cluster, group, wish, rate, by=request.user)
            entry.after = {"replay": replay.pk, "job": job.pk, "rate": rate}
        names = {"cluster": cluster, "group": group, "number": replay.pk}
        return Response(
            serializers.ReplaySerializer(replay_row(replay)).data,
            status.HTTP_202_ACCEPTED,
            headers={"Location": reverse("api-dlq-replay", kwargs=names)},
        )


class ReplayOne(ClusterResource):
    @extend_schema(responses=serializers.ReplaySerializer)
    def get(self, request: Request, cluster: str, group: str, number: int) -> Response:
        """One replay with counts: `matched` is the sum of sent, failed and skipped."""
        replay = replay_of(self.cluster.name, group, number)
        return Response(serializers.ReplaySerializer(replay_row(replay)).data)


class ReplayOutcomes(ClusterResource):
    @extend_schema(
        parameters=[
            OpenApiParameter("result", OpenApiTypes.STR, enum=list(replays.RESULTS)),
            OpenApiParameter("limit", OpenApiTypes.INT, description="1 to 500; 50 if absent."),
            OpenApiParameter("cursor", OpenApiTypes.STR),
        ],
        responses=serializers.ReplayOutcomesSerializer,
    )
    def get(self, request: Request, cluster: str, group: str, number: int) -> Response:
        """Outcomes of a replay, newest first."""
        rows = replays.outcomes_of(replay_of(self.cluster.name, group, number))
        params = request.query_params
        if result := params.get("result"):
            if result not in replays.RESULTS:
                raise ValidationError({"result": [_("No such result.")]})
            rows = rows.filter(result=result)
        if cursor := params.get("cursor"):
            if not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= NUMBER_DIGITS_MAX):
                raise ValidationError({"cursor": [_("Not a cursor of this list.")]})
            rows = rows.filter(pk__lt=int(cursor))
        limit = read_limit(params.get("limit"))
        found = list(rows[: limit + 1])
        shown = found[:limit]
        return Response(
            {
                "items": serializers.ReplayOutcomeSerializer(shown, many=True).data,
                "next_cursor": str(shown[-1].pk) if len(found) > limit else None,
            }
        )
