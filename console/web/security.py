"""Security headers of responses, and host names and origins of requests."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.http.request import split_domain_port, validate_host

from console.frame.content_policy import CONTENT_POLICY, PERMISSIONS_POLICY

PROBE_PATHS = frozenset({"/livez", "/readyz", "/healthz"})

AsgiApp = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


class PolicyHeaders:
    """Middleware: adds the policy headers that a response does not set."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        headers = response.headers
        headers.setdefault("Content-Security-Policy", CONTENT_POLICY)
        headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        headers.setdefault("X-Frame-Options", "DENY")
        headers.setdefault("Cache-Control", "private, no-cache")
        return response


class SameOrigin:
    """ASGI: denies WebSockets of other sites, which carry the user's cookies, and of other hosts.

    Programs send neither Origin nor browser cookies; the sign-in check decides about programs.
    """

    def __init__(self, app: AsgiApp) -> None:
        self.app = app
        self.deny = WebsocketDenier()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = {key: value.decode("latin-1") for key, value in scope.get("headers", ())}
        host = headers.get(b"host", "")
        allowed = is_own_host(host) and is_own_origin(headers.get(b"origin", ""), host)
        await (self.app if allowed else self.deny)(scope, receive, send)


class HostOfProbes:
    """ASGI: /livez and /readyz answer to every host name: a probe may know only an address."""

    def __init__(self, app: AsgiApp) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["path"].removeprefix(settings.PREFIX) in PROBE_PATHS:
            others = [(name, value) for name, value in scope["headers"] if name != b"host"]
            scope = {**scope, "headers": [*others, (b"host", b"localhost")]}
        await self.app(scope, receive, send)


def is_own_host(host: str) -> bool:
    """Return True for no host and for allowed names; Django checks the hosts of requests itself."""
    return not host or validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS)


def is_own_origin(origin: str, host: str) -> bool:
    """Return True for no origin, the own host, and the origins of CONSOLE_TRUSTED_ORIGINS."""
    if not origin or origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    parts = urlsplit(origin)
    return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()
