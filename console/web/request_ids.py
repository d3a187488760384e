"""Request ids: the caller's valid `X-Request-ID`, else a new id.

The id is in the response's `X-Request-ID` and in the audit log, so that an operator can match lines
of a proxy's log with audit rows.
"""

import re
from collections.abc import Callable
from uuid import uuid4

from django.http import HttpRequest, HttpResponseBase

USABLE = re.compile(r"[A-Za-z0-9._:-]{8,64}")


class RequestIds:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get("X-Request-ID", "")
        request.request_id = given if USABLE.fullmatch(given) else uuid4().hex  # type: ignore[attr-defined]
        response = self.get_response(request)
        response.headers["X-Request-ID"] = request.request_id  # type: ignore[attr-defined]
        return response
