"""The base of all feeds: who may listen, how a feed ends, and what its close codes mean.

    4401  not signed in
    4404  no such feed or no such cluster

A feed only speaks; what a browser says is ignored, and a long message ends the connection.
"""

from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer

from console.frame.access import Need, may
from console.gateway import Cluster, UnknownCluster, gateway

NOT_SIGNED_IN = 4401
NOT_FOUND = 4404
TOO_LONG = 1009
HEARD_BYTES_MAX = 4_096


class Feed(AsyncJsonWebsocketConsumer):
    """Subclasses override `opened`, and `closed` when they have something to give back."""

    need = Need.READ

    async def connect(self) -> None:
        # Accepted first, because a browser is not told the code of a refused handshake.
        await self.accept()
        # A role is in the database, which is not asked on the event loop.
        if not await database_sync_to_async(may)(self.scope.get("user"), self.need):
            await self.close(code=NOT_SIGNED_IN)
            return
        await self.opened()

    async def opened(self) -> None:
        """The listener is there and may listen."""

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None, **_: Any
    ) -> None:
        if len(text_data or bytes_data or "") > HEARD_BYTES_MAX:
            await self.close(code=TOO_LONG)


class ClusterFeed(Feed):
    """A feed about one cluster, named in its address."""

    cluster: Cluster

    async def opened(self) -> None:
        try:
            self.cluster = gateway.cluster(self.scope["url_route"]["kwargs"]["cluster"])
        except UnknownCluster:
            await self.close(code=NOT_FOUND)
            return
        await self.joined()

    async def joined(self) -> None:
        """The cluster is known; start to speak."""


class NoSuchFeed(Feed):
    """Answers addresses that no area claims."""

    async def opened(self) -> None:
        await self.close(code=NOT_FOUND)
