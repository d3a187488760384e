"""A console below a path of somebody else's site: CONSOLE_PREFIX, such as /mq/.

Some proxies pass the path on as it came, some cut the prefix off. Both work: what follows sees the
whole path, with the prefix as ASGI's `root_path`. Probes may ask for /livez without it.
"""

from typing import Any

from console.web.security import AsgiApp


class SubPath:
    """ASGI: every address is below `prefix`, which ends without a slash; empty changes nothing."""

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
