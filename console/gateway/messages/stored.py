"""Questions about stored messages: browse a topic, look at one, see who has consumed it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic
from typing import TypeVar

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers.listing import masters
from console.gateway.engine.answers import BrokerFailure, Partial, now_ms
from console.gateway.engine.errors import NotThere
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, Desk
from console.gateway.messages.filters import MessageFilter
from console.gateway.messages.paging import (
    Budget,
    Window,
    decode_cursor,
    encode_cursor,
    newest_first,
    newest_wanted,
    windows_before,
)
from console.gateway.messages.queue_slices import QueueRef, Slice, read_slice, topic_queues
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
QUEUES_NAMED_MAX = 16
QUEUES_OFFERED_MAX = 300
#: One page with a filter looks at no more than this, whichever comes first.
SCAN_MESSAGES_MAX = 20_000
SCAN_BYTES_MAX = 64 * 1024 * 1024
SCAN_S = 3.0
EVERYTHING = MessageFilter()


@dataclass(frozen=True, slots=True)
class MessageRef:
    """A stored message with the broker that keeps it."""

    broker: BrokerRef
    message: MessageExt


@dataclass(frozen=True, slots=True)
class MessagePage:
    """One page, newest first. `total` counts the whole window, `unreadable` what is missing.

    With a filter, `scanned` messages were looked at for this page and `left` still lie before them;
    `total` counts those that match and those that do not.
    """

    rows: tuple[MessageRef, ...]
    total: int
    next_cursor: str | None
    unreadable: int
    scanned: int
    left: int


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
    queue: str = "",
    wanted: MessageFilter = EVERYTHING,
) -> Partial[MessagePage]:
    """One page of a topic's messages stored in [begin_ms, end_ms], newest first.

    `queue` keeps to one queue (`broker-a:3`) or one broker (`broker-a`). With a filter the page
    ends when it is full or the budget of SCAN_… is spent, and its cursor leads on from there.
    Raises CursorError for a cursor that is none, NotThere for a topic or queue that is none, and
    FilterError for a filter that cannot be used.
    """
    ends = decode_cursor(cursor) if cursor else None
    test = wanted.compiled() if wanted else None
    queues = chosen_queues(await topic_queues(desk, topic), queue)
    gate = asyncio.Semaphore(QUEUES_AT_ONCE_MAX)

    async def windows_on(broker: BrokerRef) -> list[Window]:
        stored = await stored_windows(desk, [each for each in queues if each.broker == broker])
        return await _at_once(gate, stored, lambda each: within(desk, each, begin_ms, end_ms))

    found, failures = await desk.each(brokers_of(queues), windows_on)
    windows = [window for group in found.values() for window in group]
    total = sum(window.count for window in windows)
    if ends is not None:
        windows = windows_before(windows, ends)

    async def fetch(each: QueueRef, begin: int, end: int) -> Slice:
        async with gate:
            return await read_slice(desk, each, begin, end)

    limit = min(limit, PAGE_MESSAGES_MAX)
    if test is None:
        page = await newest_first(windows, limit, fetch)
    else:
        budget = Budget(SCAN_MESSAGES_MAX, SCAN_BYTES_MAX, monotonic() + SCAN_S)
        page = await newest_wanted(windows, limit, fetch, test, budget)
    rows = tuple(MessageRef(each.broker, message) for each, message in page.messages)
    left = sum(each.count for each in windows_before(windows, page.ends))
    found_page = MessagePage(
        rows, total, encode_cursor(page.ends), page.unreadable, page.scanned, left
    )
    return Partial(found_page, failures)


def chosen_queues(queues: tuple[QueueRef, ...], queue: str) -> tuple[QueueRef, ...]:
    """The queues that a text names, `broker-a:3` or `broker-a`; all of them when it is empty."""
    chosen = tuple(each for each in queues if queue in {"", each.key, each.broker.name})
    if queue and not chosen:
        raise NotThere(
            format_lazy(_("The topic has no queue “{queue}”."), queue=queue),
            hint=format_lazy(
                _("It has: {names}."),
                names=", ".join(each.key for each in queues[:QUEUES_NAMED_MAX]) or "—",
            ),
        )
    return chosen


@question(fresh_for_ms=2_000)
async def queue_names(desk: Desk, topic: str) -> Partial[tuple[str, ...]]:
    """What `browse` takes as `queue`: the brokers of a topic and its queues, no more than
    QUEUES_OFFERED_MAX."""
    queues = await topic_queues(desk, topic)
    names = [*(each.name for each in brokers_of(queues)), *(each.key for each in queues)]
    return Partial(tuple(names[:QUEUES_OFFERED_MAX]))


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


async def within(desk: Desk, window: Window, begin_ms: int | None, end_ms: int | None) -> Window:
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
