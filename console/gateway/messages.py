"""Questions about stored messages: browse a topic, find by id or key, who has consumed one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from console.gateway.answers import BrokerFailure, Partial, now_ms
from console.gateway.brokers import masters
from console.gateway.desk import BrokerRef, Desk
from console.gateway.newest_first import (
    Window,
    decode_cursor,
    encode_cursor,
    newest_first,
    windows_before,
)
from console.gateway.questions import question
from console.gateway.queue_slices import (
    QueueRef,
    Slice,
    read_slice,
    topic_queues,
)
from core_broker.client import AdminClient
from core_broker.errors import ClientError, RequestRefused, TransportError
from core_broker.message.ids import parse_offset_msg_id
from core_broker.message.model import MessageExt
from core_broker.message.topics import is_system_topic
from core_broker.remoting.bodies import MessageQueue

PAGE_MESSAGES_MAX = 200
#: RocketMQ answers a key query with at most this many messages per broker.
KEY_MESSAGES_MAX = 64
#: An id without a topic is looked for in at most this many topics.
TOPICS_SEARCHED_MAX = 2_000
TOPICS_AT_ONCE_MAX = 16
GROUPS_SHOWN_MAX = 100
LONG_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class MessageRef:
    """A stored message with the broker that keeps it."""

    broker: BrokerRef
    message: MessageExt


@dataclass(frozen=True, slots=True)
class MessagePage:
    """One page, newest first. `total` counts the whole window, `unreadable` what is missing."""

    rows: tuple[MessageRef, ...]
    total: int
    next_cursor: str | None
    unreadable: int


class Delivery(StrEnum):
    """How far a group is with one message, as its committed offset tells."""

    CONSUMED = "consumed"
    WAITING = "waiting"
    NOT_SUBSCRIBED = "not_subscribed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class GroupDelivery:
    group: str
    state: Delivery
    reason: str = ""


@question(fresh_for_ms=500, deadline_ms=15_000)
async def browse(
    desk: Desk,
    topic: str,
    begin_ms: int | None = None,
    end_ms: int | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> Partial[MessagePage]:
    """One page of a topic's messages stored in [begin_ms, end_ms], newest first.

    Raises CursorError for a cursor that is none, NotThere for a topic that is none.
    """
    ends = decode_cursor(cursor) if cursor else None
    queues = await topic_queues(desk, topic)
    brokers = sorted({queue.broker for queue in queues})

    async def windows_on(broker: BrokerRef) -> list[Window]:
        own = [queue for queue in queues if queue.broker == broker]
        return await asyncio.gather(*(_window(desk, queue, begin_ms, end_ms) for queue in own))

    found, failures = await desk.each(brokers, windows_on)
    windows = [window for group in found.values() for window in group]
    total = sum(window.count for window in windows)
    if ends is not None:
        windows = windows_before(windows, ends)

    async def fetch(queue: QueueRef, begin: int, end: int) -> Slice:
        return await read_slice(desk, queue, begin, end)

    page = await newest_first(windows, min(limit, PAGE_MESSAGES_MAX), fetch)
    rows = tuple(MessageRef(queue.broker, message) for queue, message in page.messages)
    return Partial(MessagePage(rows, total, encode_cursor(page.ends), page.unreadable), failures)


@question(fresh_for_ms=2_000, deadline_ms=10_000)
async def by_key(desk: Desk, topic: str, key: str) -> Partial[tuple[MessageRef, ...]]:
    """Messages of a topic under a key or unique key, newest first, at most 64 of each broker."""
    queues = await topic_queues(desk, topic)
    found, failures = await _by_key(desk, topic, key, sorted({each.broker for each in queues}))
    return Partial(found, failures)


@question(fresh_for_ms=2_000, deadline_ms=20_000)
async def find(desk: Desk, text: str, topic: str = "") -> Partial[tuple[MessageRef, ...]]:
    """Messages that an id or key names, whatever kind of id it is, newest first.

    An offset id leads straight to its record. Anything else is looked for in the key index of the
    topic, or of every topic when none is given.
    """
    refs = await masters(desk)
    at_place = await _at_offset_id(desk, text, refs)
    if at_place is not None:
        return Partial((at_place,))
    if topic:
        queues = await topic_queues(desk, topic)
        found, failures = await _by_key(desk, topic, text, sorted({q.broker for q in queues}))
        return Partial(found, failures)
    return await _in_all_topics(desk, text, refs)


@question(fresh_for_ms=2_000)
async def view(desk: Desk, offset_msg_id: str) -> Partial[MessageRef | None]:
    """The message at an offset id; None when no broker of this cluster has it."""
    return Partial(await _at_offset_id(desk, offset_msg_id, await masters(desk)))


@question(fresh_for_ms=2_000)
async def deliveries(desk: Desk, offset_msg_id: str) -> Partial[tuple[GroupDelivery, ...]]:
    """How far each group of the message's topic is with it."""
    ref = await _at_offset_id(desk, offset_msg_id, await masters(desk))
    if ref is None:
        return Partial(())
    admin, addr, topic = desk.admin, ref.broker.addr, ref.message.topic
    groups = sorted(await admin.groups_of_topic(addr, topic))[:GROUPS_SHOWN_MAX]
    states = await asyncio.gather(*(_delivery(admin, ref, group) for group in groups))
    return Partial(tuple(states))


