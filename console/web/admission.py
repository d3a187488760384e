"""Bounds of simultaneous work: requests in Django, bodies of requests, and WebSockets.

Django runs each request in a thread of its own. Without bounds, a flood of requests becomes a flood
of threads: threads keep their memory, and all clients wait until all threads have started. With
bounds, a request takes one of N slots, waits for a slot, or gets 503 with `Retry-After` at once.

A request occupies a slot only while Django works: from the last byte of its body, which a slow
client may delay, to the first byte of the response's body, which a slow client may not read.
Probes and monitoring have separate slots: a busy console answers probes, too.
"""

import asyncio
import logging
import time
from http import HTTPStatus
from typing import Any

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.metrics import refused_total
from console.web.refusals import Refused, refuse
from console.web.security import AsgiApp

log = logging.getLogger(__name__)

#: Maximum time that a request waits for a slot, seconds.
WAIT_SECONDS_MAX = 10.0
#: Maximum time between the head and the last byte of a body, seconds.
BODY_SECONDS_MAX = 60.0
#: Maximum size of all bodies of requests in progress, bytes.
BODIES_BYTES_MAX = 64 * 1024 * 1024
#: Maximum number of bodies that are read at a time.
BODIES_MAX = 128
#: Maximum number of responses without slot that clients have not read yet. Beyond, a response
#: keeps its slot until the client has read the response.
UNREAD_MAX = 256
#: Slots of /readyz, /metrics and /varz, and the maximum number of requests that wait for them.
MONITORING_SLOTS, MONITORING_WAITING_MAX = 2, 32
#: Maximum number of requests that wait for the slot of /livez.
PROBES_WAITING_MAX = 10_000
#: Minimum interval between two log lines about refusals, seconds.
LOG_INTERVAL_S = 60.0

PROBE_PATH = "/livez"
MONITORING_PATHS = frozenset({"/readyz", "/healthz", "/metrics", "/varz"})


class Slots:
    """Requests in Django: `at_once` run, `waiting_max` more wait in order of arrival.

    `hint` is the sentence of a refusal that names the settings of the limits; "" for constants.
    """

    def __init__(self, at_once: int, waiting_max: int, hint: Any = "") -> None:
        self.at_once, self.waiting_max, self.hint = at_once, waiting_max, hint
        self._waiting = 0
        self._free = asyncio.Semaphore(at_once)

    async def take(self) -> None:
        """Wait for a slot; raises Refused when too many requests wait, or the wait is too long."""
        if self._free.locked() and self._waiting >= self.waiting_max:
            raise self._busy()
        self._waiting += 1
        try:
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                await self._free.acquire()
        except TimeoutError:
            raise self._busy() from None
        finally:
            self._waiting -= 1

    def release(self) -> None:
        self._free.release()

    def _busy(self) -> Refused:
        cause = format_lazy(
            _(
                "The console is busy: {running} requests run and {waiting} wait. Try again in a "
                "few seconds."
            ),
            running=self.at_once,
            waiting=self._waiting,
        )
        return Refused("requests", HTTPStatus.SERVICE_UNAVAILABLE, cause, self.hint)


class Bodies:
    """Bodies of requests in memory: limits of one body, and of all bodies together."""

    def __init__(self) -> None:
        self._reading = 0
        self._bytes = 0

    async def read(self, receive: Any) -> bytes | None:
        """Return the whole body, None when the client has left; raises Refused at a limit.

        The caller passes each returned body to `forget`.
        """
        if self._reading >= BODIES_MAX:
            raise self._too_many()
        body = bytearray()
        is_kept = False
        self._reading += 1
        try:
            async with asyncio.timeout(BODY_SECONDS_MAX):
                while not is_kept:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    part = message.get("body", b"")
                    body += part
                    self._bytes += len(part)
                    self._check(len(body))
                    is_kept = not message.get("more_body", False)
        except TimeoutError:
            cause = format_lazy(
                _("The body of the request did not arrive within {seconds} s."),
                seconds=f"{BODY_SECONDS_MAX:g}",
            )
            raise Refused("bodies", HTTPStatus.REQUEST_TIMEOUT, cause) from None
        else:
            return bytes(body)
        finally:
            self._reading -= 1
            if not is_kept:
                self._bytes -= len(body)

    def forget(self, body: bytes) -> None:
        self._bytes -= len(body)

    def _check(self, size: int) -> None:
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if size > most:
            cause = format_lazy(
                _("The body of the request is larger than {most} bytes."), most=most
            )
            raise Refused("bodies", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, cause)
        if self._bytes > BODIES_BYTES_MAX:
            raise self._too_many()

    def _too_many(self) -> Refused:
        cause = format_lazy(
            _(
                "The console is busy: {clients} clients send a body, and all bodies have {size} "
                "bytes. Try again in a few seconds."
            ),
            clients=self._reading,
            size=self._bytes,
        )
        return Refused("bodies", HTTPStatus.SERVICE_UNAVAILABLE, cause)


