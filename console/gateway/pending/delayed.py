"""The question that lists delayed messages which brokers have not delivered, by due time.

A delayed message is stored in SCHEDULE_TOPIC_XXXX, in the queue `level - 1`; REAL_TOPIC names its
topic. Messages of a level have the same delay, so the due times of a queue never decrease. The
runtime information (code 28) reports the next offset to deliver per level; levels without a report
begin at their first message. All requests are RocketMQ's, so the list works on every broker.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic

from console.gateway.brokers import runtime
from console.gateway.brokers.listing import ask_masters
from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures
from console.gateway.engine.concurrency import gather_limited
from console.gateway.engine.errors import NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.messages.browse import (
    PAGE_MESSAGES_MAX,
    SCAN_BYTES_MAX,
    SCAN_MESSAGES_MAX,
    SCAN_S,
)
from console.gateway.messages.masks import NO_MASK, Mask
from console.gateway.messages.paging import Budget, Window, decode_cursor, encode_cursor
from console.gateway.messages.queue_slices import (
    QueueRef,
    Slice,
    brokers_of,
    read_slice,
    topic_queues,
)
from console.gateway.messages.stored import QUEUES_AT_ONCE_MAX, MessageRef
from console.gateway.messages.windows import first_stored_at, stored_windows
from console.gateway.pending.merging import smallest_first
from core_broker.config import BrokerConfig
from core_broker.message.delays import parse_delay_levels
from core_broker.message.model import MessageExt
from core_broker.message.properties import PROPERTY_REAL_TOPIC
from core_broker.message.topics import RETRY_PREFIX, SCHEDULE_TOPIC

SETTINGS_FRESH_MS = 10_000


@dataclass(frozen=True, slots=True)
class DelayFilter:
    """A filter of delayed messages; an empty part matches all of them.

    `topic` is the topic of delivery. `text` is a message id or a key. `retries`: only deliveries
    that a consumer group retries (True), or none of them (False).
    """

    topic: str = ""
    text: str = ""
    level: int | None = None
    due_from_ms: int | None = None
    due_to_ms: int | None = None
    retries: bool | None = None

    def __bool__(self) -> bool:
        return self != DelayFilter()

    def matches(self, message: MessageExt) -> bool:
        topic = message.properties.get(PROPERTY_REAL_TOPIC, "")
        if self.topic and topic != self.topic:
            return False
        if self.retries is not None and topic.startswith(RETRY_PREFIX) is not self.retries:
            return False
        ids = (message.msg_id, message.offset_msg_id, *message.keys)
        return not self.text or self.text in ids


@dataclass(frozen=True, slots=True)
class DelayedMessage:
    """A message that waits for its delivery at `due_ms`."""

    ref: MessageRef
    level: int
    delay_ms: int
    due_ms: int

    @property
    def topic(self) -> str:
        """The topic of delivery."""
        return self.ref.message.properties.get(PROPERTY_REAL_TOPIC, "")

    @property
    def retry_group(self) -> str | None:
        """The consumer group of a delivery that is retried."""
        topic = self.topic
        return topic.removeprefix(RETRY_PREFIX) if topic.startswith(RETRY_PREFIX) else None


@dataclass(frozen=True, slots=True)
class DelayLevel:
    """Undelivered messages of a level on one broker."""

    broker: str
    level: int
    delay_ms: int
    pending: int


@dataclass(frozen=True, slots=True)
class DelayedPage:
    """A page, earliest due time first. `total` counts all pending messages of the chosen levels
    and due times, matching or not; `left` those after this page.

    `timers` counts messages in the timer wheels of RocketMQ 5, by broker; they are not listed.
    """

    rows: tuple[DelayedMessage, ...]
    levels: tuple[DelayLevel, ...]
    total: int
    next_cursor: str | None
    scanned: int
    left: int
    unreadable: int
    timers: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class _Progress:
    """Delays of the levels, ms; next offset to deliver by level; messages in the timer wheel."""

    delays_ms: tuple[int, ...]
    next_offsets: Mapping[int, int]
    timers: int

    def delay_ms(self, queue: QueueRef) -> int:
        return self.delays_ms[queue.queue_id] if queue.queue_id < len(self.delays_ms) else 0


@question(fresh_for_ms=SETTINGS_FRESH_MS)
async def broker_configs(
    session: ClusterSession,
) -> Partial[Mapping[BrokerRef, Mapping[str, str]]]:
    """The configuration of one process of each broker name."""
    found, failures = await ask_masters(
        session,
        lambda ref: session.admin.broker_config(ref.addr),
        one_must_answer=False,
        keep=("broker_config",),
    )
    return Partial(found, failures)


@question(fresh_for_ms=1_000, deadline_ms=15_000)
async def delayed_messages(
    session: ClusterSession,
    wanted: DelayFilter,
    cursor: str | None = None,
    limit: int = 50,
    mask: Mask = NO_MASK,
) -> Partial[DelayedPage]:
    """A page of the undelivered messages, earliest due time first.

    A page ends when the page is full or the scan budget is spent; the cursor continues from there.
    Raises CursorError for an invalid cursor.
    """
    begins = decode_cursor(cursor) if cursor else {}
    progress, failures = await _progress(session)
    try:
        queues = await topic_queues(session, SCHEDULE_TOPIC)
    except NotFound:
        return Partial(DelayedPage((), (), 0, None, 0, 0, 0, _timers(progress)), failures)
    gate = asyncio.Semaphore(QUEUES_AT_ONCE_MAX)

    async def pending_on(broker: BrokerRef) -> list[Window]:
        held = await stored_windows(session, [each for each in queues if each.broker == broker])
        own = progress.get(broker, _unknown())
        windows = [
            Window(each.queue, max(each.begin, own.next_offsets.get(_level(each), 0)), each.end)
            for each in held
        ]
        return await gather_limited(
            gate, windows, lambda each: _within(session, each, own.delay_ms(each.queue), wanted)
        )

    found, refused = await session.fan_out(brokers_of(queues), pending_on)
    every = [window for group in found.values() for window in group if window.count]
    chosen = [each for each in every if wanted.level in {None, _level(each)}]
    rest = [_from(each, begins) for each in chosen]
    delays = {each.queue: progress.get(each.queue.broker, _unknown()) for each in chosen}

    async def fetch(queue: QueueRef, begin: int, end: int) -> Slice:
        async with gate:
            return await read_slice(session, queue, begin, end)

    page = await smallest_first(
        rest,
        min(limit, PAGE_MESSAGES_MAX),
        fetch,
        lambda queue, message: message.store_timestamp + delays[queue].delay_ms(queue),
        lambda message: wanted.matches(mask.message(message)),
        Budget(SCAN_MESSAGES_MAX, SCAN_BYTES_MAX, monotonic() + SCAN_S),
    )
    left = sum(_from(each, page.ends).count for each in rest) if page.ends else 0
    value = DelayedPage(
        tuple(
            _row(
                queue,
                MessageRef(queue.broker, each).seen_through(mask),
                delays[queue].delay_ms(queue),
            )
            for queue, each in page.messages
        ),
        tuple(_counted(each, progress.get(each.queue.broker, _unknown())) for each in every),
        sum(each.count for each in chosen),
        encode_cursor(page.ends),
        page.scanned,
        left,
        page.unreadable,
        _timers(progress),
    )
    return Partial(value, merge_failures(failures, refused))


def _counted(window: Window, progress: _Progress) -> DelayLevel:
    delay_ms = progress.delay_ms(window.queue)
    return DelayLevel(window.queue.broker.name, _level(window), delay_ms, window.count)


async def _progress(
    session: ClusterSession,
) -> tuple[dict[BrokerRef, _Progress], tuple[BrokerFailure, ...]]:
    """The delivery progress of each broker. A broker that hides its settings has RocketMQ's
    default delays."""
    tables, failures = await ask_masters(
        session, lambda ref: session.admin.runtime_info(ref.addr), keep=("runtime_info",)
    )
    configs = await session.ask(broker_configs)
    progress = {}
    for ref, table in tables.items():
        text = configs.value.get(ref, {}).get("messageDelayLevel")
        offsets: dict[int, int] = {}
        for key, value in table.items():
            level = key.removeprefix("scheduleMessageOffset_")
            done = value.partition(",")[0]
            if level != key and level.isdecimal() and done.isdecimal():
                offsets[int(level)] = int(done)
        timers = runtime.whole(table, "timerCongestNum") or 0
        progress[ref] = _Progress(_delays(text), offsets, timers)
    return progress, merge_failures(failures, configs.failures)


def _delays(text: str | None) -> tuple[int, ...]:
    if text:
        try:
            return parse_delay_levels(text)
        except ValueError:
            pass  # a broker with a malformed setting delivers by the default table
    return parse_delay_levels(BrokerConfig().message_delay_level)


def _unknown() -> _Progress:
    return _Progress(_delays(None), {}, 0)


def _level(window: Window) -> int:
    return window.queue.queue_id + 1


def _from(window: Window, begins: Mapping[str, int]) -> Window:
    """The window without the messages of earlier pages."""
    begin = max(window.begin, begins.get(window.queue.key, 0))
    return Window(window.queue, min(begin, window.end), window.end)


async def _within(
    session: ClusterSession, window: Window, delay_ms: int, wanted: DelayFilter
) -> Window:
    """The part of a window that is due in the range of the filter."""
    begin, end = window.begin, window.end
    if begin < end and wanted.due_from_ms is not None:
        begin = await first_stored_at(session, window, max(0, wanted.due_from_ms - delay_ms))
    if begin < end and wanted.due_to_ms is not None:
        end = await first_stored_at(session, window, max(0, wanted.due_to_ms - delay_ms + 1))
    return Window(window.queue, begin, max(begin, end))


def _row(queue: QueueRef, ref: MessageRef, delay_ms: int) -> DelayedMessage:
    return DelayedMessage(ref, queue.queue_id + 1, delay_ms, ref.message.store_timestamp + delay_ms)


def _timers(progress: Mapping[BrokerRef, _Progress]) -> tuple[tuple[str, int], ...]:
    return tuple((ref.name, each.timers) for ref, each in sorted(progress.items()) if each.timers)
