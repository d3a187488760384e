"""Bringing delayed messages to their topics when their time has come.

Each level is one queue of SCHEDULE_TOPIC_XXXX in which every message waits equally long, so only
its first message needs watching; its delivery time stands in the unit of the queue, in place of the
tags code. Delivered means stored once more, under REAL_TOPIC and REAL_QID. Compatible with
RocketMQ's ScheduleMessageService.
"""

import asyncio
import logging
from collections.abc import Callable

from core_broker.errors import ProtocolError, StoreBusy, StoreReadOnly
from core_broker.message.model import MessageExt, MessageInner
from core_broker.message.properties import PROPERTY_REAL_QUEUE_ID, PROPERTY_REAL_TOPIC
from core_broker.message.record import decode_record
from core_broker.message.topics import SCHEDULE_TOPIC, TRANS_HALF_TOPIC
from core_broker.processors.context import BrokerContext
from core_broker.processors.turn import Turn
from core_broker.state.delay_progress import is_due
from core_broker.store import ColdRead, PutStatus, QueueUnit

log = logging.getLogger(__name__)

#: Messages of one level delivered in one turn of the event loop.
DELIVERED_PER_TURN_MAX = 256
#: A clock that is set forwards is noticed after this time.
CLOCK_CHECK_MS = 1_000
#: Wait after the store refused a message.
RETRY_MS = 10_000


class DelayDelivery:
    """Delivers what is due."""

    #: The topics of which `arrived` wants to hear.
    topics = frozenset({SCHEDULE_TOPIC})

    def __init__(self, ctx: BrokerContext, turn: Turn) -> None:
        self._ctx = ctx
        self._turn = turn
        self._idle_levels: set[int] = set()
        self._wake = asyncio.Event()
        #: What must be read from the disk before a level can go on.
        self._cold: ColdRead | None = None

    def arrived(
        self, topic: str, queue_id: int, first: int, end: int, codes: Callable[[], list[int]]
    ) -> None:
        """Messages became readable; if their level had nothing to wait for, it has now."""
        if topic in self.topics and queue_id + 1 in self._idle_levels:
            self._wake.set()

    async def run(self) -> None:
        """Deliver for ever."""
        while True:
            self._wake.clear()
            try:
                wait_ms = self.deliver_due()
            except StoreReadOnly as error:
                log.warning("delayed messages have to wait: %s", error)
                wait_ms = RETRY_MS
            except Exception:
                log.exception("delivering delayed messages failed; trying again")
                wait_ms = RETRY_MS
            if self._cold is not None:
                wait_ms = await self._warm(self._cold)
            try:
                async with asyncio.timeout(wait_ms / 1000):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _lack(self, cold: ColdRead) -> None:
        self._cold = cold if self._cold is None else self._cold.add(cold)

    async def _warm(self, cold: ColdRead) -> int:
        """Bring into memory what a delivery lacked; return after how many ms to go on."""
        self._cold = None
        try:
            await self._ctx.store.cold.warmed(cold)
        except (OSError, StoreBusy) as error:
            log.warning("delayed messages cannot be read now: %s", error)
            return RETRY_MS
        return 0

    def deliver_due(self) -> int:
        """Deliver what is due now, and return after how many milliseconds to look again."""
        levels = range(1, self._ctx.delay_levels.level_max + 1)
        self._idle_levels.clear()
        progress: dict[int, int] = {}
        waits = [self._deliver_level(level, progress) for level in levels]
        if progress:
            self._turn.end()
            for level, offset in progress.items():
                self._ctx.delay_progress.advance(level, offset)
        return min(waits)

    def _deliver_level(self, level: int, progress: dict[int, int]) -> int:
        ctx = self._ctx
        start = ctx.delay_progress.offset(level)
        first, end = ctx.store.queue_range(SCHEDULE_TOPIC, level - 1)
        # Messages may have expired undelivered, or the log may have lost its end in a crash.
        offset = min(max(start, first), end)
        try:
            units = ctx.store.queue_units(SCHEDULE_TOPIC, level - 1, offset, DELIVERED_PER_TURN_MAX)
        except ColdRead as cold:
            self._lack(cold)
            return CLOCK_CHECK_MS
        wait_ms = 0 if offset + len(units) < end else CLOCK_CHECK_MS
        now_ms, delay_ms = ctx.now_ms(), ctx.delay_levels.delay_ms(level)
        for unit in units:
            if not is_due(unit.tags_code, now_ms, delay_ms):
                wait_ms = min(unit.tags_code - now_ms, CLOCK_CHECK_MS)
                break
            try:
                is_done = self._deliver(unit, level - 1, offset)
            except ColdRead as cold:
                self._lack(cold)
                break
            if not is_done:
                wait_ms = RETRY_MS
                break
            offset += 1
        if offset >= end:
            self._idle_levels.add(level)
        if offset != start:
            progress[level] = offset
        return wait_ms

    def _deliver(self, unit: QueueUnit, queue_id: int, offset: int) -> bool:
        """Put one message into its real topic; False when it must be tried again."""
        record = self._ctx.store.read_at(unit.offset_physical, unit.size)
        try:
            delayed = decode_record(record) if record is not None else None
        except ProtocolError:
            delayed = None
        inner = None
        if delayed is not None and (delayed.topic, delayed.queue_id, delayed.queue_offset) == (
            SCHEDULE_TOPIC,
            queue_id,
            offset,
        ):
            inner = _real(delayed)
        if inner is None:
            log.error("the delayed message at %d is not readable", unit.offset_physical)
            return True
        result = self._ctx.store.put(inner)
        if result.status is PutStatus.PUT_OK:
            puts = self._ctx.statistics.puts_of(inner.topic)
            puts.count_of[inner.queue_id] += 1
            puts.bytes_of[inner.queue_id] += result.size
            return True
        log.warning("a delayed message for %s: %s", inner.topic, result.status.value)
        # A message that can never be stored must not stop those behind it.
        return result.status in {PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED}


def _real(delayed: MessageExt) -> MessageInner | None:
    """The message as it goes to its topic, with all its properties; None when it has none."""
    properties = delayed.properties
    topic = properties.get(PROPERTY_REAL_TOPIC)
    queue = properties.get(PROPERTY_REAL_QUEUE_ID, "")
    if not topic or topic == TRANS_HALF_TOPIC or not queue.isdecimal():
        return None
    return MessageInner(
        topic,
        int(queue),
        delayed.body,
        properties,
        delayed.flag,
        delayed.sys_flag,
        delayed.born_timestamp,
        delayed.born_host,
        delayed.store_host,
        delayed.reconsume_times,
    )