class Admission:
    """ASGI: applies the bounds and forwards admitted requests and WebSockets."""

    def __init__(self, app: AsgiApp) -> None:
        self.app = app
        self._deny = WebsocketDenier()
        hint = _("CONSOLE_REQUESTS_MAX and CONSOLE_REQUESTS_WAITING_MAX set the limits.")
        self._requests = Slots(settings.REQUESTS_MAX, settings.REQUESTS_WAITING_MAX, hint)
        self._monitoring = Slots(MONITORING_SLOTS, MONITORING_WAITING_MAX)
        self._probes = Slots(1, PROBES_WAITING_MAX)
        self._websockets = 0
        self._bodies = Bodies()
        self._unread = 0
        self._logged_s = -LOG_INTERVAL_S
        self._unlogged = 0

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        try:
            if scope["type"] == "http":
                await self._http(scope, receive, send)
            elif scope["type"] == "websocket":
                await self._websocket(scope, receive, send)
            else:
                await self.app(scope, receive, send)
        except Refused as refusal:
            self._note(refusal)
            await refuse(scope, send, refusal)

    async def _http(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if not has_body(scope):
            await self._run(scope, receive, send)
            return
        body = await self._bodies.read(receive)
        if body is None:
            return
        try:
            await self._run(scope, replayed(body, receive), send)
        finally:
            self._bodies.forget(body)

    def _slots(self, scope: dict[str, Any]) -> Slots:
        path = scope["path"].removeprefix(settings.PREFIX)
        if path == PROBE_PATH:
            return self._probes
        return self._monitoring if path in MONITORING_PATHS else self._requests

    async def _run(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Run the application in a slot; release the slot once, at the latest at the end."""
        slots = self._slots(scope)
        await slots.take()
        is_held = True

        async def send_and_release(message: dict[str, Any]) -> None:
            nonlocal is_held
            # Django computes a whole response, also a streamed one, before the first body message.
            if is_held and message["type"] == "http.response.body" and self._unread < UNREAD_MAX:
                is_held = False
                self._unread += 1
                slots.release()
            await send(message)

        try:
            await self.app(scope, receive, send_and_release)
        finally:
            if is_held:
                slots.release()
            else:
                self._unread -= 1

    async def _websocket(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if self._websockets >= settings.WEBSOCKETS_MAX:
            cause = format_lazy(
                _("The console has {count} WebSocket connections."), count=self._websockets
            )
            hint = _("CONSOLE_WEBSOCKETS_MAX sets the limit.")
            refusal = Refused("websockets", HTTPStatus.SERVICE_UNAVAILABLE, cause, hint)
            if "websocket.http.response" in scope.get("extensions", {}):
                raise refusal
            self._note(refusal)
            await self._deny(scope, receive, send)
            return
        self._websockets += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self._websockets -= 1

    def _note(self, refusal: Refused) -> None:
        refused_total.labels(refusal.kind).inc()
        self._unlogged += 1
        now_s = time.monotonic()
        if now_s - self._logged_s >= LOG_INTERVAL_S:
            log.warning("refused %d requests; the last: %s", self._unlogged, refusal)
            self._logged_s, self._unlogged = now_s, 0


def has_body(scope: dict[str, Any]) -> bool:
    """Return True when the head of a request announces a body."""
    headers = dict(scope["headers"])
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


def replayed(body: bytes, receive: Any) -> Any:
    """Return a `receive` whose first message is the whole body."""
    is_first = True

    async def receive_body_first() -> Any:
        nonlocal is_first
        if is_first:
            is_first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return receive_body_first
