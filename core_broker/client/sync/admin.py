"""The admin client without ``await``."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from core_broker.client import admin as asyncio_admin
from core_broker.client.sync.background import SyncClient


class AdminClient(SyncClient):
    """`core_broker.client.AdminClient` for threads, with every method, without ``await``.

    Needs no ``start``; ``close``, or the end of ``with``, closes the connections.
    """

    def __init__(self, namesrv_addr: str, **options: Any) -> None:
        super().__init__()

        async def make() -> asyncio_admin.AdminClient:
            return asyncio_admin.AdminClient(namesrv_addr, **options)

        self._admin = self._run(make())
        self._background.clients.add(self)

    def close(self) -> None:
        """Close all connections; may be called twice."""
        self.stop()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The blocking form of an asyncio method."""
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(self._admin, name)
        if not inspect.iscoroutinefunction(method):
            return method  # type: ignore[no-any-return]

        @wraps(method)
        def ask(*arguments: Any, **named: Any) -> Any:
            return self._run(method(*arguments, **named))

        return ask

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in dir(self._admin) if name[0] != "_")]

    async def _start(self) -> None:
        """Do nothing: an admin client connects at the first request."""

    async def _stop(self) -> None:
        await self._admin.close()
