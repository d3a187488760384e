"""A store with thousands of topics and groups, with messages, clients and lag.

The tables are written before the broker starts; messages are sent in batches, one batch per queue.

    topic-00000 …    queues with messages; every tenth group has dead letters
    group-00000 …    consumes the topic with the same number; every third group has lag
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from core_broker.message.batch import encode_batch
from core_broker.message.model import Message
from core_broker.message.topics import dlq_topic, retry_topic
from core_broker.remoting.bodies import (
    ConsumerData,
    HeartbeatData,
    ProducerData,
    SubscriptionData,
    SubscriptionGroupConfig,
    TopicConfig,
    encode_body,
)
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import SendMessageRequestHeaderV2
from core_broker.state.consumer_offsets import ConsumerOffsets
from core_broker.state.groups import GroupTable
from core_broker.state.topics import TopicTable

QUEUES = 4
BODY = b"x" * 100
SENDS_AT_ONCE = 32
SEND_TIMEOUT_MS = 30_000
BEHIND_EVERY = 3
DEAD_LETTERS_EVERY = 10
GROUPS_PER_CLIENT = 50
CLIENTS = 40
HEARTBEAT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Size:
    """Numbers of topics, groups and messages; the topics have equal shares of the messages."""

    topics: int = 5_000
    groups: int = 5_000
    messages: int = 1_000_000

    @property
    def per_queue(self) -> int:
        return self.messages // (self.topics * QUEUES)

    def topic(self, number: int) -> str:
        return f"topic-{number % self.topics:05d}"

    def group(self, number: int) -> str:
        return f"group-{number:05d}"

    @property
    def with_dead_letters(self) -> range:
        return range(0, self.groups, DEAD_LETTERS_EVERY)

    @property
    def connected(self) -> int:
        """Groups with a connected client while `clients` is open."""
        return min(self.groups, CLIENTS * GROUPS_PER_CLIENT)


def write_tables(folder: Path, size: Size) -> None:
    """Write the tables of topics, groups and offsets of a closed store."""
    topics, groups, offsets = TopicTable(), GroupTable(), ConsumerOffsets()
    now_ms = time.time_ns() // 1_000_000
    extra = [dlq_topic(size.group(number)) for number in size.with_dead_letters]
    extra += [retry_topic(size.group(number)) for number in range(size.connected)]
    for name in [size.topic(number) for number in range(size.topics)]:
        topics.put(_topic(name, QUEUES), now_ms)
    for name in extra:
        topics.put(_topic(name, 1), now_ms)
    for number in range(size.groups):
        groups.put(SubscriptionGroupConfig(group_name=size.group(number)), now_ms)
        behind = size.per_queue // 2 if number % BEHIND_EVERY == 0 else 0
        for queue_id in range(QUEUES):
            offset = size.per_queue - behind
            offsets.commit(size.group(number), size.topic(number), queue_id, offset)
    config = folder / "config"
    config.mkdir(parents=True, exist_ok=True)
    (config / "topics.json").write_bytes(topics.encode())
    (config / "subscriptionGroup.json").write_bytes(groups.encode())
    (config / "consumerOffset.json").write_bytes(offsets.encode())


async def send_messages(addr: str, size: Size) -> None:
    """Fill every queue, and store dead letters for some groups."""
    requests = _batches(size)
    client = RemotingClient(name="big-cluster")

    async def lane() -> None:
        for request in requests:
            answer = await client.invoke(addr, request, SEND_TIMEOUT_MS)
            if answer.code != ResponseCode.SUCCESS:
                raise SystemExit(f"the broker refused a batch: {answer.remark}")

    try:
        await asyncio.gather(*(lane() for _ in range(SENDS_AT_ONCE)))
    finally:
        await client.close()


@asynccontextmanager
async def clients(addr: str, size: Size) -> AsyncIterator[None]:
    """Connect the consumers of the first groups, and a producer."""
    beats = [
        (RemotingClient(name="big-cluster"), _beat(size, number))
        for number in range(0, size.connected, GROUPS_PER_CLIENT)
    ]

    async def beat_all() -> None:
        for client, body in beats:
            request = RemotingCommand.request(RequestCode.HEART_BEAT, body=body)
            await client.invoke(addr, request, SEND_TIMEOUT_MS)

    async def go_on() -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            await beat_all()

    await beat_all()
    beating = asyncio.create_task(go_on())
    try:
        yield
    finally:
        beating.cancel()
        for client, _body in beats:
            await client.close()


def _beat(size: Size, number: int) -> bytes:
    """The heartbeat of a client that consumes for GROUPS_PER_CLIENT groups, and produces."""
    members = range(number, min(number + GROUPS_PER_CLIENT, size.connected))
    return encode_body(
        HeartbeatData(
            client_id=f"10.0.0.{number // GROUPS_PER_CLIENT}@{number}",
            consumer_data_set=[_consumer(size, each) for each in members],
            producer_data_set=[ProducerData(group_name="big-producers")],
        )
    )


def _topic(name: str, queues: int) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=6)


def _consumer(size: Size, number: int) -> ConsumerData:
    group = size.group(number)
    names = (size.topic(number), retry_topic(group))
    return ConsumerData(
        group_name=group,
        subscription_data_set=[SubscriptionData(topic=name, sub_string="*") for name in names],
    )


def _batches(size: Size) -> Iterator[RemotingCommand]:
    for number in range(size.topics):
        for queue_id in range(QUEUES):
            yield _batch(size.topic(number), queue_id, size.per_queue)
    for number in size.with_dead_letters:
        yield _batch(dlq_topic(size.group(number)), 0, 1)


def _batch(topic: str, queue_id: int, count: int) -> RemotingCommand:
    header = SendMessageRequestHeaderV2(
        producer_group="big-producers",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=QUEUES,
        queue_id=queue_id,
        sys_flag=0,
        born_timestamp=time.time_ns() // 1_000_000,
        flag=0,
        properties="",
        batch=True,
    )
    body = encode_batch([Message(topic, BODY)] * count)
    return RemotingCommand.request(RequestCode.SEND_BATCH_MESSAGE, header, body)
