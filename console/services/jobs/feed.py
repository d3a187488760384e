"""The live feed of jobs.

/ws/clusters/<cluster>/jobs sends JSON after every change of a job:

    {"id": 7, "kind": "ingest", "state": "running", "stage": "read", "percent": 31.5, …}

Workers are separate processes, so changes go through the shared channel layer. {"redis": "lost"}
reports an unreachable Redis server, and {"redis": "back"} the end of the outage.
"""

import asyncio
import logging
from typing import Any, Final

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from redis import RedisError

from console.services.jobs.models import Job
from console.services.jobs.presentation import change_of
from console.web.live.feed import ClusterFeed
from console.web.live.redis_watch import redis_answers

log = logging.getLogger(__name__)

GROUP: Final = "jobs"
#: WebSocket close code “try again later”: the channel layer does not answer.
NOT_AVAILABLE: Final = 1013
WATCH_S: Final = 1.0


class JobsFeed(ClusterFeed):
    """Changes of the cluster's jobs."""

    joined_group = False
    watching: asyncio.Task[None] | None = None

    async def joined(self) -> None:
        try:
            await self.channel_layer.group_add(GROUP, self.channel_name)
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
            await self.channel_layer.group_discard(GROUP, self.channel_name)

    async def job_changed(self, event: dict[str, Any]) -> None:
        """From the channel layer, under the name `job.changed`."""
        if event["job"]["cluster"] == self.cluster.name:
            await self.send_json(event["job"])


def announce(job: Job) -> None:
    """Notify open pages of a changed job. Pages also poll, so a lost notification is harmless."""
    layer = get_channel_layer()
    assert layer is not None
    try:
        async_to_sync(layer.group_send)(GROUP, {"type": "job.changed", "job": change_of(job)})
    except (RedisError, OSError) as error:
        log.debug("the change of %s was not announced: %s", job, error)
