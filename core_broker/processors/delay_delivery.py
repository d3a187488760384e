"""Delivery of delayed messages to their topics at their delivery time.

Each delay level is one queue of SCHEDULE_TOPIC_XXXX. All messages of a queue have the same delay,
so delivery only watches the first message. A queue unit holds the delivery time in place of the
tags code. Delivery stores the message again, under REAL_TOPIC and REAL_QID.

While the read gate is closed, a failover may drop a delivered message. The saved progress then
counts confirmed deliveries only: a broker that adopts the progress skips no delayed message.
Compatible with RocketMQ's ScheduleMessageService.
"""

import asyncio
import logging
from collections import deque
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

#: Maximum messages of one level delivered in one event-loop iteration.
DELIVERED_PER_TURN_MAX = 256
#: Longest time between two checks, ms, so that a clock set forwards takes effect.
CLOCK_CHECK_MS = 1_000
#: Iterations whose deliveries wait for their confirmation; more of them are not begun.
UNCONFIRMED_MAX = 16
#: Time between two checks of the confirm offset, ms.
CONFIRM_CHECK_MS = 50
#: Pause after the store refused a message, ms.
RETRY_MS = 10_000


class DelayDelivery:
    """Delivers due messages of all levels."""

    #: Topics for which the store calls `arrived`.
    topics = frozenset({SCHEDULE_TOPIC})

    def __init__(self, ctx: BrokerContext, turn: Turn) -> None:
        self._ctx = ctx
        self._turn = turn
        self._idle_levels: set[int] = set()
        self._wake = asyncio.Event()
        #: Level → next offset to deliver, where that is ahead of the saved progress.
        self._next: dict[int, int] = {}
        #: Ends of the log with the progress of the deliveries before, which are not confirmed.
        self._unconfirmed: deque[tuple[int, dict[int, int]]] = deque()
        #: Data to read from the disk before delivery of some level can continue.
        self._cold: ColdRead | None = None

    def arrived(
        self, topic: str, queue_id: int, first: int, end: int, codes: Callable[[], list[int]]
    ) -> None:
        """Wake the delivery loop when messages became readable in a level without messages."""
        if topic in self.topics and queue_id + 1 in self._idle_levels:
            self._wake.set()

    async def run(self) -> None:
        """Deliver for ever, from the saved progress on.

        Under controllers, and in a DLedger group, each mastership is a run.
        """
        self._next.clear()
        self._unconfirmed.clear()
        while True:
            self._wake.clear()
            try:
                wait_ms = self.deliver_due()
            except StoreReadOnly as error:
                log.warning("delivery of delayed messages is paused: %s", error)
                wait_ms = RETRY_MS
            except Exception:
                log.exception("delivery of delayed messages failed; retrying")
                wait_ms = RETRY_MS
            if self._cold is not None:
                wait_ms = await self._warm(self._cold)
            try:
                async with asyncio.timeout(wait_ms / 1000):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _need(self, cold: ColdRead) -> None:
        self._cold = cold if self._cold is None else self._cold.add(cold)

    async def _warm(self, cold: ColdRead) -> int:
        """Read missing data into memory; return the pause before the next delivery, ms."""
        self._cold = None
        try:
            await self._ctx.store.cold_reads.warmed(cold)
        except (OSError, StoreBusy) as error:
            log.warning("delayed messages cannot be read now: %s", error)
            return RETRY_MS
        return 0

    def deliver_due(self) -> int:
        """Deliver due messages, and return the time until the next check, ms."""
        self._save_confirmed()
        if len(self._unconfirmed) >= UNCONFIRMED_MAX:
            return CONFIRM_CHECK_MS
        levels = range(1, self._ctx.delay_levels.level_max + 1)
        self._idle_levels.clear()
        progress: dict[int, int] = {}
        waits = [self._deliver_level(level, progress) for level in levels]
        if progress:
            self._turn.end()
            self._next |= progress
            self._unconfirmed.append((self._ctx.store.max_offset_physical, progress))
            self._save_confirmed()
        if self._unconfirmed:
            waits.append(CONFIRM_CHECK_MS)
        return min(waits)

    def _save_confirmed(self) -> None:
        """Advance the saved progress; without a closed gate, all deliveries count as confirmed."""
        while self._unconfirmed and self._ctx.store.gate.shows(self._unconfirmed[0][0]):
            for level, offset in self._unconfirmed.popleft()[1].items():
                self._ctx.delay_progress.advance(level, offset)
        if not self._unconfirmed:
            self._next.clear()

    def _deliver_level(self, level: int, progress: dict[int, int]) -> int:
        ctx = self._ctx
        start = self._next.get(level, ctx.delay_progress.offset(level))
        first, end = ctx.store.queue_range(SCHEDULE_TOPIC, level - 1)
        if ctx.store.gate.hides(SCHEDULE_TOPIC, level - 1, start):
            # Delivered messages, whose confirmation is not known again since a restart.
            self._idle_levels.add(level)
            return CLOCK_CHECK_MS
        # Undelivered messages may have expired, or a crash may have truncated the log.
        offset = min(max(start, first), end)
        try:
            units = ctx.store.queue_units(SCHEDULE_TOPIC, level - 1, offset, DELIVERED_PER_TURN_MAX)
        except ColdRead as cold:
            self._need(cold)
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
                self._need(cold)
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
        """Store one message under its real topic; False when delivery must be retried."""
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
            self._ctx.store.repair_unit(SCHEDULE_TOPIC, queue_id, offset)
            log.error("the delayed message at offset %d is unreadable", unit.offset_physical)
            return True
        result = self._ctx.store.put(inner)
        if result.status is PutStatus.PUT_OK:
            puts = self._ctx.statistics.puts_of(inner.topic)
            puts.count_of[inner.queue_id] += 1
            puts.bytes_of[inner.queue_id] += result.size
            return True
        log.warning("storing a delayed message for %s: %s", inner.topic, result.status.value)
        # A message the store always refuses must not block the messages behind it.
        return result.status in {PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED}


def _real(delayed: MessageExt) -> MessageInner | None:
    """The message for its real topic, with all properties; None without a valid real topic."""
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
