"""Feeds of changes that any process announces: consoles, workers, the scheduler.

Announcements go through the shared channel layer. {"redis": "lost"} reports an unreachable Redis
server, and {"redis": "back"} the end of the outage.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from redis import RedisError

from console.web.live.feed import ClusterFeed
from console.web.live.redis_watch import redis_answers

log = logging.getLogger(__name__)

#: WebSocket close code “try again later”: the channel layer does not answer.
NOT_AVAILABLE: Final = 1013
WATCH_S: Final = 1.0
#: Maximum time of an announcement, seconds: a Redis server that hangs must not stop a worker.
ANNOUNCE_S_MAX: Final = 2.0
#: The cluster of an announcement for the pages of all clusters.
ALL_CLUSTERS: Final = ""


class AnnouncedFeed(ClusterFeed):
    """Sends the announcements of `group` for the feed's cluster."""

    group: ClassVar[str]
    joined_group = False
    watching: asyncio.Task[None] | None = None

    async def joined(self) -> None:
        try:
            await self.channel_layer.group_add(self.group, self.channel_name)
        except (RedisError, OSError):
            await self.close(code=NOT_AVAILABLE)
            return
        self.joined_group = True
        if settings.REDIS_URL:
            self.watching = asyncio.create_task(self.watch_redis())

    async def watch_redis(self) -> None:
        """Report outages of Redis and their end."""
        was_there = True
        while True:
            is_there = await redis_answers()
            if is_there != was_there:
                await self.send_json({"redis": "back" if is_there else "lost"})
            was_there = is_there
            await asyncio.sleep(WATCH_S)

    async def disconnect(self, code: int) -> None:
        if self.watching is not None:
            self.watching.cancel()
            await asyncio.gather(self.watching, return_exceptions=True)
        if self.joined_group:
            await self.channel_layer.group_discard(self.group, self.channel_name)

    async def feed_changed(self, event: dict[str, Any]) -> None:
        """From the channel layer, under the name `feed.changed`."""
        if event["cluster"] in (ALL_CLUSTERS, self.cluster.name):
            await self.send_json(event["message"])


def announce(group: str, cluster: str, message: Mapping[str, Any]) -> None:
    """Send a message to the open pages of a cluster. Pages also poll, so a lost message is
    harmless."""
    event = {"type": "feed.changed", "cluster": cluster, "message": dict(message)}
    try:
        async_to_sync(_send)(group, event)
    except (RedisError, OSError) as error:  # also a TimeoutError
        log.debug("a change of %s was not announced: %s", group, error)


async def _send(group: str, event: dict[str, Any]) -> None:
    layer = get_channel_layer()
    assert layer is not None
    async with asyncio.timeout(ANNOUNCE_S_MAX):
        await layer.group_send(group, event)
