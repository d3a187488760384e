"""`manage.py up --brokers 2` as a program: clients spread over both, and the console shows both."""

import asyncio
import re
from pathlib import Path

import pytest

from core_broker.client import (
    AdminClient,
    ConsumerSettings,
    ConsumeStatus,
    Producer,
    PushConsumer,
)
from core_broker.message.model import Message, MessageExt
from core_broker.remoting.bodies import ConsumeFromWhere, TopicConfig
from tests.support.console_session import ConsoleSession
from tests.up.gantry import Gantry

TOPIC = "orders"
QUEUES = 4
MESSAGES = 4 * QUEUES
BROKERS = {"broker-a", "broker-b"}
PASSWORD = "correct horse battery"
DEADLINE_S = 120
POLL_S = 0.1

pytestmark = pytest.mark.timeout(300)


async def addresses(admin: AdminClient) -> dict[str, str]:
    """The addresses of both brokers, when both are registered."""
    while not set(table := (await admin.cluster_info()).broker_addr_table) >= BROKERS:
        await asyncio.sleep(POLL_S)
    return {name: broker.broker_addrs[0] for name, broker in table.items()}


async def spread(namesrv_addr: str) -> tuple[set[str], set[str]]:
    """Send and consume messages; return the brokers that got messages, and those read from."""
    received: dict[bytes, str] = {}
    settings = ConsumerSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer = PushConsumer("readers", namesrv_addr, settings=settings)
    consumer.subscribe(TOPIC)

    @consumer.listener
    async def take(messages: list[MessageExt]) -> ConsumeStatus:
        received.update({each.body: str(each.broker_name) for each in messages})
        return ConsumeStatus.CONSUME_SUCCESS

    async with AdminClient(namesrv_addr) as admin, asyncio.timeout(DEADLINE_S):
        for addr in (await addresses(admin)).values():
            topic = TopicConfig(topic_name=TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
            await admin.create_topic(addr, topic)
        async with Producer("senders", namesrv_addr) as producer, consumer:
            sent = [
                (await producer.send(Message(TOPIC, b"%d" % number))).queue.broker_name
                for number in range(MESSAGES)
            ]
            while len(received) < MESSAGES:
                await asyncio.sleep(POLL_S)
    return set(sent), set(received.values())


def test_clients_spread_over_two_brokers_that_the_console_shows_together(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Gantry(home, "--brokers=2", "--no-worker", GANTRY_ADMIN_PASSWORD=PASSWORD) as gantry:
        namesrv_addr = gantry.until(r"name server +([^ ,]+),")[1]
        ports = [
            gantry.until(rf"^  {name} +127\.0\.0\.1:(\d+)")[1] for name in ("broker", "broker-b")
        ]
        url = gantry.until_ready()
        assert asyncio.run(spread(namesrv_addr)) == (BROKERS, BROKERS)
        session = ConsoleSession(url, PASSWORD)
        status, found = session.api("GET", "clusters/local/brokers")
        assert status == 200
        listed = {each["name"]: (each["host"], each["addr"]) for each in found["items"]}
        assert listed == {
            name: ("127.0.0.1", f"127.0.0.1:{port}")
            for name, port in zip(sorted(BROKERS), ports, strict=True)
        }
        page = session.ask("GET", "/clusters/local/brokers/")[1].decode()
        assert re.findall(r'data-host="([^"]+)"', page) == ["127.0.0.1"]
        assert re.search(r"2 brokers", page)
        assert page.count('data-broker-state="up"') == len(BROKERS)
        assert gantry.end() == 0, gantry.text
        assert gantry.left_running() == []
    with Gantry(home, "--brokers=1", "--no-worker") as refused:
        assert refused.wait() == 2
        assert "was started with --brokers 2" in refused.text
