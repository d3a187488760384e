"""Errors of the API, all in `application/problem+json` (RFC 9457).

    {"type": "urn:gantry:problem:not-found", "title": "Not found", "status": 404,
     "detail": "No broker of the cluster has a topic “x”.", "instance": "/api/v1/…",
     "hint": "…", "errors": {"read_queues": ["…"]}, "failures": [{"broker": …}]}

`hint`, `errors` (of single fields) and `failures` (of single brokers) are optional, and some
problems have members of their own, such as the queues of `unread-queues`.
"""

from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import set_rollback

from console.api.idempotency import Replay
from console.api.parsers import TooLarge
from console.gateway import GatewayError, PreconditionFailed

CONTENT_TYPE = "application/problem+json"


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """Exception handler of DRF; None passes the error to Django, which answers 500."""
    if isinstance(error, Replay):
        return error.response()
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    elif isinstance(error, RequestDataTooBig):
        error = TooLarge()
    if isinstance(error, GatewayError):
        body = _of_gateway(error)
        headers = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s else {}
        if isinstance(error, PreconditionFailed) and error.etag:
            headers["ETag"] = f'"{error.etag}"'
    elif isinstance(error, exceptions.APIException):
        body = _of_request(error)
        headers = _headers(error)
    else:
        return None
    set_rollback()
    body["instance"] = context["request"].path
    return Response(body, body["status"], headers=headers, content_type=CONTENT_TYPE)


def _of_gateway(error: GatewayError) -> dict[str, Any]:
    body = problem(error.kind, str(error.title), error.status, str(error.detail))
    if error.hint:
        body["hint"] = str(error.hint)
    if error.failures:
        body["failures"] = [asdict(failure) for failure in error.failures]
    return {**body, **error.members}


def _of_request(error: exceptions.APIException) -> dict[str, Any]:
    title = HTTPStatus(error.status_code).phrase
    kind = title.lower().replace(" ", "-")
    if isinstance(error, exceptions.ValidationError):
        body = problem("invalid", title, error.status_code, "Some fields cannot be used.")
        detail = error.detail
        body["errors"] = detail if isinstance(detail, dict) else {"": detail}
        return body
    return problem(kind, title, error.status_code, str(error.detail))


def problem(kind: str, title: str, code: int, detail: str) -> dict[str, Any]:
    return {
        "type": f"urn:gantry:problem:{kind}",
        "title": title,
        "status": code,
        "detail": detail,
    }


def _headers(error: exceptions.APIException) -> dict[str, str]:
    headers = {}
    if auth := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = auth
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(int(wait))
    return headers


#: Error statuses of every resource.
COMMON_STATUSES = (
    status.HTTP_400_BAD_REQUEST,
    status.HTTP_401_UNAUTHORIZED,
    status.HTTP_403_FORBIDDEN,
    status.HTTP_404_NOT_FOUND,
    status.HTTP_405_METHOD_NOT_ALLOWED,
    status.HTTP_406_NOT_ACCEPTABLE,
    status.HTTP_502_BAD_GATEWAY,
    status.HTTP_503_SERVICE_UNAVAILABLE,
    status.HTTP_504_GATEWAY_TIMEOUT,
)
