"""A Java slave copies the log of a Gantry SYNC_MASTER, and serves it after the master's death.

Check 3 of replication: a Java broker with brokerRole=SLAVE finds the master through the name
server, fetches topics at the VIP port, groups and offsets at the listen port, and the log at the
replication port. `COPIED_MESSAGES` sets the number of messages before and after the slave connects.
"""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from core_broker.client import Producer
from core_broker.client.admin import AdminClient
from core_broker.client.results import SendResult, SendStatus
from core_broker.errors import GantryError
from core_broker.message.model import Message, MessageExt
from core_broker.remoting.bodies import SubscriptionGroupConfig, TopicConfig
from tests.compat import installing
from tests.compat.java_broker import STORE, JavaBroker
from tests.compat.kinds import TITLES
from tests.support.cluster import Cluster

TOPIC, QUEUES, GROUP = "Replicated", 3, "CG-replicated"
#: Messages before and after the slave connects, and their maximum size, bytes: several log files.
MESSAGES = int(os.environ.get("COPIED_MESSAGES", "80"))
BODY_BYTES_MAX = max(2_000, 4_800_000 // MESSAGES)
SEND_MS_MAX = 60_000
#: Longest time until a slave of RocketMQ 5 asks for topics and offsets: 60 s after its start, and
#: then each 60 s.
SECONDS_MAX = 240 + MESSAGES // 50

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 2 * SECONDS_MAX + MESSAGES)


@pytest.fixture(params=installing.JAVA_BROKER_VERSIONS)
def version(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> str:
    """A version of the Java broker; skips the test, with the reason, without an installation."""
    version: str = request.param
    kind = f"java-broker-{version}"
    record_property("client", kind)
    try:
        installing.java_broker_classpath(version)
    except installing.CannotInstall as reason:
        pytest.skip(f"{TITLES[kind]}: {reason}")
    return version


def test_a_java_slave_has_every_byte_of_a_killed_master(version: str, tmp_path: Path) -> None:
    with Cluster(
        tmp_path,
        broker_ip2="127.0.0.1",
        broker_role="SYNC_MASTER",
        slave_timeout=SEND_MS_MAX,
        ha_transfer_from_first_file=True,
        disk_space_warning_level_ratio=99,
        disk_space_clean_forcibly_ratio=99,
        **STORE,
    ) as cluster:
        slave = JavaBroker(
            version,
            tmp_path,
            tmp_path / "slave",
            cluster.namesrv_addr,
            broker_role="SLAVE",
            broker_id=1,
            slave_read_enable=True,
        )
        try:
            end = asyncio.run(_replicate_and_kill(cluster, slave))
        finally:
            slave.kill()
        assert _log(tmp_path / "slave", end) == _log(cluster.store_folder, end)


async def _replicate_and_kill(cluster: Cluster, slave: JavaBroker) -> int:
    """Send before and after the slave starts, kill the master, read; returns the log's end."""
    master, dice = cluster.broker_addr, random.Random(slave.version)
    async with AdminClient(cluster.namesrv_addr) as admin:
        config = TopicConfig(topic_name=TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        await admin.create_topic(master, config)
        await admin.create_group(master, SubscriptionGroupConfig(group_name=GROUP))
        async with Producer("PG-replicated", cluster.namesrv_addr) as producer:
            sent = [await _send(producer, dice) for _ in range(MESSAGES)]
            assert {result.status for result, _ in sent} == {SendStatus.SLAVE_NOT_AVAILABLE}
            await asyncio.to_thread(slave.start)
            await _until(lambda: _is_copied(admin, master), "the slave has the log")
            later = [await _send(producer, dice) for _ in range(MESSAGES)]
            assert {result.status for result, _ in later} == {SendStatus.SEND_OK}
        await admin.update_consumer_offset(master, GROUP, TOPIC, 1, 7)
        await _until(lambda: _is_synchronized(admin, slave.addr), "the slave has the tables")
        end = (await admin.ha_status(master)).master_commit_log_max_offset
        cluster.kill_broker()
        await _until(lambda: _has_all(admin, slave.addr, sent + later), "all messages")
    return end


async def _send(producer: Producer, dice: random.Random) -> tuple[SendResult, bytes]:
    body = dice.randbytes(dice.randrange(BODY_BYTES_MAX))
    return await producer.send(Message(TOPIC, body, tags="A"), timeout_ms=SEND_MS_MAX), body


async def _is_copied(admin: AdminClient, master: str) -> bool:
    slaves = (await admin.ha_status(master)).ha_connection_info
    return [each.diff for each in slaves] == [0]


async def _is_synchronized(admin: AdminClient, slave: str) -> bool:
    topics = await admin.topic_configs(slave)
    groups = await admin.group_configs(slave)
    offset = await admin.query_consumer_offset(slave, GROUP, TOPIC, 1)
    return TOPIC in topics and GROUP in groups and offset == 7


async def _has_all(admin: AdminClient, slave: str, sent: list[tuple[SendResult, bytes]]) -> bool:
    """Whether the slave serves every acknowledged message at its place."""
    stored: dict[int, list[MessageExt]] = {}
    for queue_id in range(QUEUES):
        found: list[MessageExt] = []
        stored[queue_id] = found
        offset, end = 0, await admin.max_offset(slave, TOPIC, queue_id)
        while offset < end:
            result = await admin.pull(slave, TOPIC, queue_id, offset, 32)
            found += result.messages
            offset = result.next_offset
    if sum(map(len, stored.values())) < len(sent):
        return False
    for answer, body in sent:
        message = stored[answer.queue.queue_id][answer.queue_offset]
        assert message.decompressed_body() == body
        assert message.offset_msg_id == answer.offset_msg_id
    return True


async def _until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    """Poll until the condition is true; a refused request is false."""
    deadline = asyncio.get_running_loop().time() + SECONDS_MAX
    problem: object = None
    while True:
        try:
            if await condition():
                return
        except GantryError as error:
            problem = error
        assert asyncio.get_running_loop().time() < deadline, (
            f"not in {SECONDS_MAX} s: {what}: {problem}"
        )
        await asyncio.sleep(0.2)


def _log(store: Path, end: int) -> bytes:
    """The bytes of the commit log before `end`."""
    files = sorted((store / "commitlog").iterdir())
    assert files[0].name == f"{0:020}"
    assert len(files) > 2
    return b"".join(file.read_bytes() for file in files)[:end]
