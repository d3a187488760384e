"""Questions about stored messages: browse a topic, look at one, see who has consumed it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

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
from console.gateway.queue_slices import QueueRef, Slice, read_slice, topic_queues
from core_broker.client import AdminClient
from core_broker.errors import ClientError, ProtocolError, RequestRefused, TransportError
from core_broker.message.ids import parse_offset_msg_id
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import MessageQueue

T = TypeVar("T")
R = TypeVar("R")

PAGE_MESSAGES_MAX = 200
#: Queues of a topic that are read at the same time.
QUEUES_AT_ONCE_MAX = 32
GROUPS_SHOWN_MAX = 100


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
    gate = asyncio.Semaphore(QUEUES_AT_ONCE_MAX)

    async def windows_on(broker: BrokerRef) -> list[Window]:
        stored = await stored_windows(desk, [each for each in queues if each.broker == broker])
        return await _at_once(gate, stored, lambda each: _within(desk, each, begin_ms, end_ms))

    found, failures = await desk.each(brokers_of(queues), windows_on)
    windows = [window for group in found.values() for window in group]
    total = sum(window.count for window in windows)
    if ends is not None:
        windows = windows_before(windows, ends)

    async def fetch(queue: QueueRef, begin: int, end: int) -> Slice:
        async with gate:
            return await read_slice(desk, queue, begin, end)

    page = await newest_first(windows, min(limit, PAGE_MESSAGES_MAX), fetch)
    rows = tuple(MessageRef(queue.broker, message) for queue, message in page.messages)
    return Partial(MessagePage(rows, total, encode_cursor(page.ends), page.unreadable), failures)


@question(fresh_for_ms=2_000)
async def view(desk: Desk, offset_msg_id: str) -> Partial[MessageRef | None]:
    """The message at an offset id; None when no broker that answers has it."""
    ref, failures = await message_at(desk, offset_msg_id)
    return Partial(ref, failures)


@question(fresh_for_ms=2_000)
async def deliveries(desk: Desk, offset_msg_id: str) -> Partial[tuple[GroupDelivery, ...]]:
    """How far each group of the message's topic is with it."""
    ref, failures = await message_at(desk, offset_msg_id)
    if ref is None:
        return Partial((), failures)
    admin, addr, topic = desk.admin, ref.broker.addr, ref.message.topic
    # RocketMQ 5 may list the topic itself among its groups.
    groups = sorted(set(await admin.groups_of_topic(addr, topic)) - {topic})[:GROUPS_SHOWN_MAX]
    gate = asyncio.Semaphore(QUEUES_AT_ONCE_MAX)
    states = await _at_once(gate, groups, lambda group: _delivery(admin, ref, group))
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


async def message_at(
    desk: Desk, offset_msg_id: str
) -> tuple[MessageRef | None, tuple[BrokerFailure, ...]]:
    """The record that an offset id points at, and brokers that could not be asked for it.

    The id carries the address its broker had when it stored the message. It only says whom to ask
    first: the console never connects to an address out of an id, and a broker that has moved
    since is found by asking the others.
    """
    try:
        host, port, offset_physical = parse_offset_msg_id(offset_msg_id)
    except ClientError:
        return None, ()

    async def look(broker: BrokerRef) -> MessageExt | None:
        try:
            message = await desk.admin.view_message(broker.addr, offset_physical)
        except (RequestRefused, ProtocolError):
            return None  # no record begins there
        return message if message.offset_msg_id == offset_msg_id.upper() else None

    refs = await masters(desk)
    named = [each for each in refs if each.addr == f"{host}:{port}"]
    failures: tuple[BrokerFailure, ...] = ()
    for brokers in (named, [each for each in refs if each not in named]):
        found, failed = await desk.each(brokers, look, one_must_answer=False)
        failures += failed
        for broker, message in found.items():
            if message is not None:
                return MessageRef(broker, message), ()
    return None, failures


def brokers_of(queues: Iterable[QueueRef]) -> list[BrokerRef]:
    return sorted({queue.broker for queue in queues})


async def stored_windows(desk: Desk, queues: Sequence[QueueRef]) -> list[Window]:
    """What each of the queues of one topic on one broker holds; one request for all of them."""
    broker, topic = queues[0].broker, queues[0].topic
    stats = await desk.admin.topic_stats(broker.addr, topic)
    offsets = {key.queue_id: value for key, value in stats.items()}
    return [
        Window(each, max(0, offsets[each.queue_id].min_offset), offsets[each.queue_id].max_offset)
        for each in queues
        if each.queue_id in offsets
    ]


async def _within(desk: Desk, window: Window, begin_ms: int | None, end_ms: int | None) -> Window:
    """The part of a window that was stored within the times; an open end stays as it is."""
    begin, end = window.begin, window.end
    if begin_ms is not None and begin_ms > 0:
        begin = await first_stored_at(desk, window, begin_ms)
    if end_ms is not None and end_ms < now_ms():
        end = await first_stored_at(desk, window, end_ms + 1)
    return Window(window.queue, begin, end)


async def first_stored_at(desk: Desk, window: Window, moment_ms: int) -> int:
    """The first offset that was stored at the moment or later; the window's end without one.

    What a broker answers for a time is only near it: of several messages of one millisecond it
    names any, between two messages the nearer one, after the newest the newest (4.9) or the next
    offset (5.x). So the messages around the answer are looked at; mostly that settles it, and
    otherwise the place is found by halving what is left.
    """
    low, high = window.begin, window.end
    if low >= high:
        return high
    queue = window.queue
    near = await desk.admin.search_offset(queue.broker.addr, queue.topic, queue.queue_id, moment_ms)
    near = min(max(near, low), high - 1)
    begin, end = near - 1, near + 2
    while low < high:
        begin, end = max(begin, low), min(end, high)
        messages = (await read_slice(desk, queue, begin, end)).messages
        older = [each.queue_offset for each in messages if each.store_timestamp < moment_ms]
        newer = [each.queue_offset for each in messages if each.store_timestamp >= moment_ms]
        high = min(newer, default=high)
        if older or not newer:  # what is gone was older
            low = max(older, default=end - 1) + 1
        begin = (low + high) // 2
        end = begin + 1
    return high


async def _at_once(
    gate: asyncio.Semaphore, items: Iterable[T], work: Callable[[T], Awaitable[R]]
) -> list[R]:
    """The results of all items in order, as many at the same time as the gate lets through."""

    async def one(item: T) -> R:
        async with gate:
            return await work(item)

    return await asyncio.gather(*(one(item) for item in items))
