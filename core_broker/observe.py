"""What an operator sees of a running process: readiness, metrics and a small HTTP side port.

    /livez      200 while the event loop turns
    /readyz     200, or 503 with the reasons; ?verbose lists every check; /healthz is its old name
    /metrics    Prometheus text with the names of RocketMQ 5
    /varz       every internal counter and table as JSON

Counters live where things are counted; nothing is copied until somebody scrapes.
"""

import asyncio
import errno
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from core_broker.config.broker import BROKER_HTTP_PORT
from core_broker.config.namesrv import NAMESRV_HTTP_PORT

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

log = logging.getLogger(__name__)

REQUEST_BYTES_MAX = 8192
REQUEST_SECONDS_MAX = 10
CONNECTIONS_MAX = 64

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"

# Name -> help. A name that ends in _total is a counter, any other a gauge.
METRIC_HELP = {
    "rocketmq_messages_in_total": "Messages stored",
    "rocketmq_messages_out_total": "Messages handed to consumers",
    "rocketmq_throughput_in_total": "Bytes of the messages stored",
    "rocketmq_throughput_out_total": "Bytes of the messages handed to consumers",
    "rocketmq_send_to_dlq_messages_total": "Messages moved to a dead-letter topic",
    "rocketmq_producer_connections": "Connections of producers",
    "rocketmq_consumer_connections": "Connections of consumers",
    "rocketmq_consumer_lag_messages": "Messages a group has not consumed",
    "rocketmq_consumer_lag_latency": "Age in ms of the oldest message a group has not consumed",
    "rocketmq_processor_watermark": "Requests that wait for their answer",
    "rocketmq_broker_permission": "brokerPermission in force",
    "rocketmq_topic_number": "Topics",
    "rocketmq_consumer_group_number": "Subscription groups",
    "rocketmq_storage_size": "Bytes of the commit log",
    "rocketmq_storage_flush_behind_bytes": "Bytes of the commit log not yet on disk",
    "rocketmq_storage_damaged_places": "Places of the store found damaged since the start",
    "rocketmq_storage_dispatch_behind_bytes": "Bytes of the commit log not yet in the queues",
    "rocketmq_storage_message_reserve_time": "Age in ms of the oldest message stored",
    "rocketmq_remoting_connections": "Open connections",
    "rocketmq_remoting_opened_total": "Connections that were opened",
    "rocketmq_remoting_closed_total": "Connections that were closed for what the peer did",
    "rocketmq_remoting_failures_total": "Requests that were not handled, answers nobody wanted",
    "rocketmq_flow_control_total": "Requests refused with SYSTEM_BUSY, by the name in the remark",
    "rocketmq_namesrv_brokers": "Brokers registered",
    "rocketmq_namesrv_topics": "Topics with a route",
    "rocketmq_namesrv_requests_total": "Requests answered",
    "rocketmq_namesrv_connections": "Open connections",
}


