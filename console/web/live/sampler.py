"""Samples of a cluster's load, taken once per process for all viewers.

The first viewer starts a sampler. The sampler runs for LINGER_S after the last viewer left, so that
the chart has no gap when a user visits another page. Samples reach the viewers through the channel
layer "local", which is in-process and drops samples for slow browsers.
"""

import asyncio
import logging
from collections import deque
from dataclasses import asdict
from typing import Any

from channels.layers import get_channel_layer

from console import metrics
from console.gateway import Answer, Cluster, GatewayError, now_ms
from console.gateway.brokers.listing import BrokerRow, broker_rows
from console.gateway.overview import group_totals, load_of

log = logging.getLogger(__name__)

FEED = "overview"
INTERVAL_S = 2.0
LINGER_S = 60.0
HISTORY_MAX = 450
LAG_EVERY = 3

Sample = dict[str, Any]


class Sampler:
    """Sampler of one cluster on one event loop."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.group = f"{FEED}.{cluster.name}"
        self.history: deque[Sample] = deque(maxlen=HISTORY_MAX)
        self.viewers = 0
        self._before: dict[str, BrokerRow] = {}
        self._task: asyncio.Task[None] | None = None
        self._count = 0
        self._total_lag: int | None = None

    def join(self) -> None:
        self.viewers += 1
        metrics.viewers.labels(self.cluster.name, FEED).set(self.viewers)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name=f"sampler {self.cluster}")

    def leave(self) -> None:
        self.viewers -= 1
        metrics.viewers.labels(self.cluster.name, FEED).set(self.viewers)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            await self._sample_while_watched()
        except Exception:
            # The next viewer restarts the sampler; current viewers see stale data marked as stale.
            log.exception("the sampler of cluster %s failed", self.cluster)

    async def _sample_while_watched(self) -> None:
        idle_s = 0.0
        while idle_s < LINGER_S:
            sample = await self.sample()
            if sample["type"] == "sample":
                self.history.append(sample)
            message = {"type": "overview.sample", "sample": sample}
            await get_channel_layer("local").group_send(self.group, message)
            await asyncio.sleep(INTERVAL_S)
            idle_s = 0.0 if self.viewers else idle_s + INTERVAL_S

    async def sample(self) -> Sample:
        """Take one sample; a gateway error becomes a sample of type "lost"."""
        try:
            answer = await self.cluster.ask_async(broker_rows)
            if self._count % LAG_EVERY == 0:
                await self._ask_lag()
            self._count += 1
        except GatewayError as trouble:
            metrics.feed_drops.labels(self.cluster.name, FEED).inc()
            self._before = {}
            return {"type": "lost", "at_ms": now_ms(), "reason": str(trouble.detail)}
        sample = sample_of(answer, self._before)
        self._before = {row.ref.addr: row for row in answer.value if not row.down}
        sample["total_lag"] = self._total_lag
        return sample

    async def _ask_lag(self) -> None:
        """Update the lag; during an outage, the last lag remains, marked stale by the sample."""
        try:
            self._total_lag = (await self.cluster.ask_async(group_totals)).value.lag
        except GatewayError:
            log.debug("no lag of cluster %s", self.cluster, exc_info=True)


def sample_of(answer: Answer[tuple[BrokerRow, ...]], before: dict[str, BrokerRow]) -> Sample:
    """Return the metrics for pages; rates are measured between two samples where possible."""
    rows = answer.value
    load = load_of(rows)
    brokers = [
        {
            "addr": row.ref.addr,
            "state": row.state,
            "in_rate": rate_between(before.get(row.ref.addr), row, "in"),
            "out_rate": rate_between(before.get(row.ref.addr), row, "out"),
            "in_today": row.in_today,
            "out_today": row.out_today,
            "today_begins": row.today_begins,
            "disk_ratio": row.disk_ratio,
            "master": row.ref.is_master,
        }
        for row in rows
    ]
    masters = [broker for broker in brokers if broker["master"] and broker["state"] != "down"]
    contacts = [row.contact_ms for row in rows if row.contact_ms is not None]
    return {
        "type": "sample",
        "at_ms": answer.asked_at_ms,
        "state": state_of(answer),
        "fresh_at_ms": max(contacts, default=None),
        "in_rate": _sum_known(masters, "in_rate"),
        "out_rate": _sum_known(masters, "out_rate"),
        "in_today": load.in_today,
        "out_today": load.out_today,
        "today_begins": load.today_begins,
        "stored_bytes": load.stored_bytes,
        "brokers": brokers,
        "failures": [asdict(failure) for failure in answer.failures],
    }


def state_of(answer: Answer[tuple[BrokerRow, ...]]) -> str:
    """Return `fresh` when all brokers answered, `stale` when none did, else `partly`."""
    if all(row.down for row in answer.value):
        return "stale"
    return "partly" if answer.failures else "fresh"


def rate_between(before: BrokerRow | None, now: BrokerRow, way: str) -> float | None:
    """Return messages per second since the previous sample; without one, the broker's average.

    A lower counter means that the broker restarted. A broker that is down has no rate.
    """
    if now.down:
        return None
    own = now.in_rate if way == "in" else now.out_rate
    total = now.in_total if way == "in" else now.out_total
    if before is None or total is None:
        return own
    total_before = before.in_total if way == "in" else before.out_total
    elapsed_ms = now.counted_ms - before.counted_ms
    if total_before is None or total < total_before or elapsed_ms <= 0:
        return own
    return (total - total_before) * 1000 / elapsed_ms


def _sum_known(brokers: list[dict[str, Any]], key: str) -> float | None:
    known = [broker[key] for broker in brokers if broker[key] is not None]
    return sum(known) if known else None


_samplers: dict[tuple[str, str], tuple[asyncio.AbstractEventLoop, Sampler]] = {}


def sampler_of(cluster: Cluster) -> Sampler:
    """Return the cluster's sampler on the running event loop."""
    running = asyncio.get_running_loop()
    key = (cluster.name, cluster.namesrv_addr)
    loop, sampler = _samplers.get(key, (None, None))
    if sampler is None or loop is not running:
        sampler = Sampler(cluster)
        _samplers[key] = (running, sampler)
    return sampler


async def stop_samplers() -> None:
    """Stop the samplers of the running event loop; called when the server stops."""
    running = asyncio.get_running_loop()
    for loop, sampler in _samplers.values():
        if loop is running:
            await sampler.stop()
