"""REST resources of dead letters: groups, messages, resend, discard, restore."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from django.http.response import HttpResponseBase
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import read_flag
from console.api.paging import read_limit
from console.api.views import ClusterResource, told_with
from console.areas.deadletters import serializers, states
from console.areas.deadletters.ledger import resend
from console.areas.deadletters.message_export import FORMATS
from console.areas.deadletters.requests import filter_of, for_user, plan_of
from console.areas.deadletters.sending import RESEND_ACTION, audit_details, count_results
from console.areas.deadletters.views import export_response
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.pages import only_readable
from console.frame.permissions import Scope
from console.gateway import Cluster, NotFound, Unusable
from console.gateway.dead_letters import summary as questions
from console.gateway.dead_letters.causes import (
    DeadLetterCause,
    newest_cause,
    newest_causes,
    newest_ms,
)
from console.gateway.dead_letters.resend import RESEND_MESSAGES_MAX, Result
from console.gateway.dead_letters.search import matching_ids, search
from console.gateway.dead_letters.summary import DeadLetterGroup
from console.gateway.groups.metrics import client_counts
from console.gateway.messages.browse import PAGE_MESSAGES_MAX

FILTER_PARAMETERS = [
    OpenApiParameter("begin_ms", OpenApiTypes.INT, description="Stored at this time or later."),
    OpenApiParameter("end_ms", OpenApiTypes.INT, description="Stored at this time or earlier."),
    OpenApiParameter("key", OpenApiTypes.STR, description="A message key or the message id."),
    OpenApiParameter("tag", OpenApiTypes.STR),
    OpenApiParameter("topic", OpenApiTypes.STR, description="Original topic."),
    OpenApiParameter("text", OpenApiTypes.STR, description="Text in the body or a property."),
    OpenApiParameter(
        "state", OpenApiTypes.STR, enum=[each.value for each in states.DeadLetterState]
    ),
]


def read_filter(params: Any) -> dict[str, Any]:
    """The filter of a query string; 400 for an invalid one."""
    given = {each.name: params[each.name] for each in FILTER_PARAMETERS if params.get(each.name)}
    asked = serializers.FilterSerializer(data=given)
    asked.is_valid(raise_exception=True)
    return dict(asked.validated_data)


def group_row(
    held: DeadLetterGroup,
    handled: int,
    clients: Mapping[str, int],
    reason: DeadLetterCause | None,
) -> Any:
    """One group with data of the ledger and of the group's consumers."""
    fields = ("group", "topic", "perm", "count", "last_hour", "oldest_ms", "read_ms")
    return {
        **{name: getattr(held, name) for name in fields},
        "newest_ms": newest_ms(held.newest_ms, reason),
        "dealt_with": handled,
        "clients": clients.get(held.group),
        "why": serializers.CauseSerializer(reason).data if reason else None,
    }


def dealt_with(cluster: Cluster, held: Iterable[DeadLetterGroup]) -> Counter[str]:
    return states.dealt_with(cluster.name, {each.group: each.oldest_ms for each in held})


