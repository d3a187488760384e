"""Updates and the way back: old stores are opened, and rolling updates lose nothing."""

import asyncio
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.support.cluster import ROOT, Cluster, Program
from tests.support.failovers import WAIT_S, Drill, verify
from tests.support.load import Load
from tests.support.old_versions import old_tree
from tests.support.replica_set import Replica, ReplicaSet
from tests.up.kept_messages import check, write
from tests.up.record_store import FIRST_STORE

LOADED = 50
SEED = 7

pytestmark = pytest.mark.timeout(600)


def verify_store(store: Path) -> None:
    command = [sys.executable, "-m", "core_broker.mqstore", "verify", str(store)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_store_of_the_first_broker_is_opened(tmp_path: Path) -> None:
    with tarfile.open(FIRST_STORE) as archive:
        archive.extractall(tmp_path, filter="data")
    with Cluster(tmp_path) as cluster:
        asyncio.run(check(cluster.namesrv_addr, cluster.broker_addr, [1]))
        asyncio.run(write(cluster.namesrv_addr, cluster.broker_addr, 2))
        asyncio.run(check(cluster.namesrv_addr, cluster.broker_addr, [1, 2]))
    verify_store(tmp_path / "store")


def test_an_update_and_the_way_back_keep_everything(tmp_path: Path) -> None:
    old = old_tree(tmp_path / "old")
    with Cluster(tmp_path, root=old) as cluster:
        addrs = (cluster.namesrv_addr, cluster.broker_addr)
        asyncio.run(write(*addrs, 1))
        for batch, root in ((2, ROOT), (3, old), (4, ROOT)):
            cluster.stop_broker()
            cluster.broker = Program("core_broker", tmp_path, root)
            cluster.begin_broker()
            cluster.broker.wait_ready()
            asyncio.run(check(*addrs, range(1, batch)))
            asyncio.run(write(*addrs, batch))
        asyncio.run(check(*addrs, range(1, 5)))
    verify_store(tmp_path / "store")


async def test_replicas_are_updated_one_after_the_other_under_load(tmp_path: Path) -> None:
    old = old_tree(tmp_path / "old")
    with ReplicaSet(tmp_path, min_in_sync_replicas=2) as replicas:
        drill = Drill(replicas, SEED)
        for replica in replicas.replicas:
            replica.program = Program("core_broker", replica.store.parent, old)
        master = await drill.start()
        order = [each for each in replicas.replicas if each is not master] + [master]
        for replica in order:
            await update(drill, await drill.whole(), replica)
        await drill.check()
        assert drill.history.acknowledged >= LOADED * len(order)
        await drill.stop()
        for replica in replicas.replicas:
            verify(replica)


async def update(drill: Drill, master: Replica, replica: Replica) -> None:
    """Stop a replica with SIGTERM in the middle of a load, and start it with the new program."""
    load = Load(master.addr, drill.history, drill.dice)
    running = asyncio.create_task(load.run())
    await load.acknowledged(LOADED, WAIT_S)
    assert await asyncio.to_thread(replica.program.stop) == 0
    replica.program = Program("core_broker", replica.store.parent)
    await asyncio.to_thread(replica.start)
    load.stop()
    await running