async def _delivery(admin: AdminClient, ref: MessageRef, group: str) -> GroupDelivery:
    message = ref.message
    queue = MessageQueue(
        topic=message.topic, broker_name=ref.broker.name, queue_id=message.queue_id
    )
    try:
        stats = await admin.consume_stats(ref.broker.addr, group, message.topic)
    except (RequestRefused, TransportError) as failure:
        return GroupDelivery(group, Delivery.UNKNOWN, str(failure))
    offsets = stats.offset_table.get(queue)
    if offsets is None or offsets.consumer_offset < 0:
        return GroupDelivery(group, Delivery.NOT_SUBSCRIBED)
    consumed = offsets.consumer_offset > message.queue_offset
    return GroupDelivery(group, Delivery.CONSUMED if consumed else Delivery.WAITING)


async def _at_offset_id(desk: Desk, text: str, refs: Sequence[BrokerRef]) -> MessageRef | None:
    """Read the record an offset id points at.

    The id carries an address. Only brokers of this cluster are ever asked, so that nobody can make
    the console connect elsewhere by writing an id.
    """
    try:
        host, port, offset_physical = parse_offset_msg_id(text)
    except ClientError:
        return None
    broker = next((each for each in refs if each.addr == f"{host}:{port}"), None)
    if broker is None or offset_physical < 0:
        return None
    try:
        message = await desk.admin.view_message(broker.addr, offset_physical)
    except RequestRefused:
        return None
    return MessageRef(broker, message) if message.offset_msg_id == text.upper() else None


async def _by_key(
    desk: Desk, topic: str, key: str, brokers: Sequence[BrokerRef]
) -> tuple[tuple[MessageRef, ...], tuple[BrokerFailure, ...]]:
    async def ask(broker: BrokerRef) -> list[MessageExt]:
        both = await asyncio.gather(
            *(
                desk.admin.query_message(
                    broker.addr, topic, key, KEY_MESSAGES_MAX, 0, LONG_MAX, unique=unique
                )
                for unique in (True, False)
            )
        )
        by_place = {each.offset_physical: each for found in both for each in found}
        return list(by_place.values())

    found, failures = await desk.each(brokers, ask)
    refs = [
        MessageRef(broker, message)
        for broker, messages in found.items()
        for message in messages
        if key == message.msg_id or key in message.keys
    ]
    return tuple(sorted(refs, key=_newest, reverse=True)), failures


async def _in_all_topics(
    desk: Desk, text: str, refs: Sequence[BrokerRef]
) -> Partial[tuple[MessageRef, ...]]:
    topics = [each for each in sorted(await desk.admin.topic_list()) if not is_system_topic(each)]
    gate = asyncio.Semaphore(TOPICS_AT_ONCE_MAX)
    failures: dict[BrokerFailure, None] = {}

    async def ask(topic: str) -> tuple[MessageRef, ...]:
        async with gate:
            held, failed = await _by_key(desk, topic, text, refs)
            failures.update(dict.fromkeys(failed))
            return held

    groups = await asyncio.gather(*(ask(topic) for topic in topics[:TOPICS_SEARCHED_MAX]))
    found = [ref for group in groups for ref in group]
    return Partial(tuple(sorted(found, key=_newest, reverse=True)), tuple(failures))


async def _window(desk: Desk, queue: QueueRef, begin_ms: int | None, end_ms: int | None) -> Window:
    """The offsets of a queue that were stored within the times; open ends are the queue's own."""
    addr, topic, queue_id = queue.broker.addr, queue.topic, queue.queue_id
    offset_min, offset_max = await asyncio.gather(
        desk.admin.min_offset(addr, topic, queue_id), desk.admin.max_offset(addr, topic, queue_id)
    )
    begin, end = offset_min, offset_max
    if begin_ms is not None and begin_ms > 0:
        begin = await _first_stored_at(desk, queue, begin_ms, offset_min, offset_max)
    if end_ms is not None and end_ms < now_ms():
        end = await _first_stored_at(desk, queue, end_ms + 1, offset_min, offset_max)
    return Window(queue, max(begin, offset_min), min(end, offset_max))


async def _first_stored_at(
    desk: Desk, queue: QueueRef, moment_ms: int, offset_min: int, offset_max: int
) -> int:
    """The first offset stored at the moment or later; offset_max when there is none.

    Asked for a moment after its newest message, a 4.9 broker names that message and a 5.x broker
    the offset after it, so the message is looked at before the answer is believed.
    """
    if offset_min >= offset_max:
        return offset_max
    offset = await desk.admin.search_offset(
        queue.broker.addr, queue.topic, queue.queue_id, moment_ms
    )
    if offset < offset_max - 1:
        return max(offset, offset_min)
    last = await read_slice(desk, queue, offset_max - 1, offset_max)
    if last.messages and last.messages[-1].store_timestamp >= moment_ms:
        return offset_max - 1
    return offset_max


def _newest(ref: MessageRef) -> tuple[int, int]:
    return ref.message.store_timestamp, ref.message.offset_physical
