"""Hostile peers beside a canary: no request holds the event loop, no memory stays, nothing is lost.

FRAMES, CONNECTIONS, STUCK_PEERS and ATTACKS set the sizes, SEED the mutated frames. The table of
the canary's worst latencies is printed; the latencies are not asserted.
"""

import asyncio
import os
from itertools import cycle, islice
from pathlib import Path

import psutil
import pytest

from tests.crash.drill import (
    Outcome,
    beside_canary,
    drill,
    idle_connections,
    mutated_frames,
    never_reading_peers,
    run_attack,
    table,
    timed,
)
from tests.support.canary import Sent, missing
from tests.support.cluster import PATIENT, Cluster
from tests.support.hostile_requests import attacks

pytestmark = pytest.mark.crash

FRAMES = int(os.environ.get("FRAMES", "1000"))
ATTACKS = int(os.environ.get("ATTACKS", "40"))
CONNECTIONS = int(os.environ.get("CONNECTIONS", "2000"))
STUCK_PEERS = int(os.environ.get("STUCK_PEERS", "40"))
SEED = int(os.environ.get("SEED", "16"))
GROWTH_BYTES_MAX = 100 * 1024 * 1024
#: Runs of an attack until the attack, and not the machine, held the loop.
RUNS_MAX = 3
#: Attacks whose cost is in proportion to something that has no lower limit: the topics of a broker
#: that registers, and the keys of the messages that the system hands over in one read.
IN_PROPORTION = (
    "namesrv: 103 ",
    "namesrv: 216 and 206 behind a registration",
    "broker: 310 many keys",
)


def anonymous_bytes(pid: int) -> int:
    """Memory of a process without the mapped files: those pages are the page cache's."""
    info = psutil.Process(pid).memory_info()
    return int(info.rss - info.shared)


async def check_canary(cluster: Cluster, messages: list[Sent]) -> None:
    assert {each.code for each in messages} == {0}
    assert await missing(cluster.broker_addr, messages) == []


@pytest.mark.timeout(600)
async def test_no_request_holds_the_event_loop(tmp_path: Path) -> None:
    """The watchdog's own count: an attack must not make the loop compute for over 50 ms."""
    with Cluster(tmp_path, **PATIENT) as cluster:
        outcomes, messages = await drill(cluster, attacks())
        print(f"\n{table(outcomes, messages)}")
        held = {each.attack for each in outcomes if each.cpu_holds}
        names = {name for name in held if not name.startswith(IN_PROPORTION)}
        suspects = [each for each in attacks() if f"{each.server}: {each.name}" in names]
        guilty: dict[str, list[str]] = {}
        for attack in suspects:
            for _ in range(RUNS_MAX):
                outcome = await run_attack(cluster, attack)
                if not outcome.cpu_holds:
                    break
            else:
                guilty[outcome.attack] = outcome.cpu_holds
        assert not guilty
        await check_canary(cluster, messages)


@pytest.mark.timeout(0)
async def test_hostile_peers_leave_no_memory_behind(tmp_path: Path) -> None:
    with Cluster(tmp_path, **PATIENT) as cluster:
        servers = {"broker": cluster.broker.pid, "namesrv": cluster.namesrv.pid}
        # A tenth of the peers fills caches, tables and the allocator's pools.
        await mutated_frames(cluster, FRAMES // 10, SEED)
        await idle_connections(cluster, CONNECTIONS // 10)
        await never_reading_peers(cluster, STUCK_PEERS // 10)
        before = {name: anonymous_bytes(pid) for name, pid in servers.items()}
        outcomes: list[Outcome] = []
        async with beside_canary(cluster) as messages:
            with timed(f"{FRAMES} mutated frames, seed {SEED}", outcomes):
                await mutated_frames(cluster, FRAMES, SEED)
            chosen = islice(cycle(attacks()), ATTACKS)
            outcomes += [await run_attack(cluster, attack) for attack in chosen]
            with timed("connections", outcomes):
                count = await idle_connections(cluster, CONNECTIONS)
            with timed(f"{STUCK_PEERS} peers that never read", outcomes):
                await never_reading_peers(cluster, STUCK_PEERS)
            await asyncio.sleep(1)
        print(f"\n{table(outcomes, messages)}\n{count} of {CONNECTIONS} connections")
        for name, pid in servers.items():
            grown = anonymous_bytes(pid) - before[name]
            print(f"{name}: {grown / 1024**2:+.0f} MiB")
            assert grown < GROWTH_BYTES_MAX, name
        await check_canary(cluster, messages)
