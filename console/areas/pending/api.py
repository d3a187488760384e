"""REST resources of delayed messages and half messages."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import DRY_RUN, read_flag
from console.api.paging import DIGITS_MAX, cut, list_parameters, read_limit
from console.api.views import ClusterResource, told_with
from console.areas.messages.api import MessageRowSerializer, moment, optional
from console.areas.messages.forms import SEARCH_CHARS_MAX, TOPIC_CHARS_MAX
from console.areas.pending import listing, serializers
from console.areas.pending.discarded import Discarded, check_again, discarded_page
from console.frame.tables import TableQuery
from console.gateway import now_ms
from console.gateway.messages.browse import PAGE_MESSAGES_MAX
from console.gateway.pending.delayed import DelayFilter, delayed_messages
from console.gateway.pending.half import half_messages, resume_checks
from core_broker.message.delays import LEVELS_MAX

KINDS = {"sends": False, "retries": True}


class DelayedMessageList(ClusterResource):
    @extend_schema(
        parameters=[
            OpenApiParameter("topic", OpenApiTypes.STR, description="Topic of delivery."),
            OpenApiParameter("q", OpenApiTypes.STR, description="A message id or a key."),
            OpenApiParameter("level", OpenApiTypes.INT, description="Delay level, from 1."),
            OpenApiParameter(
                "kind",
                OpenApiTypes.STR,
                enum=list(KINDS),
                description="Delayed sends, or retries of consumer groups; both if absent.",
            ),
            OpenApiParameter("due_from_ms", OpenApiTypes.INT64, description="Earliest due time."),
            OpenApiParameter("due_to_ms", OpenApiTypes.INT64, description="Latest due time."),
            OpenApiParameter("limit", OpenApiTypes.INT, description="1 to 200; 50 if absent."),
            OpenApiParameter("cursor", OpenApiTypes.STR),
        ],
        responses=serializers.DelayedMessagePageSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Undelivered delayed messages, earliest due time first."""
        params = request.query_params
        answer = self.cluster.ask(
            delayed_messages,
            read_filter(params),
            params.get("cursor") or None,
            read_limit(params.get("limit"), PAGE_MESSAGES_MAX),
        )
        page = answer.value
        return Response(
            {
                "items": serializers.DelayedMessageSerializer(page.rows, many=True).data,
                "levels": serializers.DelayLevelSerializer(page.levels, many=True).data,
                "total": page.total,
                "scanned": page.scanned,
                "left": page.left,
                "unreadable": page.unreadable,
                "next_cursor": page.next_cursor,
                "timers": [{"broker": broker, "count": count} for broker, count in page.timers],
                "cancellation": {"available": False, "reason": str(listing.NO_CANCEL)},
                **told_with(answer),
            }
        )


class HalfMessageList(ClusterResource):
    @extend_schema(
        parameters=list_parameters(listing.HALF_COLUMNS),
        responses=serializers.HalfMessagePageSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Half messages of transactions that have not ended. `q` searches ids, keys, topics and
        producer groups."""
        params = request.query_params
        answer = self.cluster.ask(half_messages)
        search = TableQuery.read(params, listing.HALF_COLUMNS, default="born_ms").search
        found = listing.passing(answer.value.rows, search)
        part = cut(params, listing.HALF_COLUMNS, found, default="born_ms")
        return Response(
            {
                "items": serializers.HalfMessageSerializer(part.rows, many=True).data,
                "total": part.total,
                "left_out": answer.value.left_out,
                "is_exact": answer.value.is_exact,
                "next_cursor": part.next_cursor,
                **told_with(answer),
            }
        )


class DiscardedHalfMessageList(ClusterResource):
    @extend_schema(
        parameters=[
            OpenApiParameter("limit", OpenApiTypes.INT, description="1 to 200; 50 if absent."),
            OpenApiParameter("cursor", OpenApiTypes.STR),
        ],
        responses=serializers.DiscardedHalfMessagePageSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Half messages that the brokers discarded after the last check, newest first."""
        params = request.query_params
        answer = discarded_page(
            self.cluster,
            params.get("cursor") or None,
            read_limit(params.get("limit"), PAGE_MESSAGES_MAX),
        )
        if answer is None:
            empty: dict[str, Any] = {"items": [], "total": 0, "next_cursor": None}
            return Response({**empty, "asked_at_ms": now_ms(), "failures": []})
        items = [
            {
                **MessageRowSerializer(ref).data,
                "real_topic": each.real_topic,
                "producer_group": each.producer_group,
                "checks": each.checks,
            }
            for ref in answer.value.rows
            for each in (Discarded(ref),)
        ]
        page = answer.value
        return Response(
            {
                "items": items,
                "total": page.total,
                "next_cursor": page.next_cursor,
                **told_with(answer),
            }
        )


class HalfMessageChecks(ClusterResource):
    @extend_schema(
        parameters=[DRY_RUN],
        request=serializers.ChecksRequestSerializer,
        responses={
            200: serializers.ResumptionsSerializer,
            207: serializers.ResumptionsSerializer,
        },
    )
    def post(self, request: Request, cluster: str) -> Response:
        """Resume the checks of discarded half messages, from 0 checks; one outcome per message."""
        body = serializers.ChecksRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        ids = tuple(body.validated_data["ids"])
        if read_flag(request, "dry_run"):
            outcomes = self.cluster.do(resume_checks, ids, dry_run=True)
        else:
            outcomes = check_again(request, self.cluster, ids)
        failed = sum(each.error is not None for each in outcomes)
        return Response(
            {
                "outcomes": serializers.ResumptionSerializer(outcomes, many=True).data,
                "resumed": sum(each.result == "resumed" for each in outcomes),
                "failed": failed,
            },
            status.HTTP_207_MULTI_STATUS if failed else status.HTTP_200_OK,
        )


def read_filter(params: Mapping[str, str]) -> DelayFilter:
    """The filter of query parameters; raises ValidationError."""
    kind = params.get("kind") or ""
    if kind and kind not in KINDS:
        raise ValidationError({"kind": [f"One of {', '.join(KINDS)}."]})
    level = params.get("level") or ""
    is_number = level.isascii() and level.isdecimal() and len(level) <= DIGITS_MAX
    if level and not (is_number and 1 <= int(level) <= LEVELS_MAX):
        raise ValidationError({"level": [f"1 to {LEVELS_MAX}."]})
    return DelayFilter(
        optional(params.get("topic"), "topic", TOPIC_CHARS_MAX),
        optional(params.get("q"), "q", SEARCH_CHARS_MAX),
        int(level) if level else None,
        moment(params.get("due_from_ms"), "due_from_ms"),
        moment(params.get("due_to_ms"), "due_to_ms"),
        KINDS.get(kind),
    )