@dataclass(slots=True)
class Readiness:
    """Named checks that say whether traffic should come here."""

    _checks: dict[str, Callable[[], str]] = field(default_factory=dict)

    def check(self, name: str, reason: Callable[[], str]) -> None:
        """Add a check; it is asked on every question and returns "" or why it is not ready."""
        self._checks[name] = reason

    def set(self, name: str, reason: str = "") -> None:
        """Record the state of something that changes rarely; "" is ready."""
        self._checks[name] = lambda: reason

    def report(self) -> dict[str, str]:
        """Return every check with its reason, "" for those that are well."""
        return {name: reason() for name, reason in self._checks.items()}

    @property
    def ready(self) -> bool:
        """True when no check objects."""
        return not any(self.report().values())


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with its samples: pairs of labels and value."""

    name: str
    samples: Sequence[tuple[Mapping[str, str], float]]


#: Counters of a remoting endpoint that mean a closed connection, and the others.
_CLOSED = ("refused", "malformed", "oversize", "unfinished", "slow_readers", "idle", "unstored")
_FAILURES = ("busy", "failed", "late_answers")


def remoting_families(connections: int, counters: Mapping[str, int]) -> Iterable[Family]:
    """Return the metrics of a listening endpoint from its counters by name."""
    yield Family("rocketmq_remoting_connections", [({}, connections)])
    yield Family("rocketmq_remoting_opened_total", [({}, counters["opened"])])
    for family, names in (
        ("rocketmq_remoting_closed_total", _CLOSED),
        ("rocketmq_remoting_failures_total", _FAILURES),
    ):
        yield Family(family, [({"reason": name}, counters[name]) for name in names])


@dataclass(slots=True)
class Metrics:
    """The metrics of one process; `labels` are put on every sample."""

    labels: Mapping[str, str] = field(default_factory=dict)
    _sources: list[Callable[[], Iterable[Family]]] = field(default_factory=list)
    _registry: "CollectorRegistry | None" = None

    def source(self, read: Callable[[], Iterable[Family]]) -> None:
        """Add a function that reads counters; it runs on the event loop at every scrape."""
        self._sources.append(read)

    async def render(self) -> bytes:
        """Return the exposition text. Formatting runs in a thread, reading does not."""
        families = [family for read in self._sources for family in read()]
        return await asyncio.to_thread(self._format, families)

    def _format(self, families: list[Family]) -> bytes:
        # Imported at the first scrape: it takes longer than the rest of the start together.
        from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

        if self._registry is None:
            self._registry = CollectorRegistry()
            ProcessCollector(registry=self._registry)
        once = CollectorRegistry()
        once.register(_Once([self._metric(family) for family in families]))
        return generate_latest(once) + generate_latest(self._registry)

    def _metric(self, family: Family) -> "Metric":
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        kind = CounterMetricFamily if family.name.endswith("_total") else GaugeMetricFamily
        names = list(self.labels) + (list(family.samples[0][0]) if family.samples else [])
        metric = kind(family.name, METRIC_HELP[family.name], labels=names)
        for labels, value in family.samples:
            metric.add_metric([*self.labels.values(), *labels.values()], value)
        return metric


@dataclass(slots=True, eq=False)
class _Once:
    """A collector over values that are already read."""

    metrics: "list[Metric]"

    def collect(self) -> "list[Metric]":
        return self.metrics


@dataclass(slots=True)
class SidePort:
    """The HTTP server beside the wire protocol; `serve_http` makes one."""

    readiness: Readiness
    varz: Callable[[], Mapping[str, Any]]
    metrics: Metrics
    port: int = 0
    _server: asyncio.Server | None = None
    _tasks: "set[asyncio.Task[None]]" = field(default_factory=set)

    async def listen(self, host: str, port: int) -> None:
        """Bind; OSError when the port is taken."""
        self._server = await asyncio.start_server(
            self._serve, host, port, limit=REQUEST_BYTES_MAX, backlog=CONNECTIONS_MAX
        )
        self.port = self._server.sockets[0].getsockname()[1]

    @property
    def open_requests(self) -> int:
        """How many clients are being served."""
        return len(self._tasks)

    async def close(self) -> None:
        """Stop listening and end the open requests."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if len(self._tasks) <= CONNECTIONS_MAX:
                async with asyncio.timeout(REQUEST_SECONDS_MAX):
                    writer.write(await self._answer(await _request_line(reader)))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            log.debug("an HTTP client went away before its answer")
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, line: str) -> bytes:
        method, _, rest = line.partition(" ")
        target = rest.partition(" ")[0]
        path, _, query = target.partition("?")
        if not target.startswith("/"):
            return _response(HTTPStatus.BAD_REQUEST, "not an HTTP request\n")
        if method != "GET":
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, "only GET\n")
        try:
            return await self._page(path, query)
        except Exception:
            log.exception("the page %s failed", path[:100])
            return _response(HTTPStatus.INTERNAL_SERVER_ERROR, "the page failed; see the log\n")

    async def _page(self, path: str, query: str) -> bytes:
        match path:
            case "/livez":
                return _response(HTTPStatus.OK, "ok\n")
            case "/readyz" | "/healthz":
                return self._readyz(verbose=query.partition("=")[0] == "verbose")
            case "/metrics":
                return _response(HTTPStatus.OK, await self.metrics.render(), _METRICS_TYPE)
            case "/varz":
                encoded = msgspec.json.encode(self.varz())
                return _response(HTTPStatus.OK, msgspec.json.format(encoded, indent=2), JSON)
            case "/":
                return _response(HTTPStatus.OK, "/livez /readyz?verbose /metrics /varz\n")
        return _response(HTTPStatus.NOT_FOUND, "no such page\n")

    def _readyz(self, *, verbose: bool) -> bytes:
        report = self.readiness.report()
        bad = {name: reason for name, reason in report.items() if reason}
        shown = report if verbose else bad
        lines = [f"[-] {name}: {why}" if why else f"[+] {name}" for name, why in shown.items()]
        lines.append("not ready" if bad else "ok")
        status = HTTPStatus.SERVICE_UNAVAILABLE if bad else HTTPStatus.OK
        return _response(status, "\n".join(lines) + "\n")


_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


async def serve_http(
    host: str,
    port: int,
    readiness: Readiness,
    varz: Callable[[], Mapping[str, Any]],
    metrics: Metrics,
) -> SidePort:
    """Start the side port and return it; `.port` is the actual one, `.close()` ends it.

    When a default port is taken, any free one is used: settings written for RocketMQ, which has no
    such port, must be able to start two brokers on one machine. Any other taken port is an OSError.
    """
    side = SidePort(readiness, varz, metrics)
    try:
        await side.listen(host, port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE or port not in (BROKER_HTTP_PORT, NAMESRV_HTTP_PORT):
            raise
        await side.listen(host, 0)
        log.warning("port %d is in use; health and metrics are on port %d", port, side.port)
    return side


async def _request_line(reader: asyncio.StreamReader) -> str:
    """Read one request's head, bounded in bytes; "" when it is too long."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return ""
    return head.partition(b"\r\n")[0].decode("latin-1")


def _response(status: HTTPStatus, body: str | bytes, content_type: str = TEXT) -> bytes:
    payload = body.encode() if isinstance(body, str) else body
    allow = "Allow: GET\r\n" if status is HTTPStatus.METHOD_NOT_ALLOWED else ""
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(payload)}\r\nCache-Control: no-store\r\n{allow}"
        "Connection: close\r\n\r\n"
    )
    return head.encode("latin-1") + payload
