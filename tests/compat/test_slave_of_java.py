"""A Gantry slave of a Java master: equal stores, and reads after the death of the master.

`COPIED_MESSAGES` sets the number of messages before and after the slave's start.
"""

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core_broker.client import LocalTransactionState, TransactionProducer
from core_broker.client.admin import AdminClient
from core_broker.errors import GantryError
from core_broker.message.model import Message
from core_broker.remoting.bodies import TopicConfig
from tests.compat import installing
from tests.compat.conftest import Maker
from tests.compat.java_broker import STORE, JavaBroker
from tests.support.cluster import Program, free_broker_port
from tests.support.eventually import eventually

StartClients = Callable[[str, str], Maker]

TOPIC, QUEUES = "Copied", 3
#: Messages before and after the slave's start; maximum body, bytes: several segments in any case.
MESSAGES = int(os.environ.get("COPIED_MESSAGES", "80"))
BODY_BYTES_MAX = max(1_000, 3_200_000 // MESSAGES)
#: Period, messages: one is delayed, one is in a transaction, one comes before a rolled back one.
KINDS = 10
#: Bound of every wait, seconds.
WAIT_S = 90.0 + MESSAGES / 50
SEND_MS_MAX = 20_000
#: Bytes of a unit of a consume queue.
UNIT_BYTES = 20
#: The group that consumes the first messages from the master and the others from the slave.
GROUP = "CG-copied"
#: Consumer and master, each version once.
PAIRS = tuple(zip(("java", "java5"), installing.JAVA_BROKER_VERSIONS, strict=True))

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 400 + MESSAGES)


class Slave:
    """A Gantry slave in a process of its own."""

    def __init__(self, folder: Path, namesrv_addr: str) -> None:
        port = free_broker_port()
        self.addr = f"127.0.0.1:{port}"
        self.store = folder / "slave"
        self.program = Program("core_broker", folder)
        self._settings: dict[str, Any] = STORE | {
            "broker_name": "broker-a",
            "broker_role": "SLAVE",
            "broker_id": 1,
            "broker_ip1": "127.0.0.1",
            "bind_address": "127.0.0.1",
            "listen_port": port,
            "http_port": 0,
            "namesrv_addr": namesrv_addr,
            "store_path_root_dir": self.store,
            "disk_space_warning_level_ratio": 99,
            "disk_space_clean_forcibly_ratio": 99,
        }

    def start(self) -> None:
        """Start the slave and wait until it serves."""
        self.program.start(self._settings)


@pytest.fixture
def master(version: str, tmp_path: Path, namesrv_addr: str) -> Iterator[JavaBroker]:
    """A running Java master."""
    broker = JavaBroker(
        version,
        tmp_path,
        tmp_path / "master",
        namesrv_addr,
        wait_time_mills_in_send_queue=SEND_MS_MAX,
    )
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


@pytest.fixture
def slave(tmp_path: Path, namesrv_addr: str) -> Iterator[Slave]:
    """A slave that has not started."""
    made = Slave(tmp_path, namesrv_addr)
    try:
        yield made
    finally:
        made.program.kill()
        if made.program.output.exists():
            print(made.program.printed)  # shown with a failed test


def log_bytes(store: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted((store / "commitlog").iterdir()))


def queue_bytes(store: Path, queue_id: int, units: int) -> bytes:
    """The first units of a consume queue: offsets, sizes and tags codes."""
    files = sorted((store / "consumequeue" / TOPIC / str(queue_id)).iterdir())
    return b"".join(file.read_bytes() for file in files)[: units * UNIT_BYTES]


def _is_equal(units: bytes, store: Path, queue_id: int, count: int) -> bool:
    return queue_bytes(store, queue_id, count) == units


async def log_end(admin: AdminClient, addr: str) -> int:
    """The end of a broker's log."""
    return int((await admin.runtime_info(addr))["commitLogMaxOffset"])


