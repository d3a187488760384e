"""Console below a sub-path of a site: CONSOLE_PREFIX, such as /mq/.

Some proxies forward the path unchanged, other proxies strip the prefix. Both work: the application
sees the complete path, with the prefix as ASGI's `root_path`. Probes may request /livez without the
prefix.
"""

from typing import Any

from console.web.security import AsgiApp


class SubPath:
    """ASGI: puts every URL below `prefix` (no trailing slash); an empty prefix changes nothing."""

    def __init__(self, app: AsgiApp, prefix: str) -> None:
        self.app = app
        self.prefix = prefix

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if self.prefix and scope["type"] in {"http", "websocket"}:
            scope = {**scope, "root_path": self.prefix, "path": self._whole(scope["path"])}
        await self.app(scope, receive, send)

    def _whole(self, path: str) -> str:
        if path == self.prefix:
            return f"{path}/"
        return path if path.startswith(f"{self.prefix}/") else self.prefix + path
