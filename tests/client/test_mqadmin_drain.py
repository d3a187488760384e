"""drainBroker: the wait for consumers, and the write permission after each kind of end."""

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from core_broker.client import AdminClient, ConsumerSettings, ConsumeStatus, PushConsumer
from core_broker.message.model import Message, MessageExt
from core_broker.remoting.bodies import ConsumeFromWhere, TopicConfig
from tests.client.mqadmin_runs import Mqadmin
from tests.client.receiving import ClusterAddrs
from tests.support.cluster import ROOT, Cluster, Program, free_broker_port

DEADLINE_S = 120
POLL_S = 0.05
READABLE, WRITABLE = 4, 6
MESSAGES = 3


@pytest.fixture(scope="module")
def two_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with broker-a and broker-b."""
    folder = tmp_path_factory.mktemp("two")
    (folder / "b").mkdir()
    with Cluster(folder) as cluster:
        further = Program("core_broker", folder / "b")
        settings = {
            "broker_name": "broker-b",
            "listen_port": free_broker_port(),
            "store_path_root_dir": folder / "b" / "store",
        }
        further.start(cluster.broker_settings | settings)
        try:
            yield cluster
        finally:
            further.stop()


class Gated:
    """A group with a backlog on broker-b: the listener takes messages after `open.set()`."""

    def __init__(self, cluster: Cluster) -> None:
        name = secrets.token_hex(4)
        self.topic, self.group = f"topic-{name}", f"group-{name}"
        self.addr = ""
        self.open = asyncio.Event()
        settings = ConsumerSettings(
            commit_interval_s=0.1, consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        )
        self._consumer = PushConsumer(self.group, cluster.namesrv_addr, settings=settings)
        self._consumer.subscribe(self.topic)
        self._consumer.listener(self._take)
        self._cluster = cluster

    async def _take(self, messages: list[MessageExt]) -> ConsumeStatus:
        if any(message.body != b"first" for message in messages):
            await self.open.wait()
        return ConsumeStatus.CONSUME_SUCCESS

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Gated"]:
        async with AdminClient(self._cluster.namesrv_addr) as admin, asyncio.timeout(DEADLINE_S):
            while "broker-b" not in (info := await admin.cluster_info()).broker_addr_table:
                await asyncio.sleep(POLL_S)
            addr = info.broker_addr_table["broker-b"].master_addr
            assert addr
            self.addr = addr
            topic = TopicConfig(topic_name=self.topic, read_queue_nums=1, write_queue_nums=1)
            await admin.create_topic(addr, topic)
            await admin.send(addr, Message(self.topic, b"first"), 0)
            await self._consumer.start()
            try:
                while await self.backlog(admin) != 0:  # the offset of the first message
                    await asyncio.sleep(POLL_S)
                for _ in range(MESSAGES):
                    await admin.send(addr, Message(self.topic, b"next"), 0)
                yield self
            finally:
                self.open.set()
                await self._consumer.stop()

    async def backlog(self, admin: AdminClient) -> int | None:
        """The messages to consume, None before the first commit."""
        parts = (await admin.broker_consume_stats(self.addr)).get(self.group)
        entries = [each for part in parts or () for each in part.offset_table.values()]
        return sum(each.broker_offset - each.consumer_offset for each in entries) if parts else None

    async def perm(self) -> int:
        """The permission of the topic at the name server."""
        async with AdminClient(self._cluster.namesrv_addr) as admin:
            (queues,) = (await admin.topic_route(self.topic)).queue_datas
            return queues.perm


@asynccontextmanager
async def drain(cluster: Cluster, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "-m", "core_broker.mqadmin", "drainBroker", "-b", "broker-b"),
        *options,
        cwd=ROOT,
        env={**os.environ, "NAMESRV_ADDR": cluster.namesrv_addr},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def until_printed(process: asyncio.subprocess.Process, word: str) -> str:
    assert process.stdout is not None
    printed = ""
    while line := (await process.stdout.readline()).decode():
        printed += line
        if word in line:
            return line
    raise AssertionError(f"{word!r} is not in {printed!r}")


async def test_a_broker_is_drained_when_its_consumers_have_read_everything(
    two_brokers: Cluster,
) -> None:
    gated = Gated(two_brokers)
    async with gated.running(), drain(two_brokers, "-r", "0") as process:
        await until_printed(process, f"{gated.group}: {MESSAGES}")
        assert await gated.perm() == READABLE
        gated.open.set()
        assert "Stop the broker" in await until_printed(process, "broker-b is drained")
        assert await process.wait() == 0
        assert await gated.perm() == READABLE, "producers must not come back before the stop"
        await asyncio.to_thread(Mqadmin(two_brokers.namesrv_addr), "addWritePerm", "-b", "broker-b")
        assert await gated.perm() == WRITABLE


async def test_after_the_timeout_the_broker_is_writable_again(two_brokers: Cluster) -> None:
    gated = Gated(two_brokers)
    async with gated.running(), drain(two_brokers, "-r", "0", "-t", "1") as process:
        _, errors = await process.communicate()
        assert process.returncode == 1
        assert f"broker-b is not drained after 1 s: messages to consume: {gated.group}" in (
            errors.decode()
        )
        assert await gated.perm() == WRITABLE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_aborted_drain_gives_the_permission_back(
    two_brokers: Cluster, number: signal.Signals
) -> None:
    gated = Gated(two_brokers)
    async with gated.running(), drain(two_brokers) as process:
        await until_printed(process, gated.group)
        assert await gated.perm() == READABLE
        process.send_signal(number)
        _, errors = await process.communicate()
        assert (process.returncode, errors.decode().splitlines()[-1]) == (
            130,
            "mqadmin: interrupted",
        )
        assert "broker-b has its write permission again" in errors.decode()
        assert await gated.perm() == WRITABLE


async def test_groups_without_consumers_are_named_and_not_waited_for(two_brokers: Cluster) -> None:
    gated = Gated(two_brokers)
    mqadmin = Mqadmin(two_brokers.namesrv_addr)
    async with gated.running():
        pass
    async with AdminClient(two_brokers.namesrv_addr) as admin, asyncio.timeout(DEADLINE_S):
        await admin.send(gated.addr, Message(gated.topic, b"later"), 0)
        while await has_members(admin, gated):
            await asyncio.sleep(POLL_S)
    documents = await asyncio.to_thread(
        mqadmin.documents, "drainBroker", "-b", "broker-b", "-r", "0"
    )
    assert documents[-1]["drained"]
    assert documents[-1]["offlineGroups"][gated.group] >= 1
    await asyncio.to_thread(mqadmin, "addWritePerm", "-b", "broker-b")


async def has_members(admin: AdminClient, gated: Gated) -> bool:
    clients = (await admin.all_clients(gated.addr)).clients
    return any(gated.group in client.consumer_groups for client in clients)


def test_the_only_broker_is_drained_by_force_alone(quick_cluster: ClusterAddrs) -> None:
    mqadmin = Mqadmin(quick_cluster.namesrv_addr)
    refused = mqadmin("drainBroker", "-b", "broker-a", code=1)
    assert "the only broker of the cluster DefaultCluster" in refused.stderr
    refused = mqadmin("drainBroker", "-b", "broker-x", code=1)
    assert "knows no master of the broker broker-x" in refused.stderr