async def master_log_end(admin: AdminClient, master: JavaBroker) -> int:
    """The end of the master's log. A Java broker fails until it has sampled its rates once."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return await log_end(admin, master.addr)
        except GantryError:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.1)


async def send(namesrv_addr: str, first: int) -> None:
    """Send messages with tags and keys, some delayed or in transactions."""
    states = {3: LocalTransactionState.COMMIT_MESSAGE, 4: LocalTransactionState.ROLLBACK_MESSAGE}
    async with TransactionProducer(
        "PG-copied",
        namesrv_addr,
        execute=lambda _message, kind: states[kind],
        check=lambda _message: LocalTransactionState.UNKNOW,
    ) as producer:
        for number in range(first, first + MESSAGES):
            kind = number % KINDS
            message = message_of(number, delay_level=int(kind == 0))
            if kind == 3:
                await producer.send_in_transaction(message, 3, timeout_ms=SEND_MS_MAX)
                continue
            await producer.send(message, timeout_ms=SEND_MS_MAX)
            if kind == 4:
                dropped = message_of(-number)
                await producer.send_in_transaction(dropped, 4, timeout_ms=SEND_MS_MAX)


def message_of(number: int, delay_level: int = 0) -> Message:
    """A message of random size with its number."""
    dice = random.Random(number)
    # Random digits, because clients compress bodies.
    noise = dice.randbytes(dice.randrange(BODY_BYTES_MAX)).hex()
    return Message(
        TOPIC,
        f"{number} {noise}".encode(),
        tags=f"Tag{number % 3}",
        keys=[f"key{number}"],
        delay_level=delay_level,
    )


async def copied(admin: AdminClient, master: JavaBroker, slave: Slave) -> None:
    """Wait until the delayed messages are delivered and the slave has all bytes of the master."""
    quiet = 0
    while quiet < 2:
        end = await master_log_end(admin, master)

        async def has_all(least: int = end) -> bool:
            return await log_end(admin, slave.addr) >= least

        await eventually(has_all, WAIT_S)
        await asyncio.sleep(1)
        quiet = quiet + 1 if await master_log_end(admin, master) == end else 0


async def fill(master: JavaBroker, slave: Slave, namesrv_addr: str) -> None:
    """Send before and after the slave's start, and compare both brokers."""
    async with AdminClient(namesrv_addr) as admin:
        config = TopicConfig(topic_name=TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        await admin.create_topic(master.addr, config)

        async def is_routed() -> bool:
            with suppress(GantryError):
                return bool((await admin.topic_route(TOPIC)).queue_datas)
            return False

        await eventually(is_routed, WAIT_S)
        await send(namesrv_addr, 0)
        await asyncio.to_thread(slave.start)
        await copied(admin, master, slave)


async def compare(master: JavaBroker, slave: Slave, namesrv_addr: str) -> None:
    """Compare logs, queues and the answers of the index."""
    async with AdminClient(namesrv_addr) as admin:
        await copied(admin, master, slave)
        end = await log_end(admin, slave.addr)
        assert end > 2 * STORE["mapped_file_size_commit_log"]
        assert log_bytes(slave.store)[:end] == log_bytes(slave.store.with_name("master"))[:end]
        for queue_id in range(QUEUES):
            ends = [
                await admin.max_offset(addr, TOPIC, queue_id) for addr in (master.addr, slave.addr)
            ]
            assert ends[0] == ends[1] > 0
            wanted = queue_bytes(slave.store.with_name("master"), queue_id, ends[0])
            await eventually(
                partial(_is_equal, wanted, slave.store, queue_id, ends[0]),
                WAIT_S,
            )
        sample = random.Random(1).sample(range(2 * MESSAGES), 20)
        for number in (0, MESSAGES - 1, 2 * MESSAGES - 1, *sample):
            found = [
                await admin.query_message(addr, TOPIC, f"key{number}")
                for addr in (master.addr, slave.addr)
            ]
            ids = [sorted(each.offset_msg_id for each in messages) for messages in found]
            assert ids[0] == ids[1] != []


async def offsets_copied(slave: Slave, namesrv_addr: str, count: int) -> None:
    """Wait until the slave has the group's offsets."""
    async with AdminClient(namesrv_addr) as admin:

        async def total() -> bool:
            offsets = [
                await admin.query_consumer_offset(slave.addr, GROUP, TOPIC, queue_id)
                for queue_id in range(QUEUES)
            ]
            return sum(each or 0 for each in offsets) == count

        await eventually(total, WAIT_S)


def numbers(events: list[dict[str, Any]]) -> set[int]:
    return {int(each["body"].split()[0]) for each in events}


@pytest.mark.parametrize(("kind", "version"), PAIRS, indirect=["version"])
def test_consumers_of_a_dead_java_master_go_on_with_the_slave(
    kind: str, master: JavaBroker, slave: Slave, namesrv_addr: str, start_clients: StartClients
) -> None:
    asyncio.run(fill(master, slave, namesrv_addr))
    clients = start_clients(kind, namesrv_addr)
    first = clients.consumer(GROUP, TOPIC)
    first.wait_until(
        lambda: numbers(first.messages) == set(range(MESSAGES)), "the first messages", WAIT_S
    )
    first.stop()  # commits its offsets to the master
    asyncio.run(offsets_copied(slave, namesrv_addr, MESSAGES))
    asyncio.run(send(namesrv_addr, MESSAGES))
    asyncio.run(compare(master, slave, namesrv_addr))

    master.kill()
    later = clients.consumer(GROUP, TOPIC)
    later.wait_until(
        lambda: numbers(later.messages) >= set(range(MESSAGES, 2 * MESSAGES)),
        "the messages of the slave",
        WAIT_S,
    )
    # The offsets were copied, so no consumed message is repeated.
    assert numbers(later.messages) == set(range(MESSAGES, 2 * MESSAGES))
    everything = clients.consumer("CG-new", TOPIC)
    everything.wait_until(
        lambda: numbers(everything.messages) == set(range(2 * MESSAGES)), "all messages", WAIT_S
    )


async def test_a_java_master_that_lost_its_end_is_refused(
    version: str, master: JavaBroker, slave: Slave, namesrv_addr: str, tmp_path: Path
) -> None:
    """A Java slave would wait in silence, and later append behind the wrong record."""
    await fill(master, slave, namesrv_addr)
    async with AdminClient(namesrv_addr) as admin:
        end = await log_end(admin, slave.addr)
    before = log_bytes(slave.store)[:end]
    await asyncio.to_thread(master.kill)
    (tmp_path / "master").rename(tmp_path / "lost")
    await asyncio.to_thread(master.start)
    await eventually(lambda: "have diverged" in slave.program.printed, WAIT_S)
    assert log_bytes(slave.store)[:end] == before
