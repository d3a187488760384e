"""Stored messages of a queue by offset, also of topics without read permission.

A readable topic is pulled. A topic without read permission (a dead-letter queue of RocketMQ up to
4.9.3 has perm 2) is read by two admin requests that do not check the permission:
QUERY_CONSUME_QUEUE (321) lists the units of the queue, VIEW_MESSAGE_BY_ID (33) reads each record.
Reading changes neither the permission nor any consumer offset.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from console.gateway.engine.answers import now_ms
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.topics.routes import reading_route
from core_broker.client import PullStatus
from core_broker.errors import RequestRefused
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import PERM_READ, QueueData, TopicConfig, TopicRouteData

MASTER_ID = 0
#: Maximum number of messages that RocketMQ returns for one pull.
PULL_MESSAGES_MAX = 32
#: Maximum number of concurrent VIEW_MESSAGE_BY_ID requests for one slice.
VIEWS_AT_ONCE_MAX = 16


@dataclass(frozen=True, slots=True, order=True)
class QueueRef:
    """A queue of a topic on one broker."""

    topic: str
    broker: BrokerRef
    queue_id: int
    readable: bool

    @property
    def key(self) -> str:
        """The name of the queue within its topic, for cursors and URLs."""
        return f"{self.broker.name}:{self.queue_id}"


@dataclass(frozen=True, slots=True)
class Slice:
    """Messages of one queue in offset order, without the `unreadable` ones."""

    messages: tuple[MessageExt, ...]
    unreadable: int = 0


def brokers_of(queues: Iterable[QueueRef]) -> list[BrokerRef]:
    """Return the brokers of the queues, sorted, each once."""
    return sorted({queue.broker for queue in queues})


async def topic_queues(session: ClusterSession, topic: str) -> tuple[QueueRef, ...]:
    """Return all queues of a topic on masters; raise NotFound when no broker has the topic."""
    return queues_of_route(topic, await reading_route(session, topic))


def queues_of_route(topic: str, route: TopicRouteData) -> tuple[QueueRef, ...]:
    """Return the read queues of a route, or the write queues where the topic is unreadable."""
    masters = {
        broker.broker_name: broker.broker_addrs[MASTER_ID]
        for broker in route.broker_datas
        if MASTER_ID in broker.broker_addrs
    }
    queues = []
    for data in route.queue_datas:
        addr = masters.get(data.broker_name)
        if addr is None:
            continue
        queues += queues_of_config(topic, BrokerRef(data.broker_name, MASTER_ID, addr), data)
    return tuple(sorted(queues))


def queues_of_config(
    topic: str, broker: BrokerRef, config: TopicConfig | QueueData
) -> list[QueueRef]:
    """Return the read queues of a topic on a broker; without read permission, the write queues."""
    readable = bool(config.perm & PERM_READ)
    count = config.read_queue_nums if readable else config.write_queue_nums
    return [QueueRef(topic, broker, queue_id, readable) for queue_id in range(count)]


async def read_slice(session: ClusterSession, queue: QueueRef, begin: int, end: int) -> Slice:
    """Return the messages with offsets in [begin, end), without deleted messages."""
    if begin >= end:
        return Slice(())
    if queue.readable:
        return await _pulled(session, queue, begin, end)
    return await _viewed(session, queue, begin, end)


async def _pulled(session: ClusterSession, queue: QueueRef, begin: int, end: int) -> Slice:
    found: list[MessageExt] = []
    offset = begin
    while offset < end:
        count = min(PULL_MESSAGES_MAX, end - offset)
        pull = await session.admin.pull(
            queue.broker.addr, queue.topic, queue.queue_id, offset, count
        )
        session.own_reads.add(queue.broker.addr, len(pull.messages), now_ms())
        found += [each for each in pull.messages if offset <= each.queue_offset < end]
        if pull.status is PullStatus.NO_NEW_MSG or pull.next_offset <= offset:
            break
        offset = pull.next_offset
    return Slice(tuple(found))


async def _viewed(session: ClusterSession, queue: QueueRef, begin: int, end: int) -> Slice:
    units = await session.admin.consume_queue(
        queue.broker.addr, queue.topic, queue.queue_id, begin, end - begin
    )
    gate = asyncio.Semaphore(VIEWS_AT_ONCE_MAX)

    async def view(offset_physical: int) -> MessageExt | None:
        async with gate:
            try:
                return await session.admin.view_message(
                    queue.broker.addr, offset_physical, queue.topic
                )
            except RequestRefused:
                return None  # counted below: the record is deleted or damaged

    views = await asyncio.gather(*(view(unit.physic_offset) for unit in units.queue_data))
    messages = tuple(each for each in views if each is not None)
    return Slice(messages, unreadable=len(views) - len(messages))
