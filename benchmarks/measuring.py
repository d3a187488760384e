"""Measure one load on one broker, with the broker's CPU time."""

import asyncio
import os
import time
from typing import Any, Final

from benchmarks.load import MESSAGES_MAX, SCENARIOS, Scenario, run
from benchmarks.processes import Cluster
from core_broker.client import AdminClient
from core_broker.errors import RequestRefused

#: RocketMQ's name for the bytes in the log that are missing in consume queues and index.
BEHIND: Final = "dispatchBehindBytes"
POLL_SECONDS: Final = 0.02
CATCH_UP_SECONDS_MAX: Final = 120
#: Seconds of sends that a slave must copy before a run. A slave of Java connects after its second
#: registration, half a minute after its start.
FIRST_SECONDS: Final = 0.1
FOLLOW_SECONDS_MAX: Final = 120
#: RocketMQ's name for the end of the log.
LOG_END: Final = "commitLogMaxOffset"


def measure(
    cluster: Cluster,
    scenario: Scenario,
    *,
    seconds: float,
    messages_max: int = MESSAGES_MAX,
    rate: int = 0,
) -> dict[str, Any]:
    """Run the load generator once; adds the broker's CPU time per message and share of a core.

    Flushes dirty pages of earlier loads first. The run ends when consumers can read all sent
    messages: RocketMQ's broker responds before its dispatch, and the rest of the work would go
    unmeasured. `rate` is the rate of the whole run, `answered_rate` the rate until the last
    response.
    """
    follow(cluster)
    os.sync()
    before = cluster.broker.cpu_seconds()
    figures = run(
        scenario, cluster.broker_addr, seconds=seconds, messages_max=messages_max, rate=rate
    )
    behind_seconds = asyncio.run(catch_up_seconds(cluster))
    cpu = cluster.broker.cpu_seconds() - before
    took = figures["seconds"] + behind_seconds
    figures["answered_rate"] = figures["rate"]
    figures["rate"] = round(figures["messages"] / took)
    figures["behind_seconds"] = round(behind_seconds, 2)
    figures["broker_cpu_us_per_message"] = round(cpu * 1e6 / max(1, figures["messages"]), 2)
    figures["broker_cpu_share"] = round(cpu / took, 2)
    return figures


async def catch_up_seconds(cluster: Cluster) -> float:
    """Wait until the dispatch has caught up; returns the seconds, 0 when there is no backlog."""
    began = time.perf_counter()
    waited = 0.0
    async with AdminClient(cluster.namesrv_addr, rpc_hooks=cluster.rpc_hooks) as admin:
        while int((await _runtime_info(admin, cluster.broker_addr))[BEHIND]) > 0:
            await asyncio.sleep(POLL_SECONDS)
            waited = time.perf_counter() - began
            if waited > CATCH_UP_SECONDS_MAX:
                raise SystemExit(
                    f"{cluster.broker_addr} has messages that are in no consume queue "
                    f"{CATCH_UP_SECONDS_MAX} s after the load"
                )
    return waited


def follow(cluster: Cluster) -> None:
    """Send until the slave of a cluster has copied; a SYNC_MASTER without its slave refuses.

    A slave that was stopped with its master for long must connect again.
    """
    if cluster.slave is None:
        return
    deadline = time.monotonic() + FOLLOW_SECONDS_MAX
    while True:
        try:
            run(SCENARIOS["send-64x1"], cluster.broker_addr, seconds=FIRST_SECONDS)
        except SystemExit:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)
        else:
            break
    asyncio.run(copied(cluster))


async def copied(cluster: Cluster) -> None:
    """Wait until the slave of a cluster has the whole log."""
    deadline = time.monotonic() + CATCH_UP_SECONDS_MAX
    async with AdminClient(cluster.namesrv_addr, rpc_hooks=cluster.rpc_hooks) as admin:
        while True:
            end, copy = [
                int((await _runtime_info(admin, addr))[LOG_END])
                for addr in (cluster.broker_addr, cluster.slave_addr)
            ]
            if copy >= end:
                return
            if time.monotonic() > deadline:
                raise SystemExit(f"{cluster.slave_addr} has {copy} of {end} bytes of its master")
            await asyncio.sleep(POLL_SECONDS)


async def _runtime_info(admin: AdminClient, addr: str) -> dict[str, str]:
    """Return the runtime information; a Java broker has none before it samples after a pause."""
    deadline = time.monotonic() + CATCH_UP_SECONDS_MAX
    while True:
        try:
            return await admin.runtime_info(addr)
        except RequestRefused:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(POLL_SECONDS)
