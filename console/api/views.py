"""Base class of all resources of a cluster.

    class TopicList(ClusterResource):
        @extend_schema(parameters=list_parameters(COLUMNS), responses=TopicPageSerializer)
        def get(self, request, cluster):
            answer = self.cluster.ask(topic_rows)
            return self.listed(request, TopicRowSerializer, COLUMNS, answer)

GET needs the role viewer; POST, PUT, PATCH and DELETE need the role operator, unless `@needs`
declares a different need (see `console.frame.access`). Writes are carried out once per
`Idempotency-Key`. A gateway error becomes a problem+json response with the status of the error.
Resources outside a cluster derive from `DeclaredParameters`, as `ClusterResource` does: a query
parameter that `@extend_schema` does not declare, or that a request repeats, is answered with 400.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.api.fields import chosen_members
from console.api.idempotency import IdempotentWrites
from console.api.paging import cut
from console.frame.masking import cluster_for
from console.frame.tables import Columns, TableQuery
from console.frame.targets import target_of
from console.gateway import Answer, Cluster
from console.gateway.changes import BrokerOutcome

IF_MATCH = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The `ETag` of the state the client has read; 412 when the state has changed, "
    "with the present `ETag`.",
)


class DeclaredParameters(APIView):
    """A resource that refuses unknown and repeated query parameters, and a write's `If-Match` that
    it would ignore, with 400, after access checks.

    The known parameters of a method are the query parameters of its OpenAPI operation; each has one
    value. A misspelled or repeated parameter therefore never changes the meaning of a request, for
    example `dryrun=1` or `dry_run=1&dry_run=0` of a write.
    """

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        known = self.known_parameters(request)
        unknown = [] if known is None else sorted(set(request.query_params) - known)
        if known is not None and unknown:
            text = (
                _("Unknown parameter. Known parameters: %(known)s")
                % {"known": ", ".join(sorted(known))}
                if known
                else _("Unknown parameter. This method has no parameters.")
            )
            raise ValidationError({name: [text] for name in unknown})
        values = request.query_params.lists()
        repeated = [name for name, given in values if len(given) > 1] if known else []
        if repeated:
            text = _("The parameter must occur once.")
            raise ValidationError({name: [text] for name in repeated})
        if known is not None and request.method != "GET" and expected_etag(request) is not None:
            self.check_condition(request)

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Response:
        """Apply the parameter `fields` of lists."""
        chosen = request.query_params.get("fields") if hasattr(request, "query_params") else None
        data: Any = getattr(response, "data", None)
        if chosen is not None and response.status_code == status.HTTP_200_OK and "items" in data:
            try:
                data["items"] = chosen_members(data["items"], chosen)
            except ValidationError as wrong:
                response = self.handle_exception(wrong)
        return super().finalize_response(request, response, *args, **kwargs)

    def known_parameters(self, request: Request) -> set[str] | None:
        """Return the declared query parameters; None for a method without a handler (405)."""
        parameters = self._declared(request)
        if parameters is None:
            return None
        return {each.name for each in parameters if each.location == OpenApiParameter.QUERY}

    def check_condition(self, request: Request) -> None:
        """Raise ValidationError for a method that does not declare `If-Match`: the caller expects
        that a concurrent change is not overwritten."""
        if IF_MATCH.name not in {each.name for each in self._declared(request) or ()}:
            text = _("This method does not check If-Match. Send the request without the header.")
            raise ValidationError({IF_MATCH.name: [text]})

    def _declared(self, request: Request) -> Sequence[OpenApiParameter] | None:
        handler = getattr(self, (request.method or "").lower(), None)
        if handler is None:
            return None
        declared = getattr(handler, "kwargs", {}).get("schema")
        if declared is None:
            return ()
        schema = declared()
        schema.view, schema.method = self, request.method
        parameters: Sequence[OpenApiParameter] = schema.get_override_parameters()
        return parameters


class ClusterResource(IdempotentWrites, DeclaredParameters):
    """A resource of one cluster; `self.cluster` is the gateway to the cluster."""

    cluster: Cluster

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)  # first: authentication and access
        resource = target_of(type(self), kwargs, request.query_params).resource
        self.cluster = cluster_for(request, kwargs["cluster"], resource)

    def answered(
        self,
        answer: Answer[Any],
        serializer: type[serializers.Serializer[Any]],
        *,
        etag: str | None = None,
    ) -> Response:
        """Respond with one object, the time of the answer and the missing brokers."""
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
        """Respond with one page of a list; `rows` are the rows that pass the resource's filters."""
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
        """Respond with one outcome per broker: status `done` when all succeeded, else 207."""
        whole = all(outcome.error is None for outcome in outcomes)
        return Response(
            {"name": name, "outcomes": [asdict(outcome) for outcome in outcomes]},
            done if whole else status.HTTP_207_MULTI_STATUS,
            headers={"Location": location} if location else None,
        )


def tagged(body: Any, version: str, code: int = status.HTTP_200_OK, **headers: str) -> Response:
    """Respond with an object and its version as `ETag`."""
    return Response(body, code, headers={"ETag": f'"{version}"', **headers})


def told_with(answer: Answer[Any]) -> dict[str, Any]:
    return {
        "asked_at_ms": answer.asked_at_ms,
        "failures": [asdict(failure) for failure in answer.failures],
    }


def expected_etag(request: Request) -> str | None:
    """Return the etag of `If-Match`; None when the caller accepts any state."""
    wanted = request.headers.get("If-Match", "").strip()
    return None if wanted in {"", "*"} else wanted.removeprefix("W/").strip('"')
