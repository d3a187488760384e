"""What all Classic calls share: `{status, data, errMsg}`, and parameters in the query string.

As in Classic a call that fails answers HTTP 200 with status -1 and the cause in `errMsg`. Unlike
there, who is not signed in gets 401 and who may not 403, with the same body.
"""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.api.problems import problem_response
from console.gateway import Cluster, GatewayError, Unusable, gateway

FAILED = -1
#: Classic knows no null for numbers.
UNKNOWN = -1
TEXT_CHARS_MAX = 255


class ClassicCall(APIView):
    """One path of Classic. `?cluster=` chooses among several clusters; without it, the first."""

    schema = None
    #: False where there is nothing to ask a cluster.
    asks_cluster = True
    cluster: Cluster

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.asks_cluster:
            names = [each.name for each in gateway.clusters()]
            self.cluster = gateway.cluster(request.query_params.get("cluster") or names[0])

    def get_exception_handler(self) -> Any:
        return failed

    def text(self, name: str) -> str:
        """A parameter that must be there."""
        found = self.request.query_params.get(name, "").strip()
        if not found or len(found) > TEXT_CHARS_MAX or "\x00" in found:
            raise Unusable(_("The parameter “%(name)s” is missing or no name.") % {"name": name})
        return found

    def flag(self, name: str) -> bool:
        return self.request.query_params.get(name, "").lower() == "true"


def told(data: Any) -> Response:
    """A good answer."""
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
    """Django's own request, which signing in works on."""
    found: HttpRequest = request._request
    return found
