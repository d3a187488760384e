"""Middleware that measures request durations."""

from collections.abc import Callable
from time import perf_counter

from django.http import HttpRequest, HttpResponseBase

from console.metrics import request_seconds

_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})


class RequestMetrics:
    """Middleware: request duration by route pattern, so that topic names create no new series."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started = perf_counter()
        response = self.get_response(request)
        match = request.resolver_match
        route = match.route if match else "(none)"
        method = request.method if request.method in _METHODS else "(other)"
        request_seconds.labels(method, route, str(response.status_code)).observe(
            perf_counter() - started
        )
        return response
