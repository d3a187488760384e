"""The HTTP side port of a process, for operators and probes.

/livez      200 while the event loop runs, and while the checks of a process that has any pass
/readyz     200, or 503 with the reasons; ?verbose lists every check; ?exclude=NAME, also several
            times, leaves out a check, as in Kubernetes; /healthz is an alias
/metrics    Prometheus text with the names of RocketMQ 5
/varz       every internal counter and table as JSON

Everybody reads /livez and /readyz; `access.py` has the readers of the other pages.
"""

import asyncio
import errno
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

import msgspec

from core_broker.errors import SettingProblem, SettingsError
from core_broker.limits import BROKER_HTTP_PORT, NAMESRV_HTTP_PORT
from core_broker.monitoring.access import MetricsAccess, UnusableToken, read_token
from core_broker.monitoring.metrics import Metrics
from core_broker.monitoring.readiness import Readiness

log = logging.getLogger(__name__)

#: Maximum size of a request head, bytes.
REQUEST_BYTES_MAX = 8192
#: Maximum time from the connection to the end of the response, seconds.
REQUEST_SECONDS_MAX = 10
#: Maximum number of open connections; further connections are closed at once.
CONNECTIONS_MAX = 64

#: Pages for the readers of `MetricsAccess`.
PROTECTED = frozenset({"/metrics", "/varz"})

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


@dataclass(slots=True)
class SidePort:
    """The HTTP server of one process; `serve_http` starts it and chooses the port."""

    readiness: Readiness
    varz: Callable[[], Mapping[str, Any]]
    metrics: Metrics
    access: MetricsAccess
    #: Checks that fail when only a restart helps; none by default.
    liveness: Readiness = field(default_factory=Readiness)
    port: int = 0
    _server: asyncio.Server | None = None
    _tasks: "set[asyncio.Task[None]]" = field(default_factory=set)

    async def listen(self, host: str, port: int) -> None:
        """Bind and serve; raises OSError when the port is in use."""
        self._server = await asyncio.start_server(
            self._serve, host, port, limit=REQUEST_BYTES_MAX, backlog=CONNECTIONS_MAX
        )
        self.port = self._server.sockets[0].getsockname()[1]

    @property
    def open_requests(self) -> int:
        """Number of requests in progress."""
        return len(self._tasks)

    async def close(self) -> None:
        """Stop listening and cancel the open requests."""
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
                    line, headers = await _request_head(reader)
                    peer, own = (_address(writer, end) for end in ("peername", "sockname"))
                    denied = self.access.why_denied(peer, own, headers)
                    writer.write(await self._answer(line, denied))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            log.debug("an HTTP client disconnected before its response")
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, line: str, denied: str) -> bytes:
        method, _, rest = line.partition(" ")
        target = rest.partition(" ")[0]
        path, _, query = target.partition("?")
        if not target.startswith("/"):
            return _response(HTTPStatus.BAD_REQUEST, "not an HTTP request\n")
        if method != "GET":
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, "only GET\n")
        if denied and path in PROTECTED:
            return _response(HTTPStatus.UNAUTHORIZED, f"{denied}\n")
        try:
            return await self._page(path, query)
        except Exception:
            log.exception("the page %s failed", path[:100])
            return _response(HTTPStatus.INTERNAL_SERVER_ERROR, "the page failed; see the log\n")

    async def _page(self, path: str, query: str) -> bytes:
        match path:
            case "/livez":
                return _report(self.liveness.report(), verbose=False, bad_word="not alive")
            case "/readyz" | "/healthz":
                options = parse_qs(query, keep_blank_values=True)
                return self._readyz(
                    verbose="verbose" in options, excluded=options.get("exclude", [])
                )
            case "/metrics":
                return _response(HTTPStatus.OK, await self.metrics.render(), _METRICS_TYPE)
            case "/varz":
                encoded = msgspec.json.encode(self.varz())
                return _response(HTTPStatus.OK, msgspec.json.format(encoded, indent=2), JSON)
            case "/":
                return _response(HTTPStatus.OK, "/livez /readyz?verbose /metrics /varz\n")
        return _response(HTTPStatus.NOT_FOUND, "no such page\n")

    def _readyz(self, *, verbose: bool, excluded: Collection[str]) -> bytes:
        report = self.readiness.report()
        kept = {name: reason for name, reason in report.items() if name not in excluded}
        return _report(kept, verbose=verbose, bad_word="not ready")


def _report(report: Mapping[str, str], *, verbose: bool, bad_word: str) -> bytes:
    """Return the response for checks with their reasons: 200, or 503 with the failed checks."""
    bad = {name: reason for name, reason in report.items() if reason}
    shown = report if verbose else bad
    lines = [f"[-] {name}: {why}" if why else f"[+] {name}" for name, why in shown.items()]
    lines.append(bad_word if bad else "ok")
    status = HTTPStatus.SERVICE_UNAVAILABLE if bad else HTTPStatus.OK
    return _response(status, "\n".join(lines) + "\n")


_MORE_HEADERS = {
    HTTPStatus.METHOD_NOT_ALLOWED: "Allow: GET\r\n",
    HTTPStatus.UNAUTHORIZED: 'WWW-Authenticate: Bearer realm="metrics"\r\n',
}
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


async def serve_http(
    host: str,
    port: int,
    readiness: Readiness,
    varz: Callable[[], Mapping[str, Any]],
    metrics: Metrics,
    *,
    token_file: str = "",
) -> SidePort:
    """Start the side port and return it; `.port` is the bound port, `.close()` stops the server.

    `token_file` is the setting metricsTokenFile; raises SettingsError for an unusable file.

    When a default port is in use, any free port is bound instead: settings written for RocketMQ,
    which has no side port, must start two brokers on one machine. Raises OSError when another port
    of the settings is in use.
    """
    try:
        access = MetricsAccess("metricsTokenFile", read_token(token_file))
    except UnusableToken as problem:
        wrong = SettingProblem("metricsTokenFile", f"expected {problem}", token_file)
        raise SettingsError([wrong]) from None
    side = SidePort(readiness, varz, metrics, access)
    try:
        await side.listen(host, port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE or port not in (BROKER_HTTP_PORT, NAMESRV_HTTP_PORT):
            raise
        await side.listen(host, 0)
        log.warning("port %d is in use; health and metrics are on port %d", port, side.port)
    return side


async def _request_head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]]:
    """Return request line and headers, names in lower case; ("", {}) for a head longer than
    REQUEST_BYTES_MAX.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return "", {}
    first, *rest = head.decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in rest)
    return first, {name.strip().lower(): value.strip() for name, _, value in fields}


def _address(writer: asyncio.StreamWriter, end: str) -> str:
    """Return the IP address of one end of the connection."""
    found = writer.get_extra_info(end)
    return str(found[0]) if found else ""


def _response(status: HTTPStatus, body: str | bytes, content_type: str = TEXT) -> bytes:
    payload = body.encode() if isinstance(body, str) else body
    more = _MORE_HEADERS.get(status, "")
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(payload)}\r\nCache-Control: no-store\r\n{more}"
        "Connection: close\r\n\r\n"
    )
    return head.encode("latin-1") + payload
