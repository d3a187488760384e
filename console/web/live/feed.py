"""Base classes of live feeds: access control and close codes.

    4401  not signed in
    4403  the permissions do not allow the feed
    4404  no such feed or no such cluster

A feed only sends. Messages from a browser are ignored; a message over HEARD_BYTES_MAX ends the
connection.
"""

from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.http import QueryDict

from console.frame.access import Need, may
from console.frame.targets import target_of
from console.gateway import Cluster, UnknownCluster, gateway

NOT_SIGNED_IN = 4401
NOT_ALLOWED = 4403
NOT_FOUND = 4404
TOO_LONG = 1009
HEARD_BYTES_MAX = 4_096
QUERY_BYTES_MAX = 16 * 1024


class Feed(AsyncJsonWebsocketConsumer):
    """Subclasses override `opened`, and `closed` to release resources."""

    need = Need.READ
    query: QueryDict

    async def connect(self) -> None:
        # Accept first: a browser does not learn the close code of a refused handshake.
        await self.accept()
        # The role is in the database; a query would block the event loop.
        # The feed reads the same query as the access check.
        self.query = QueryDict(self.scope.get("query_string", b"")[:QUERY_BYTES_MAX])
        target = target_of(type(self), self.scope["url_route"]["kwargs"], self.query)
        user = self.scope.get("user")
        if not await database_sync_to_async(may)(user, self.need, target):
            signed_in = user is not None and user.is_authenticated and user.is_active
            await self.close(code=NOT_ALLOWED if signed_in else NOT_SIGNED_IN)
            return
        await self.opened()

    async def opened(self) -> None:
        """Called after the handshake and the access check."""

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None, **_: Any
    ) -> None:
        if len(text_data or bytes_data or "") > HEARD_BYTES_MAX:
            await self.close(code=TOO_LONG)


class ClusterFeed(Feed):
    """A feed of one cluster, named in the URL."""

    cluster: Cluster

    async def opened(self) -> None:
        try:
            self.cluster = gateway.cluster(self.scope["url_route"]["kwargs"]["cluster"])
        except UnknownCluster:
            await self.close(code=NOT_FOUND)
            return
        await self.joined()

    async def joined(self) -> None:
        """Called when `self.cluster` is set; start to send."""


class NoSuchFeed(Feed):
    """Closes connections to unknown URLs with NOT_FOUND."""

    async def opened(self) -> None:
        await self.close(code=NOT_FOUND)
