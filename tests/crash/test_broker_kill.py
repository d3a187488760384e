"""kill -9 of a broker under load, repeatedly, at random moments, also during the start.

`RUNS` sets how many kills, `FIRST_SEED` where the random moments begin; a failure prints the
command for a repetition. Under SYNC_FLUSH and ASYNC_FLUSH no acknowledged message may be missing
afterwards, since the page cache survives the process.
"""

import asyncio
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from core_broker.errors import TransportError
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import UpdateConsumerOffsetRequestHeader
from tests.support.broker_requests import pull_header, send_header
from tests.support.cluster import PATIENT, ROOT, Cluster
from tests.support.eventually import eventually
from tests.support.history import History
from tests.support.load import Load, read_topic

pytestmark = pytest.mark.crash

RUNS = int(os.environ.get("RUNS", "3"))
FIRST_SEED = int(os.environ.get("FIRST_SEED", "0"))
#: Number of lives of one store.
LIVES_PER_STORE = 20
ACKNOWLEDGED_MAX = 1500
#: One of this number of lives ends during the start of the broker.
EARLY_KILL_SHARE = 0.2
START_S_MAX = 1.2
#: Topics that are created at once, and the number of acknowledged topics before the kill.
CREATIONS, KILLED_AFTER = 400, 100
#: Small files, so that every life fills several, and frequent checkpoints, so that kills hit some.
SETTINGS = PATIENT | {
    "mapped_file_size_commit_log": 256 * 1024,
    "mapped_file_size_consume_queue": 20 * 500,
    "max_hash_slot_num": 500,
    "max_index_num": 2000,
    "flush_interval_consume_queue": 100,
    "flush_consume_queue_thorough_interval": 300,
    "disk_space_warning_level_ratio": 100,
    "disk_space_clean_forcibly_ratio": 100,
    "disk_max_used_space_ratio": 95,
    "delete_when": "",
}


async def live_and_die(cluster: Cluster, history: History, generator: random.Random) -> None:
    """Load the broker, and kill the process at a moment determined by the seed."""
    load = Load(cluster.broker_addr, history, generator)
    sending = asyncio.create_task(load.run())
    await load.acknowledged(generator.randint(1, ACKNOWLEDGED_MAX))
    cluster.kill_broker()
    await sending
    assert not load.refusals


def kill_while_starting(cluster: Cluster, generator: random.Random) -> None:
    cluster.begin_broker()
    time.sleep(generator.uniform(0.2, START_S_MAX))  # the moment of the kill
    cluster.kill_broker()


async def check(cluster: Cluster, history: History) -> None:
    """Compare the queues with the history; then verify the files."""
    verdict = history.check(await read_topic(cluster.broker_addr))
    assert verdict.is_clean, verdict.problems[:20]
    cluster.stop_broker()
    verify(cluster.store_folder)


def verify(folder: Path) -> None:
    """Let `mqstore verify` compare queues and index with the log, record by record."""
    command = [sys.executable, "-m", "core_broker.mqstore", "verify", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@contextmanager
def repeatable(seed: int, flush: str) -> Iterator[None]:
    """Print the command for a repetition: the lives of the store from the first on."""
    first = seed - (seed - FIRST_SEED) % LIVES_PER_STORE
    try:
        yield
    except BaseException as failure:
        failure.add_note(
            f"seed {seed}; repeat it: make crash RUNS={seed - first + 1}"
            f' FIRST_SEED={first} ARGS="-k reliability_0{1 + (flush == "ASYNC_FLUSH")}"'
        )
        raise


async def kill_again_and_again(folder: Path, flush: str) -> None:
    history = History()
    cluster = Cluster(folder, flush_disk_type=flush, **SETTINGS)
    try:
        for seed in range(FIRST_SEED, FIRST_SEED + RUNS):
            generator = random.Random(seed)
            with repeatable(seed, flush):
                await live_and_die(cluster, history, generator)
                if generator.random() < EARLY_KILL_SHARE:
                    kill_while_starting(cluster, generator)
                cluster.restart_broker()
                await check(cluster, history)
            if (seed - FIRST_SEED) % LIVES_PER_STORE == LIVES_PER_STORE - 1:
                shutil.rmtree(cluster.store_folder)
                history = History()
            cluster.restart_broker()
    finally:
        cluster.stop()


@pytest.mark.timeout(120 + 15 * RUNS)
async def test_reliability_01_kill_under_sync_flush(tmp_path: Path) -> None:
    await kill_again_and_again(tmp_path, "SYNC_FLUSH")


@pytest.mark.timeout(120 + 15 * RUNS)
async def test_reliability_02_kill_under_async_flush(tmp_path: Path) -> None:
    """The test detects acknowledgements of messages in process memory."""
    await kill_again_and_again(tmp_path, "ASYNC_FLUSH")


async def test_tables_survive_a_kill(tmp_path: Path) -> None:
    """Topics are on the disk before their first use; offsets at most one flush interval later."""
    with Cluster(tmp_path, flush_consumer_offset_interval=50) as cluster:
        client = RemotingClient(name="client")
        addr = cluster.broker_addr
        for number in range(5):
            command = RemotingCommand.request(310, send_header(f"Auto{number}"), b"x")
            assert (await client.invoke(addr, command)).code == 0
        offset = UpdateConsumerOffsetRequestHeader(
            consumer_group="CG", topic="Auto0", queue_id=0, commit_offset=1
        )
        assert (await client.invoke(addr, RemotingCommand.request(15, offset))).code == 0
        file = cluster.store_folder / "config" / "consumerOffset.json"
        await eventually(lambda: file.exists() and b"Auto0@CG" in file.read_bytes())
        await client.close()
        cluster.kill_broker()
        cluster.restart_broker()
        client = RemotingClient(name="another client")
        for number in range(5):
            command = RemotingCommand.request(11, pull_header(f"Auto{number}"))
            assert (await client.invoke(addr, command)).code == 0
        command = RemotingCommand.request(
            14, {"consumerGroup": "CG", "topic": "Auto0", "queueId": "0"}
        )
        assert (await client.invoke(addr, command)).ext_fields == {"offset": "1"}
        await client.close()


async def test_acknowledged_creations_survive_a_kill_during_saves(tmp_path: Path) -> None:
    """Simultaneous creations share saves of topics.json; each is acknowledged after its save."""
    with Cluster(tmp_path) as cluster:
        client = RemotingClient(name="client")
        acknowledged: list[str] = []

        async def create(topic: str) -> None:
            command = RemotingCommand.request(310, send_header(topic), b"x")
            with suppress(TransportError):
                assert (await client.invoke(cluster.broker_addr, command)).code == 0
                acknowledged.append(topic)
                if len(acknowledged) == KILLED_AFTER:
                    cluster.kill_broker()

        await asyncio.gather(*(create(f"Auto{number}") for number in range(CREATIONS)))
        await client.close()
        assert len(acknowledged) >= KILLED_AFTER
        cluster.restart_broker()
        client = RemotingClient(name="another client")
        for topic in acknowledged:
            answer = await client.invoke(
                cluster.broker_addr, RemotingCommand.request(11, pull_header(topic))
            )
            assert (answer.code, answer.body != b"") == (0, True), topic
        await client.close()
