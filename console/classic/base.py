"""Base of all Classic calls: `{status, data, errMsg}` bodies, and parameters in the query string.

As in Classic, a failed call answers HTTP 200 with status -1 and the cause in `errMsg`. Unlike
Classic, a missing sign-in answers 401 and a missing permission 403, with the same body.
"""

from typing import Any, ClassVar, TypeVar

from django.http import HttpRequest
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.api.problems import problem_response
from console.frame.masking import cluster_for
from console.gateway import (
    Answer,
    Cluster,
    ClusterUnreachable,
    GatewayError,
    Unusable,
    gateway,
)

T = TypeVar("T")

FAILED = -1
#: Classic's value for unknown numbers; Classic has no null.
UNKNOWN = -1
TEXT_CHARS_MAX = 255


class ClassicCall(APIView):
    """A path of Classic. `?cluster=` selects a cluster; the first cluster if absent."""

    schema = None
    #: False for calls without a cluster request.
    asks_cluster = True
    cluster_in_query = True
    access_resource: ClassVar[str]
    cluster: Cluster

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "access_resource" not in cls.__dict__:
            cls.access_resource = cls.__module__.rpartition(".")[2]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.asks_cluster:
            names = [cluster.name for cluster in gateway.clusters()]
            name = request.query_params.get("cluster") or names[0]
            self.cluster = cluster_for(request, name, self.access_resource)

    def get_exception_handler(self) -> Any:
        return failed

    def text(self, name: str) -> str:
        """A required parameter."""
        value = self.request.query_params.get(name, "").strip()
        if not value or len(value) > TEXT_CHARS_MAX or "\x00" in value:
            raise Unusable(_("The parameter “%(name)s” is missing or invalid.") % {"name": name})
        return value

    def flag(self, name: str) -> bool:
        return self.request.query_params.get(name, "").lower() == "true"


def whole(answer: Answer[T]) -> T:
    """Return the value of a complete answer; raise ClusterUnreachable when a broker is missing.

    Classic's bodies cannot mark stale or missing values, and Classic itself fails such a call.
    """
    if answer.failures:
        raise ClusterUnreachable(answer.failures[0].reason, failures=answer.failures)
    return answer.value


def success(data: Any) -> Response:
    """A successful answer."""
    return Response({"status": 0, "data": data, "errMsg": None})


def failed(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler, in Classic's shape."""
    answer = problem_response(error, context)
    if answer is None:
        return None
    body = answer.data
    refused = answer.status_code in {401, 403, 405}
    reason = str(error.detail) if isinstance(error, GatewayError) else str(body["detail"])
    answer.data = {"status": FAILED, "data": None, "errMsg": reason}
    answer.content_type = "application/json"
    answer.status_code = answer.status_code if refused else 200
    if isinstance(error, exceptions.NotAuthenticated):
        answer.headers.setdefault("WWW-Authenticate", "Token")
    return answer


def number(value: int | None) -> int:
    return UNKNOWN if value is None else value


def plain_request(request: Request) -> HttpRequest:
    """The Django request, for sign-in and sign-out."""
    django_request: HttpRequest = request._request
    return django_request