class DeadLetterGroupList(ClusterResource):
    access_names = Scope.SOME

    @extend_schema(responses=serializers.DeadLetterGroupsSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """All groups with dead letters, highest count first."""
        found = self.cluster.ask(questions.groups_with_dead_letters)
        answer = only_readable(request, "deadletters", self.cluster, found, "group")
        names = tuple(each.group for each in answer.value)
        clients = self.cluster.ask(client_counts, names).value
        read = tuple((each.group, each.newest_ms) for each in answer.value)
        reasons = self.cluster.ask(newest_causes, read).value
        handled = dealt_with(self.cluster, answer.value)
        rows = [
            group_row(each, handled[each.group], clients, reasons.get(each.group))
            for each in answer.value
        ]
        total = sum(each.count or 0 for each in answer.value)
        return Response({"items": rows, "total": total, **told_with(answer)})


class DeadLetterGroupOne(ClusterResource):
    @extend_schema(responses=serializers.DeadLetterGroupAnswerSerializer)
    def get(self, request: Request, cluster: str, group: str) -> Response:
        """The number of dead letters of a group; 404 for a group without dead letters."""
        answer = self.cluster.ask(questions.summary, group)
        if answer.value is None:
            raise NotFound(format_lazy(_("Group “{group}” has no dead letters."), group=group))
        clients = self.cluster.ask(client_counts, (group,)).value
        handled = dealt_with(self.cluster, [answer.value])[group]
        why = self.cluster.ask(newest_cause, group, answer.value.newest_ms).value
        row = group_row(answer.value, handled, clients, why)
        return Response({**row, **told_with(answer)})


class DeadLetterList(ClusterResource):
    @extend_schema(
        parameters=[
            *FILTER_PARAMETERS,
            OpenApiParameter("limit", OpenApiTypes.INT, description="1 to 200; 50 if absent."),
            OpenApiParameter("cursor", OpenApiTypes.STR),
        ],
        responses=serializers.DeadLetterPageSerializer,
    )
    def get(self, request: Request, cluster: str, group: str) -> Response:
        """The matching dead letters of a group, newest first."""
        params = request.query_params
        limit = read_limit(params.get("limit"), PAGE_MESSAGES_MAX)
        wanted = filter_of(self.cluster.name, group, read_filter(params))
        answer = self.cluster.ask(search, group, wanted, params.get("cursor") or None, limit)
        page = answer.value
        found = states.dead_letters(self.cluster, page.rows)
        return Response(
            {
                "items": serializers.DeadLetterSerializer(found, many=True).data,
                "total": page.total,
                "scanned": page.scanned,
                "unreadable": page.unreadable,
                "next_cursor": page.next_cursor,
                **told_with(answer),
            }
        )


@needs(Need.WRITE)
class DeadLetterExport(ClusterResource):
    @extend_schema(
        parameters=[
            *FILTER_PARAMETERS,
            OpenApiParameter("format", OpenApiTypes.STR, enum=list(FORMATS)),
        ],
        responses={(200, each.partition(";")[0]): OpenApiTypes.BINARY for each in FORMATS.values()},
    )
    def get(self, request: Request, cluster: str, group: str) -> HttpResponseBase:
        """The matching dead letters as a file: at most 10,000, newest first."""
        kind = request.query_params.get("format") or "jsonl"
        if kind not in FORMATS:
            known = ", ".join(FORMATS)
            raise ValidationError({"format": [_("Expected one of: %(known)s") % {"known": known}]})
        wanted = filter_of(self.cluster.name, group, read_filter(request.query_params))
        return export_response(self.cluster, group, wanted, kind)

    def perform_content_negotiation(self, request: Any, force: bool = False) -> Any:
        """The parameter `format` names the file format, not the renderer of the response."""
        return self.get_renderers()[0], self.get_renderers()[0].media_type


class DeadLetterResend(ClusterResource):
    actions = {"post": RESEND_ACTION}

    @extend_schema(
        parameters=[
            OpenApiParameter("dry_run", OpenApiTypes.BOOL, description="Preview: send nothing.")
        ],
        request=serializers.ResendRequestSerializer,
        responses={
            200: serializers.ResendAnswerSerializer,
            207: serializers.ResendAnswerSerializer,
        },
        examples=[
            OpenApiExample(
                "Resend one dead letter to the retry topic of its group",
                value={"ids": ["7F00000100002A9F0000000000000BAC"], "target": "retry"},
                request_only=True,
            ),
            OpenApiExample(
                "Resend all matching dead letters to another topic, with another tag",
                value={
                    "filter": {"tag": "lost", "state": "open"},
                    "target": "topic",
                    "topic": "payments-repaired",
                    "edit": {"tags": "repaired", "properties": {"repaired-by": "ops"}},
                },
                request_only=True,
            ),
        ],
    )
    def post(self, request: Request, cluster: str, group: str) -> Response:
        """Resend dead letters. 200 when all were sent, 207 when some failed or were skipped."""
        asked = serializers.ResendRequestSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wish, dry_run = asked.validated_data, read_flag(request, "dry_run")
        plan, again = for_user(request, cluster, plan_of(wish, dry_run=dry_run)), wish["again"]
        ids = self._ids(group, wish)
        if plan.edit.body is not None and len(ids) > 1:
            raise Unusable(_("A new body can be set on one dead letter at a time."))
        if dry_run:
            outcomes = resend(self.cluster, group, ids, plan, by=request.user, again=again)
        else:
            with audited(request, RESEND_ACTION, cluster=cluster, target=group) as entry:
                outcomes = resend(self.cluster, group, ids, plan, by=request.user, again=again)
                entry.after = audit_details(plan, again=again)
                entry.outcomes(outcomes)
        counts = count_results(outcomes)
        whole = counts[Result.SENT] + counts[Result.PLANNED] == len(outcomes)
        return Response(
            {
                "dry_run": dry_run,
                "matched": len(outcomes),
                **counts,
                "outcomes": serializers.ResendOutcomeSerializer(outcomes, many=True).data,
            },
            status.HTTP_200_OK if whole else status.HTTP_207_MULTI_STATUS,
        )

    def _ids(self, group: str, wish: dict[str, Any]) -> list[str]:
        """Ids of the request or of its filter. Too many matches for one call are an error."""
        if ("ids" in wish) == ("filter" in wish):
            raise ValidationError({"ids": [_("Give either ids or a filter.")]})
        if "ids" in wish:
            return list(wish["ids"])
        wanted = filter_of(self.cluster.name, group, wish["filter"])
        found, is_whole = self.cluster.ask(matching_ids, group, wanted, RESEND_MESSAGES_MAX).value
        if not is_whole:
            raise Unusable(
                format_lazy(
                    _("More dead letters match than one call resends ({most})."),
                    most=RESEND_MESSAGES_MAX,
                ),
                hint=_("Use a replay instead: POST …/replays."),
            )
        return list(found)


class DeadLetterDiscard(ClusterResource):
    actions = {"post": "deadletter.discard"}

    @extend_schema(
        request=serializers.IdsSerializer,
        responses={
            200: serializers.DiscardAnswerSerializer,
            207: serializers.DiscardAnswerSerializer,
        },
    )
    def post(self, request: Request, cluster: str, group: str) -> Response:
        """Mark dead letters as discarded. The messages stay in the dead-letter queue."""
        ids = read_ids(request)
        with audited(request, "deadletter.discard", cluster=cluster, target=group) as entry:
            outcomes = states.discard(self.cluster, group, ids, by=request.user)
            entry.outcomes(outcomes)
        counts = count_results(outcomes)
        told_counts = {
            "done": counts[Result.SENT],
            "skipped": counts[Result.SKIPPED],
            "failed": counts[Result.FAILED],
        }
        whole = not counts[Result.FAILED]
        return Response(told_counts, status.HTTP_200_OK if whole else status.HTTP_207_MULTI_STATUS)


class DeadLetterRestore(ClusterResource):
    actions = {"post": "deadletter.restore"}

    @extend_schema(request=serializers.IdsSerializer, responses=serializers.DiscardAnswerSerializer)
    def post(self, request: Request, cluster: str, group: str) -> Response:
        """Restore discarded dead letters; `skipped` counts ids without a discard."""
        ids = read_ids(request)
        with audited(request, "deadletter.restore", cluster=cluster, target=group) as entry:
            count = states.restore(self.cluster.name, group, ids)
            entry.after = {"restored": count, "ids": ids}
        return Response({"done": count, "skipped": len(set(ids)) - count, "failed": 0})


def read_ids(request: Request) -> list[str]:
    asked = serializers.IdsSerializer(data=request.data)
    asked.is_valid(raise_exception=True)
    return [each.upper() for each in asked.validated_data["ids"]]
