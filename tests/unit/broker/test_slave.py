"""A master and a slave in separate processes: copies, refusals, loss and return of the master."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from core_broker.client import ConsumeStatus, Producer, PushConsumer
from core_broker.client.admin import AdminClient
from core_broker.errors import GantryError
from core_broker.message.model import Message, MessageExt
from core_broker.remoting.bodies import SubscriptionGroupConfig, TopicConfig
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.command import RemotingCommand
from tests.support.broker_requests import send_header
from tests.support.cluster import Cluster, Program, free_broker_port
from tests.support.eventually import eventually

#: Bound of every wait, seconds.
WAIT_S = 60.0
SEND_MS_MAX = 20_000
TOPIC, QUEUES = "Copied", 3
SEGMENT_BYTES = 256 * 1024

pytestmark = pytest.mark.timeout(300)


class Pair:
    """A cluster whose broker is the master, and a slave."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.cluster = Cluster(
            folder,
            **settings,
            mapped_file_size_commit_log=SEGMENT_BYTES,
            flush_consumer_offset_interval=50,
            broker_ip2="127.0.0.1",
        )
        self._slave_folder = folder / "slave"
        self._slave_folder.mkdir()
        self.slave = Program("core_broker", self._slave_folder)
        self.settings: dict[str, Any] = self.cluster.broker_settings | {
            "broker_role": "SLAVE",
            "broker_id": 1,
            "listen_port": free_broker_port(),
            "store_path_root_dir": self._slave_folder / "store",
        }

    def stop(self) -> None:
        """Stop all programs."""
        self.slave.kill()
        self.cluster.stop()

    def start_slave(self) -> None:
        """Start the slave and wait until it serves."""
        self.slave.start(self.settings)

    @property
    def slave_addr(self) -> str:
        return f"127.0.0.1:{self.settings['listen_port']}"

    def varz(self) -> dict[str, Any]:
        """The slave's state of replication; empty while it cannot be read."""
        with suppress(OSError):
            port = self.slave.port("http: /readyz /metrics /varz")
            with urlopen(f"http://127.0.0.1:{port}/varz", timeout=60) as answer:
                found: dict[str, Any] = json.load(answer)["replication"]
                return found
        return {}

    def text(self, path: str) -> str:
        """The answer of the slave's side port."""
        port = self.slave.port("http: /readyz /metrics /varz")
        try:
            with urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
                return str(answer.read().decode())
        except HTTPError as error:
            return str(error.read().decode())

    async def copied(self, admin: AdminClient) -> None:
        """Wait until the slave has all bytes of the master."""
        table = await admin.runtime_info(self.cluster.broker_addr)
        end = int(table["commitLogMaxOffset"])
        await eventually(lambda: self.varz().get("end", -1) >= end, WAIT_S)

    def logs(self) -> tuple[bytes, bytes]:
        """The commit logs of both."""
        master, slave = (
            b"".join(file.read_bytes() for file in sorted((root / "commitlog").iterdir()))
            for root in (self.cluster.store_folder, self._slave_folder / "store")
        )
        return master, slave


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    try:
        yield made
    finally:
        made.stop()


