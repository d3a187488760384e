"""A store folder is opened by a Java broker and by Gantry's in turn, without loss.

Test 12 of the reliability list, upgrade and downgrade: each broker reads all messages of the
previous broker and writes more, after an orderly stop and after kill -9.
"""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from core_broker.client import Producer
from core_broker.client.admin import AdminClient
from core_broker.errors import RequestRefused, StoreLocked
from core_broker.message.ids import parse_offset_msg_id
from core_broker.message.model import Message, MessageExt
from core_broker.mqstore.folder import StoreFolder
from core_broker.mqstore.report import Report
from core_broker.mqstore.sizes import find_sizes
from core_broker.mqstore.verifying import verify
from core_broker.remoting.bodies import TopicConfig
from core_broker.store.files import DiskFiles
from tests.compat import installing
from tests.compat.java_broker import STORE, JavaBroker
from tests.support.cluster import Program, free_broker_port

TOPIC, BATCHES, DELAYED = "Cross", "CrossBatch", "CrossDelayed"
QUEUES = 3
#: Number of messages and bytes per body: together more than one commit log segment.
MESSAGES, BODY_BYTES = 60, 20_000
#: Delay levels: the running broker delivers the first, no broker delivers the last in time.
LEVEL_SOON, LEVEL_LATE = 1, 18
SECONDS_MAX = 60
SEND_MS_MAX = 20_000

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 120)


class Sent(NamedTuple):
    """An acknowledged message."""

    topic: str
    queue_id: int
    queue_offset: int
    offset_msg_id: str
    msg_id: str
    key: str
    body: bytes


class Broker(Protocol):
    """Operations of a Java broker and of Gantry's broker."""

    addr: str

    def start(self) -> None: ...
    def stop(self) -> object: ...
    def kill(self) -> None: ...


class OurBroker:
    """Gantry's broker on the same folder."""

    def __init__(self, folder: Path, store: Path, namesrv_addr: str) -> None:
        port = free_broker_port()
        self.addr = f"127.0.0.1:{port}"
        self._program = Program("core_broker", folder)
        self._settings = {
            "broker_name": "broker-a",
            "broker_ip1": "127.0.0.1",
            "bind_address": "127.0.0.1",
            "listen_port": port,
            "http_port": 0,
            "namesrv_addr": namesrv_addr,
            "store_path_root_dir": store,
            "disk_space_warning_level_ratio": 99,
            "disk_space_clean_forcibly_ratio": 99,
            **STORE,
        }

    def start(self) -> None:
        """Start the broker and wait until it serves."""
        self._program.start(self._settings)

    def stop(self) -> None:
        """Stop the broker with SIGTERM; the exit code must be 0."""
        assert self._program.stop() == 0

    def kill(self) -> None:
        """Stop the broker with SIGKILL."""
        self._program.kill()


