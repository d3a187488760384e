"""The client's address and scheme behind a proxy.

Any client can send `X-Forwarded-For` and `X-Forwarded-Proto`. The console believes the headers only
from the addresses of CONSOLE_TRUSTED_PROXIES. By default uvicorn believes the headers from
127.0.0.1, therefore uvicorn runs with `--no-proxy-headers`. `X-Forwarded-Host` is ignored.
"""

from typing import Any

from django.conf import settings
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from console.web.security import AsgiApp


class Proxies:
    """ASGI: applies the headers of trusted proxies; with CONSOLE_HTTPS, all requests are HTTPS."""

    def __init__(self, app: AsgiApp) -> None:
        self.app = app
        if settings.TRUSTED_PROXIES:
            inner: Any = app
            self.app = ProxyHeadersMiddleware(inner, list(settings.TRUSTED_PROXIES))  # type: ignore[assignment]
        self.is_https = settings.SESSION_COOKIE_SECURE

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        scheme = scope.get("scheme")
        if self.is_https and scheme is not None:
            scope = {**scope, "scheme": "wss" if scope["type"] == "websocket" else "https"}
        await self.app(scope, receive, send)
