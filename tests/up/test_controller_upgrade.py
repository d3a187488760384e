"""Controllers are updated one after the other, and back, while replicas fail over."""

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.support.cluster import ROOT, Program
from tests.support.eventually import eventually
from tests.support.failovers import WAIT_S, Drill, verify
from tests.support.old_versions import old_tree
from tests.support.replica_set import SIDE_PORT, ReplicaSet

SEED = 11

pytestmark = pytest.mark.timeout(900)


async def test_controllers_are_updated_one_after_the_other_and_back(tmp_path: Path) -> None:
    old = old_tree(tmp_path / "old")
    with ReplicaSet(tmp_path, controllers=3, controller_root=old) as replicas:
        drill = Drill(replicas, SEED)
        await drill.start()
        await drill.kill(await drill.whole())
        epoch = await epoch_of(drill)
        for root in (ROOT, old, ROOT):
            await roll(replicas, root)
            # The sets, ids and epochs are in the files of the members: the next master is newer.
            await drill.kill(await drill.whole())
            assert await epoch_of(drill) > epoch
            epoch = await epoch_of(drill)
            await drill.check()
        await drill.stop()
        for replica in replicas.replicas:
            verify(replica)


async def epoch_of(drill: Drill) -> int:
    """The epoch of the master of a whole set."""
    return int((await drill.whole()).varz()["replica_set"]["epoch"])


async def roll(replicas: ReplicaSet, root: Path) -> None:
    """Start each controller anew with the programs of another version: followers, then leader."""
    for number in sorted(range(3), key=lambda number: leads(replicas, number)):
        before = raft(replicas.controllers[number][0])
        program = await asyncio.to_thread(replicas.replace_controller, number, root)
        await eventually(lambda: is_whole(replicas), WAIT_S)
        # The log of the other version, not a copy of a peer's snapshot.
        assert raft(program)["last_index"] >= before["last_index"]
        assert raft(program)["events"].get("snapshots_installed", 0) == 0


def raft(program: Program) -> dict[str, Any]:
    """The state of a controller's member of the group."""
    with urlopen(f"http://127.0.0.1:{program.port(SIDE_PORT)}/varz", timeout=WAIT_S) as answer:
        found: dict[str, Any] = json.load(answer)["raft"]
    return found


def leads(replicas: ReplicaSet, number: int) -> bool:
    return bool(raft(replicas.controllers[number][0])["role"] == "leader")


def is_whole(replicas: ReplicaSet) -> bool:
    """Whether one member leads, and the others have its log."""
    states = [raft(program) for program, _ in replicas.controllers]
    leaders = [each for each in states if each["role"] == "leader"]
    if len(leaders) != 1:
        return False
    return all(each["applied_index"] >= leaders[0]["commit_index"] for each in states)