async def fill(pair: Pair, admin: AdminClient, count: int, first: int = 0) -> None:
    """Create topic and group, and send numbered messages to all queues."""
    config = TopicConfig(topic_name=TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
    await admin.create_topic(pair.cluster.broker_addr, config)
    group = SubscriptionGroupConfig(group_name="CG", retry_max_times=3)
    await admin.create_group(pair.cluster.broker_addr, group)
    async with Producer("PG", pair.cluster.namesrv_addr) as producer:
        for number in range(first, first + count):
            message = Message(TOPIC, b"%d" % number + bytes(2_000), keys=[f"k{number}"])
            await producer.send(message, timeout_ms=SEND_MS_MAX)


class Reading:
    """A push consumer that collects the numbers of its messages."""

    def __init__(self, namesrv_addr: str, group: str) -> None:
        self.numbers: list[int] = []
        self._consumer = PushConsumer(group, namesrv_addr)
        self._consumer.subscribe(TOPIC, "*")
        self._consumer.listener(self._take)

    async def _take(self, messages: list[MessageExt]) -> ConsumeStatus:
        self.numbers += [int(each.body.rstrip(b"\0")) for each in messages]
        return ConsumeStatus.CONSUME_SUCCESS

    async def __aenter__(self) -> "Reading":
        await self._consumer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._consumer.stop()


async def test_a_slave_copies_all_and_takes_over_the_reads(pair: Pair) -> None:
    count = 400
    async with AdminClient(pair.cluster.namesrv_addr) as admin:
        await fill(pair, admin, count)
        # Started later: the slave copies the whole log, also the segments before the newest.
        pair.start_slave()
        await pair.copied(admin)
        master, slave = pair.logs()
        end = pair.varz()["end"]
        assert end > 2 * SEGMENT_BYTES
        assert master[:end] == slave[:end]

        async def synchronized() -> bool:
            topics = await admin.topic_configs(pair.slave_addr)
            groups = await admin.group_configs(pair.slave_addr)
            return TOPIC in topics and "CG" in groups

        await eventually(synchronized, WAIT_S)
        found = await admin.query_message(pair.slave_addr, TOPIC, "k7")
        assert [each.body.rstrip(b"\0") for each in found] == [b"7"]
        metrics = pair.text("/metrics")
        assert 'state="transferring"' in metrics
        assert "rocketmq_ha_lag_bytes" in metrics

        pair.cluster.kill_broker()
        async with Reading(pair.cluster.namesrv_addr, "CG") as reading:
            await eventually(lambda: len(set(reading.numbers)) == count, WAIT_S)
        assert set(reading.numbers) == set(range(count))
        await eventually(lambda: pair.varz().get("state") == "waiting", WAIT_S)
        assert "replication" in pair.text("/readyz")

        # Committed to the slave; the master returns without these commits.
        async def committed(addr: str) -> int:
            total = 0
            for queue_id in range(QUEUES):
                with suppress(GantryError):
                    total += await admin.query_consumer_offset(addr, "CG", TOPIC, queue_id) or 0
            return total

        assert await committed(pair.slave_addr) == count
        pair.cluster.restart_broker()
        # The master has asked the slave before it served.
        assert await committed(pair.cluster.broker_addr) == count
        await eventually(lambda: pair.varz().get("state") == "transferring", WAIT_S)
        await fill(pair, admin, 10, first=count)
        await pair.copied(admin)
        assert await committed(pair.slave_addr) == count
        master, slave = pair.logs()
        end = pair.varz()["end"]
        assert master[:end] == slave[:end]


async def test_a_consumer_of_cold_data_reads_from_the_slave(tmp_path: Path) -> None:
    """With a ratio of 0 all data is cold, so every answer of the master names the slave."""
    settings = {"slave_read_enable": True, "access_message_in_memory_max_ratio": 0}
    pair = Pair(tmp_path, **settings)
    try:
        async with AdminClient(pair.cluster.namesrv_addr) as admin:
            await fill(pair, admin, 50)
            pair.start_slave()
            await pair.copied(admin)

            async def served() -> int:
                table = await admin.runtime_info(pair.slave_addr)
                return int(table["msgGetTotalTodayNow"])

            assert await served() == 0
            for queue_id in range(QUEUES):
                # A group without an offset begins behind cold data.
                await admin.update_consumer_offset(
                    pair.cluster.broker_addr, "CG", TOPIC, queue_id, 0
                )
            async with Reading(pair.cluster.namesrv_addr, "CG") as reading:
                await eventually(lambda: len(set(reading.numbers)) == 50, WAIT_S)
                await fill(pair, admin, 50, first=50)
                await eventually(lambda: len(set(reading.numbers)) == 100, WAIT_S)
            assert await served() > 0
    finally:
        pair.stop()


async def test_no_path_of_a_slave_takes_a_send(pair: Pair) -> None:
    """The first send takes the slow path; later ones would take a fast path."""
    async with AdminClient(pair.cluster.namesrv_addr) as admin:
        await fill(pair, admin, 1)
        pair.start_slave()
        await pair.copied(admin)
        end = pair.varz()["end"]
        client = RemotingClient(name="test")
        try:
            for _ in range(50):
                command = RemotingCommand.request(310, send_header(TOPIC), b"x")
                answer = await client.invoke(pair.slave_addr, command, SEND_MS_MAX)
                assert answer.code == 14, answer.remark
        finally:
            await client.close()
        assert pair.varz()["end"] == end


async def test_a_slave_finds_a_master_that_starts_later(pair: Pair) -> None:
    """Without forceRegister, too: only a registration names the master."""
    async with AdminClient(pair.cluster.namesrv_addr) as admin:

        async def is_gone() -> bool:
            return not (await admin.cluster_info()).broker_addr_table

        pair.cluster.kill_broker()
        await eventually(is_gone, WAIT_S)
        pair.settings["force_register"] = False
        pair.start_slave()
        assert pair.varz()["state"] == "no_master"
        assert "the master is unknown" in pair.text("/readyz")
        pair.cluster.restart_broker()
        await eventually(lambda: pair.varz().get("state") == "transferring", WAIT_S)
        info = await admin.ha_status(pair.slave_addr)
        assert not info.master
        assert info.ha_client_runtime_info.master_addr == pair.varz()["ha_addr"]
        route = (await admin.cluster_info()).broker_addr_table["broker-a"]
        assert route.broker_addrs == {0: pair.cluster.broker_addr, 1: pair.slave_addr}


async def test_a_master_with_a_shorter_log_is_refused(pair: Pair) -> None:
    """As after a power cut of the master, or with another broker in its place."""
    async with AdminClient(pair.cluster.namesrv_addr) as admin:
        await fill(pair, admin, 50)
        pair.start_slave()
        await pair.copied(admin)
        _, before = pair.logs()
        pair.cluster.kill_broker()
        store = pair.cluster.store_folder
        store.rename(store.with_name("lost"))
        pair.cluster.restart_broker()
        await eventually(lambda: pair.varz().get("state") == "diverged", WAIT_S)
        assert "diverged" in pair.text("/readyz")
        # Messages of the new master do not reach the slave.
        await fill(pair, admin, 80)
        assert pair.logs()[1] == before
        assert "move its store folder away" in pair.slave.printed
