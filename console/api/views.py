"""The base of all resources about a cluster.

    class TopicList(ClusterResource):
        @extend_schema(parameters=list_parameters(COLUMNS), responses=TopicPageSerializer)
        def get(self, request, cluster):
            answer = self.cluster.ask(topic_rows)
            return self.listed(request, TopicRowSerializer, COLUMNS, answer)

A resource that reads takes a viewer; POST, PUT, PATCH and DELETE take an operator, unless `@needs`
says otherwise (see `console.frame.access`), and are done once per `Idempotency-Key`. Errors of the
gateway become problems with their own status.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.idempotency import IdempotentWrites
from console.api.paging import cut
from console.frame.tables import Columns, TableQuery
from console.gateway import Answer, Cluster, gateway
from console.gateway.changes import BrokerOutcome

IF_MATCH = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The `ETag` of the state you have seen; 412 when it is another by now.",
)


class ClusterResource(IdempotentWrites):
    """A resource about one cluster: `self.cluster` answers its questions."""

    cluster: Cluster

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)  # first of all: who is it, and may they
        self.cluster = gateway.cluster(kwargs["cluster"])

    def answered(
        self,
        answer: Answer[Any],
        serializer: type[serializers.Serializer[Any]],
        *,
        etag: str | None = None,
    ) -> Response:
        """One object, with when it was asked for and what is missing from it."""
        told = told_with(answer)
        names = serializer().fields.keys() - told.keys()
        value = {name: getattr(answer.value, name) for name in names}
        body = serializer({**value, **told}).data
        return Response(body, headers={"ETag": f'"{etag}"'} if etag else None)

    def listed(
        self,
        request: Request,
        serializer: type[serializers.Serializer[Any]],
        columns: Columns[Any],
        answer: Answer[Any],
        rows: Sequence[Any] | None = None,
    ) -> Response:
        """One slice of a list; `rows` are those left after the resource's own filters."""
        params = request.query_params
        found = TableQuery.read(params, columns, default="name").matching(
            answer.value if rows is None else rows
        )
        part = cut(params, columns, found)
        return Response(
            {
                "items": serializer(part.rows, many=True).data,
                "total": part.total,
                "next_cursor": part.next_cursor,
                **told_with(answer),
            }
        )

    def changed(
        self,
        name: str,
        outcomes: Sequence[BrokerOutcome],
        *,
        done: int = status.HTTP_200_OK,
        location: str | None = None,
    ) -> Response:
        """How a change went, broker by broker: `done` when all took it, else 207."""
        whole = all(outcome.error is None for outcome in outcomes)
        return Response(
            {"name": name, "outcomes": [asdict(outcome) for outcome in outcomes]},
            done if whole else status.HTTP_207_MULTI_STATUS,
            headers={"Location": location} if location else None,
        )


def told_with(answer: Answer[Any]) -> dict[str, Any]:
    return {
        "asked_at_ms": answer.asked_at_ms,
        "failures": [asdict(failure) for failure in answer.failures],
    }


def expected_etag(request: Request) -> str | None:
    """The state the caller has seen, from `If-Match`; None when any state will do."""
    wanted = request.headers.get("If-Match", "").strip()
    return None if wanted in {"", "*"} else wanted.removeprefix("W/").strip('"')
