"""Orderly consuming against a real broker: one owner per queue, pauses, dead letters."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from core_broker.client import (
    AdminClient,
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    ConsumerSettings,
    Message,
    MessageExt,
    MessageQueue,
    Producer,
    PushConsumer,
)
from tests.client.receiving import ClusterAddrs, dead_letter_of
from tests.support.eventually import eventually

NewTopic = Callable[..., Awaitable[str]]

SUCCESS = ConsumeOrderlyStatus.SUCCESS
SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
SETTINGS = ConsumerSettings(
    consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    suspend_current_queue_ms=10,
    rebalance_interval_s=1,
    max_reconsume_times=2,
)


class Log:
    """The consumed messages of all members of a group, and the working member per queue."""

    def __init__(self) -> None:
        self.bodies: dict[int, list[bytes]] = defaultdict(list)
        self.by_member: dict[str, int] = defaultdict(int)
        self.owners: dict[int, str] = {}
        self.fails: Callable[[MessageExt], bool] = lambda _: False
        self.pause_s = 0.0

    def member(self, cluster: ClusterAddrs, group: str, topic: str, name: str) -> PushConsumer:
        consumer = PushConsumer(group, cluster.namesrv_addr, settings=SETTINGS)
        consumer.subscribe(topic)

        @consumer.orderly_listener
        async def consume(messages: list[MessageExt]) -> ConsumeOrderlyStatus:
            (message,) = messages
            queue = message.queue_id
            assert self.owners.setdefault(queue, name) == name, "two owners at a time"
            await asyncio.sleep(self.pause_s)
            del self.owners[queue]
            self.bodies[queue].append(message.body)
            self.by_member[name] += 1
            return SUSPEND if self.fails(message) else SUCCESS

        return consumer

    @property
    def count(self) -> int:
        return sum(map(len, self.bodies.values()))


async def send(
    cluster: ClusterAddrs, topic: str, queues: int, count: int, prefix: str = ""
) -> None:
    async with Producer("sender", cluster.namesrv_addr) as producer:
        for number in range(count):
            for queue in range(queues):
                message = Message(topic, f"{prefix}{number}".encode())
                await producer.send_to(message, MessageQueue(topic, "broker-a", queue))


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.mark.on_java
async def test_each_queue_is_consumed_in_its_order_while_members_come_and_go(
    quick_cluster: ClusterAddrs, new_topic: NewTopic, group: str, log: Log
) -> None:
    topic = await new_topic(4)
    log.pause_s = 0.01
    await send(quick_cluster, topic, 4, 30)
    first = log.member(quick_cluster, group, topic, "first")
    second = log.member(quick_cluster, group, topic, "second")
    async with first:
        await eventually(lambda: log.by_member["first"] >= 8, timeout_s=90)
        async with second:
            await eventually(lambda: log.by_member["second"] >= 8, timeout_s=90)
        await eventually(lambda: all(b"29" in log.bodies[q] for q in range(4)), timeout_s=60)
    for seen in log.bodies.values():
        # A moved queue may repeat messages; after a repeated message the following message comes.
        assert list(dict.fromkeys(seen)) == [b"%d" % number for number in range(30)]
        assert all(int(after) <= int(before) + 1 for before, after in pairwise(seen))


@pytest.mark.on_java
async def test_a_failing_message_holds_up_its_queue_and_then_is_a_dead_letter(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str, log: Log
) -> None:
    topic = await new_topic(1)
    log.fails = lambda message: message.body == b"1"
    await send(quick_cluster, topic, 1, 3)

    async with log.member(quick_cluster, group, topic, "only"):
        await eventually(lambda: log.bodies[0] == [b"0", b"1", b"1", b"1", b"2"], timeout_s=90)
        letter = await dead_letter_of(quick_cluster, admin, group)
    assert letter.body == b"1"
