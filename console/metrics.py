"""The console's own measurements, as Prometheus reads them at /metrics."""

from collections.abc import Callable
from time import perf_counter

from django.http import HttpRequest, HttpResponseBase
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.process_collector import ProcessCollector

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_requests = Histogram(
    "gantry_console_request_seconds",
    "Time to answer a page or a REST call.",
    ["method", "route", "status"],
    buckets=SECONDS,
    registry=REGISTRY,
)
_questions = Histogram(
    "gantry_console_question_seconds",
    "Time a cluster took to answer the console.",
    ["cluster", "question", "outcome"],
    buckets=SECONDS,
    registry=REGISTRY,
)
viewers = Gauge(
    "gantry_console_viewers",
    "Browsers connected to a live feed.",
    ["cluster", "feed"],
    registry=REGISTRY,
)
feed_drops = Counter(
    "gantry_console_feed_drops_total",
    "Samples a live feed could not take because the cluster did not answer.",
    ["cluster", "feed"],
    registry=REGISTRY,
)


def asked(cluster: str, question: str, outcome: str, seconds: float) -> None:
    """Note how long a cluster took over a question or a command."""
    _questions.labels(cluster, question, outcome).observe(seconds)


class RequestMetrics:
    """Middleware: times each request by its route, so that names of topics make no new series."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started = perf_counter()
        response = self.get_response(request)
        match = request.resolver_match
        route = match.route if match else "(none)"
        method = request.method if request.method in _METHODS else "(other)"
        _requests.labels(method, route, str(response.status_code)).observe(perf_counter() - started)
        return response


_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
