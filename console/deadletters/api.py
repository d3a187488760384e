"""REST resources of dead letters: groups that have any, their letters, sending them again."""

from __future__ import annotations

from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.paging import read_limit
from console.api.serializers import AnsweredSerializer, BodySerializer
from console.api.views import ClusterResource, told_with
from console.audit import audited
from console.deadletters.forms import ID_CHARS_MAX
from console.deadletters.ledger import resend
from console.deadletters.views import Letter, count_results, letters
from console.gateway import NotThere
from console.gateway import deadletters as questions
from console.gateway.messages import PAGE_MESSAGES_MAX, browse
from console.gateway.resends import RESEND_MESSAGES_MAX, Result, Target
from console.messages.api import MessageRowSerializer
from core_broker.message.topics import dlq_topic


class DeadLetterGroupSerializer(serializers.Serializer[Any]):
    """A group with dead letters. Count and times are null where no broker could tell."""

    group = serializers.CharField()
    topic = serializers.CharField()
    perm = serializers.IntegerField()
    count = serializers.IntegerField(allow_null=True)
    oldest_ms = serializers.IntegerField(allow_null=True)
    newest_ms = serializers.IntegerField(allow_null=True)


class DeadLetterGroupsSerializer(AnsweredSerializer):
    items = DeadLetterGroupSerializer(many=True)
    total = serializers.IntegerField(help_text="Dead letters of all groups, as far as known.")


class DeadLetterGroupAnswerSerializer(DeadLetterGroupSerializer, AnsweredSerializer):
    """One group with dead letters, and when it was asked for."""


class DeadLetterSerializer(MessageRowSerializer):
    """A dead letter; `id` of a resend is its offset_msg_id."""

    origin_topic = serializers.SerializerMethodField()
    resent_at = serializers.SerializerMethodField()

    def get_origin_topic(self, letter: Letter) -> str:
        return letter.origin

    @extend_schema(responses=OpenApiTypes.DATETIME)
    def get_resent_at(self, letter: Letter) -> str | None:
        return letter.resent.at.isoformat() if letter.resent else None

    def to_representation(self, instance: Letter) -> dict[str, Any]:
        row: dict[str, Any] = dict(MessageRowSerializer(instance.ref).data)
        row["origin_topic"] = self.get_origin_topic(instance)
        row["resent_at"] = self.get_resent_at(instance)
        return row


class DeadLetterPageSerializer(AnsweredSerializer):
    items = DeadLetterSerializer(many=True)
    total = serializers.IntegerField()
    unreadable = serializers.IntegerField()
    next_cursor = serializers.CharField(allow_null=True)


class ResendRequestSerializer(BodySerializer):
    ids = serializers.ListField(
        child=serializers.CharField(max_length=ID_CHARS_MAX),
        min_length=1,
        max_length=RESEND_MESSAGES_MAX,
        help_text="offset_msg_id of each dead letter.",
    )
    target = serializers.ChoiceField(choices=[each.value for each in Target], default=Target.RETRY)
    again = serializers.BooleanField(
        default=False, help_text="Also those that were sent again before."
    )


class ResendOutcomeSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    result = serializers.ChoiceField(choices=[each.value for each in Result])
    reason = serializers.CharField()
    msg_id = serializers.CharField()
    topic = serializers.CharField()
    new_offset_msg_id = serializers.CharField()


class ResendAnswerSerializer(serializers.Serializer[Any]):
    """One outcome per id; sent + failed + skipped is the number of different ids."""

    sent = serializers.IntegerField()
    failed = serializers.IntegerField()
    skipped = serializers.IntegerField()
    outcomes = ResendOutcomeSerializer(many=True)


class DeadLetterGroupList(ClusterResource):
    @extend_schema(responses=DeadLetterGroupsSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Every group that has dead letters, most first."""
        answer = self.cluster.ask(questions.groups_with_dead_letters)
        return Response(
            {
                "items": DeadLetterGroupSerializer(answer.value, many=True).data,
                "total": sum(each.count or 0 for each in answer.value),
                **told_with(answer),
            }
        )


class DeadLetterGroupOne(ClusterResource):
    @extend_schema(responses=DeadLetterGroupAnswerSerializer)
    def get(self, request: Request, cluster: str, group: str) -> Response:
        """How many dead letters a group has; 404 when it has none."""
        answer = self.cluster.ask(questions.summary, group)
        if answer.value is None:
            raise NotThere(format_lazy(_("Group “{group}” has no dead letters."), group=group))
        return self.answered(answer, DeadLetterGroupAnswerSerializer)


class DeadLetterList(ClusterResource):
    @extend_schema(
        parameters=[
            OpenApiParameter("limit", OpenApiTypes.INT, description="1 to 200; 50 if absent."),
            OpenApiParameter("cursor", OpenApiTypes.STR),
        ],
        responses=DeadLetterPageSerializer,
    )
    def get(self, request: Request, cluster: str, group: str) -> Response:
        """The dead letters of a group, newest first."""
        params = request.query_params
        limit = read_limit(params.get("limit"), PAGE_MESSAGES_MAX)
        cursor = params.get("cursor") or None
        answer = self.cluster.ask(browse, dlq_topic(group), None, None, cursor, limit)
        page = answer.value
        found = letters(self.cluster.name, page.rows)
        return Response(
            {
                "items": DeadLetterSerializer(found, many=True).data,
                "total": page.total,
                "unreadable": page.unreadable,
                "next_cursor": page.next_cursor,
                **told_with(answer),
            }
        )


class DeadLetterResend(ClusterResource):
    actions = {"post": "deadletter.resend"}

    @extend_schema(
        request=ResendRequestSerializer,
        responses={200: ResendAnswerSerializer, 207: ResendAnswerSerializer},
        examples=[
            OpenApiExample(
                "Two dead letters",
                value={"ids": ["7F00000100002A9F0000000000000BAC"], "target": "retry"},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request, cluster: str, group: str) -> Response:
        """Send dead letters again. 200 when all were sent, 207 when some failed or were skipped."""
        asked = ResendRequestSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wanted = asked.validated_data
        target, again = Target(wanted["target"]), wanted["again"]
        with audited(request, "deadletter.resend", cluster=cluster, target=group) as entry:
            outcomes = resend(
                self.cluster, group, wanted["ids"], target, by=request.user, again=again
            )
            entry.after = {"target": target.value, "again": again}
            entry.outcomes(outcomes)
        counts = count_results(outcomes)
        whole = counts[Result.SENT] == len(outcomes)
        return Response(
            {**counts, "outcomes": ResendOutcomeSerializer(outcomes, many=True).data},
            status.HTTP_200_OK if whole else status.HTTP_207_MULTI_STATUS,
        )
