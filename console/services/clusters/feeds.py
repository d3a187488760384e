"""Live feeds of the area `clusters`.

/ws/clusters/<cluster>/overview speaks JSON:

    {"type": "history", "interval_ms": 2000, "samples": [sample, …]}    once, at the start
    {"type": "sample", "at_ms": …, "in_rate": …, "out_rate": …, …}      every interval
    {"type": "lost", "at_ms": …, "reason": "…"}                         while no broker answers

GET /api/v1/clusters/<cluster>/load answers one sample, for browsers without a WebSocket.
"""

from typing import Any

from console.web.live.feed import ClusterFeed
from console.web.live.sampler import INTERVAL_S, Sampler, sampler_of


class OverviewFeed(ClusterFeed):
    """The load of a cluster; all viewers of the cluster share one sampler."""

    channel_layer_alias = "local"
    sampler: Sampler | None = None

    async def joined(self) -> None:
        self.sampler = sampler_of(self.cluster)
        await self.channel_layer.group_add(self.sampler.group, self.channel_name)
        self.sampler.join()
        await self.send_json(
            {
                "type": "history",
                "interval_ms": int(INTERVAL_S * 1000),
                "samples": list(self.sampler.history),
            }
        )

    async def disconnect(self, code: int) -> None:
        if self.sampler is not None:
            self.sampler.leave()
            await self.channel_layer.group_discard(self.sampler.group, self.channel_name)

    async def overview_sample(self, event: dict[str, Any]) -> None:
        """Handle `overview.sample` messages of the channel layer."""
        await self.send_json(event["sample"])