class Migration:
    """One store folder that several brokers open in turn."""

    def __init__(self, store: Path, namesrv_addr: str, *, is_killed: bool) -> None:
        self.store = store
        self._namesrv_addr = namesrv_addr
        self.is_killed = is_killed
        self._sent: list[Sent] = []
        self._delayed: set[str] = set()

    def open_with(self, broker: Broker, name: str) -> None:
        """Open the folder with a broker, read all earlier messages, and send more."""
        broker.start()
        try:
            assert StoreFolder(self.store).is_in_use()
            with pytest.raises(StoreLocked):
                DiskFiles().lock(self.store / "lock")
            asyncio.run(self._read_and_write(broker.addr, name))
        except BaseException:
            broker.kill()
            raise
        if self.is_killed:
            broker.kill()
        else:
            broker.stop()

    def verified(self) -> Report:
        """Verify the folder as `mqstore verify` does."""
        folder = StoreFolder(self.store)
        return verify(folder, find_sizes(folder, {}))

    async def _read_and_write(self, addr: str, name: str) -> None:
        async with AdminClient(self._namesrv_addr) as admin:
            await self._read(admin, addr)
            for topic, queues in ((TOPIC, QUEUES), (BATCHES, 1), (DELAYED, 1)):
                config = TopicConfig(
                    topic_name=topic, read_queue_nums=queues, write_queue_nums=queues
                )
                await admin.create_topic(addr, config)
            async with Producer("PG-cross", self._namesrv_addr) as producer:
                await _until(lambda: _is_routed(admin, addr), "a route to the broker")
                await self._write(producer, name)
            await self._read(admin, addr)

    # -- write --

    async def _write(self, producer: Producer, name: str) -> None:
        generator = random.Random(name)
        for number in range(MESSAGES):
            key = f"{name}-{number}"
            message = Message(TOPIC, generator.randbytes(BODY_BYTES), tags="A", keys=[key, "all"])
            # A long timeout, since a retried send may be stored twice.
            result = await producer.send(message, timeout_ms=SEND_MS_MAX)
            self._sent.append(
                Sent(
                    TOPIC,
                    result.queue.queue_id,
                    result.queue_offset,
                    result.offset_msg_id,
                    result.msg_id,
                    key,
                    message.body,
                )
            )
        for level in (LEVEL_SOON, LEVEL_LATE):
            key = f"{name}-delay-{level}"
            message = Message(DELAYED, b"later", keys=key, delay_level=level)
            await producer.send(message, timeout_ms=SEND_MS_MAX)
            if level == LEVEL_SOON:
                self._delayed.add(key)
        batch = [Message(BATCHES, b"%d" % n, keys=f"{name}-batch-{n}") for n in range(10)]
        result = await producer.send_batch(batch, timeout_ms=SEND_MS_MAX)
        ids = result.offset_msg_id.split(",")
        for number, message in enumerate(batch):
            offset = result.queue_offset + number
            position = (BATCHES, result.queue.queue_id, offset, ids[number])
            self._sent.append(Sent(*position, "", message.keys[0], message.body))

    # -- read --

    async def _read(self, admin: AdminClient, addr: str) -> None:
        if not self._sent:
            return
        for topic, queues in ((TOPIC, QUEUES), (BATCHES, 1)):
            for queue_id in range(queues):
                found = await _pull_all(admin, addr, topic, queue_id)
                self._compare(topic, queue_id, found)
        for each in (self._sent[0], self._sent[MESSAGES // 2], self._sent[-1]):
            await self._look_up(admin, addr, each)
        await _until(lambda: self._are_delivered(admin, addr), "the delayed messages")

    def _compare(self, topic: str, queue_id: int, found: list[MessageExt]) -> None:
        assert [each.queue_offset for each in found] == list(range(len(found)))
        mine = [each for each in self._sent if (each.topic, each.queue_id) == (topic, queue_id)]
        assert len(found) == len(mine)
        for sent in mine:
            stored = found[sent.queue_offset]
            assert stored.decompressed_body() == sent.body
            assert stored.keys[0] == sent.key
            assert stored.offset_msg_id == sent.offset_msg_id
            assert not sent.msg_id or stored.msg_id == sent.msg_id

    async def _look_up(self, admin: AdminClient, addr: str, sent: Sent) -> None:
        """Query a message by key, by unique key and by offset id, until the index has it.

        After a crash Java indexes the last message again, and a query returns the message twice.
        """

        async def by_key() -> bool:
            found = await admin.query_message(addr, sent.topic, sent.key)
            return {each.offset_msg_id for each in found} == {sent.offset_msg_id}

        async def by_unique_key() -> bool:
            found = await admin.query_message(addr, sent.topic, sent.msg_id, unique=True)
            return {each.decompressed_body() for each in found} == {sent.body}

        await _until(by_key, f"{sent.key} by key")
        if sent.msg_id:
            await _until(by_unique_key, f"{sent.key} by its unique key")
        _, _, offset = parse_offset_msg_id(sent.offset_msg_id)
        message = await admin.view_message(addr, offset)
        assert (message.topic, message.decompressed_body()) == (sent.topic, sent.body)

    async def _are_delivered(self, admin: AdminClient, addr: str) -> bool:
        found = await _pull_all(admin, addr, DELAYED, 0)
        keys = {each.keys[0] for each in found}
        assert not any(key.endswith(f"-{LEVEL_LATE}") for key in keys)
        return keys == self._delayed


async def _is_routed(admin: AdminClient, addr: str) -> bool:
    try:
        route = await admin.topic_route(DELAYED)
    except RequestRefused:
        return False
    return any(addr in each.broker_addrs.values() for each in route.broker_datas)


async def _pull_all(admin: AdminClient, addr: str, topic: str, queue_id: int) -> list[MessageExt]:
    """Read a queue from its first message to its last."""
    offset = await admin.min_offset(addr, topic, queue_id)
    end = await admin.max_offset(addr, topic, queue_id)
    found: list[MessageExt] = []
    while offset < end:
        result = await admin.pull(addr, topic, queue_id, offset, 32)
        assert result.next_offset > offset, result
        found += result.messages
        offset = result.next_offset
    return found


async def _until(condition: Callable[[], object], what: str) -> None:
    """Poll until the condition is true; fail after the deadline."""
    deadline = asyncio.get_running_loop().time() + SECONDS_MAX
    while not await condition():  # type: ignore[misc]
        assert asyncio.get_running_loop().time() < deadline, f"not in {SECONDS_MAX} s: {what}"
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_12_our_folder_is_opened_by_java_and_by_ours_again(
    version: str, is_killed: bool, tmp_path: Path, namesrv_addr: str
) -> None:
    migration = Migration(tmp_path / "store", namesrv_addr, is_killed=is_killed)
    ours = OurBroker(tmp_path, migration.store, namesrv_addr)
    java = JavaBroker(version, tmp_path, migration.store, namesrv_addr)
    migration.open_with(ours, "first")
    migration.open_with(java, "second")
    assert_clean_after_start(migration, ours)


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_12_a_folder_of_java_is_opened_by_ours_and_by_java_again(
    version: str, is_killed: bool, tmp_path: Path, namesrv_addr: str
) -> None:
    migration = Migration(tmp_path / "store", namesrv_addr, is_killed=is_killed)
    ours = OurBroker(tmp_path, migration.store, namesrv_addr)
    java = JavaBroker(version, tmp_path, migration.store, namesrv_addr)
    migration.open_with(java, "first")
    assert migration.verified().problems == []
    migration.open_with(ours, "second")
    migration.open_with(java, "third")
    assert_clean_after_start(migration, ours)


def assert_clean_after_start(migration: Migration, ours: OurBroker) -> None:
    """Open the folder with our broker again: no lost message, and no problem for mqstore."""
    migration.open_with(ours, "last")
    if migration.is_killed:
        ours.start()
        ours.stop()
    report = migration.verified()
    assert report.problems == []
    assert len(list((migration.store / "commitlog").iterdir())) > 2
