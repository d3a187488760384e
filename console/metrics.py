"""Prometheus metrics of the console, served at /metrics."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.process_collector import ProcessCollector

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

request_seconds = Histogram(
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
    "Samples that a live feed skipped because the cluster did not answer.",
    ["cluster", "feed"],
    registry=REGISTRY,
)
refused_total = Counter(
    "gantry_console_refused_total",
    "Requests, bodies, WebSockets and password checks refused at a limit of the console.",
    ["limit"],
    registry=REGISTRY,
)


def observe_question(cluster: str, question: str, outcome: str, seconds: float) -> None:
    """Record the response time of a cluster for a question or a command."""
    _questions.labels(cluster, question, outcome).observe(seconds)
