"""A store with thousands of topics and groups, with messages and lag.

The tables are written before the broker starts; messages are sent in batches, one batch per queue.

    topic-00000 …    queues with messages; the first ones have delayed and half messages
    group-00000 …    consumes the topic with the same number; every third group has lag, every tenth
                     has a dead letter, and FULL_GROUP has thousands
"""

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from core_broker.client import Credentials
from core_broker.message.batch import encode_batch
from core_broker.message.model import Message
from core_broker.message.properties import encode_properties
from core_broker.message.topics import dlq_topic, retry_topic
from core_broker.remoting.bodies import (
    SubscriptionGroupConfig,
    TopicConfig,
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
SEND_TIMEOUT_MS = 120_000
BEHIND_EVERY = 3
DEAD_LETTERS_EVERY = 10
#: The group with many dead letters; it has lag and a client, too.
FULL_GROUP = 30
FULL_GROUP_LETTERS = 3_000
DELAYED_MESSAGES = 2_000
HALF_MESSAGES = 200
#: Two hours.
DELAY_LEVEL = "18"
PREPARED = 4
GROUPS_PER_CLIENT = 50
CLIENTS = 40


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
        """Groups with a connected client while `big_clients` runs."""
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


async def send_messages(addr: str, size: Size, signing: Credentials) -> None:
    """Fill every queue, and store dead letters for some groups, delayed and half messages."""
    requests = chain(_batches(size), _pending(size))
    client = RemotingClient(name="big-cluster", rpc_hooks=[signing.hook()])

    async def lane() -> None:
        for request in requests:
            answer = await client.invoke(addr, request, SEND_TIMEOUT_MS)
            if answer.code != ResponseCode.SUCCESS:
                raise SystemExit(f"the broker refused a batch: {answer.remark}")

    try:
        await asyncio.gather(*(lane() for _ in range(SENDS_AT_ONCE)))
    finally:
        await client.close()


def _topic(name: str, queues: int) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=6)


def _batches(size: Size) -> Iterator[RemotingCommand]:
    for number in range(size.topics):
        for queue_id in range(QUEUES):
            messages = [Message(size.topic(number), BODY)] * size.per_queue
            yield _send(size.topic(number), queue_id, encode_batch(messages), batch=True)
    for number in size.with_dead_letters:
        letters = encode_batch(dead_letters(size, number))
        yield _send(dlq_topic(size.group(number)), 0, letters, batch=True)


def dead_letters(size: Size, number: int) -> list[Message]:
    """The dead letters of a group, with the properties that name their topic."""
    count = FULL_GROUP_LETTERS if number == FULL_GROUP else 1
    topic = size.topic(number)
    return [
        Message(
            dlq_topic(size.group(number)),
            b'{"order": %d}' % order,
            properties={
                "DLQ_ORIGIN_TOPIC": topic,
                "RETRY_TOPIC": topic,
                "KEYS": f"order-{order}",
                "UNIQ_KEY": f"{order:032X}",
                "RECONSUME_TIME": "16",
            },
        )
        for order in range(count)
    ]


def _pending(size: Size) -> Iterator[RemotingCommand]:
    """Delayed messages and half messages, one request per message."""
    for number in range(DELAYED_MESSAGES):
        delayed = {"DELAY": DELAY_LEVEL, "UNIQ_KEY": f"{number:032X}"}
        yield _send(size.topic(number), 0, BODY, delayed)
    for number in range(HALF_MESSAGES):
        half = {"TRAN_MSG": "true", "PGROUP": "big-producers", "UNIQ_KEY": f"{number:032X}"}
        yield _send(size.topic(number), 0, BODY, half, sys_flag=PREPARED)


def _send(
    topic: str,
    queue_id: int,
    body: bytes,
    properties: Mapping[str, str] | None = None,
    *,
    batch: bool = False,
    sys_flag: int = 0,
) -> RemotingCommand:
    header = SendMessageRequestHeaderV2(
        producer_group="big-producers",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=QUEUES,
        queue_id=queue_id,
        sys_flag=sys_flag,
        born_timestamp=time.time_ns() // 1_000_000,
        flag=0,
        properties=encode_properties(properties or {}).decode(),
        batch=batch,
    )
    code = RequestCode.SEND_BATCH_MESSAGE if batch else RequestCode.SEND_MESSAGE_V2
    return RemotingCommand.request(code, header, body)
