"""The progress that a truncation of the commit log takes back.

A delayed message may stay in the log while the record of its delivery is dropped; it must be
delivered again. A half message may stay while the op message that ended it is dropped; it is
pending again. Progress goes back far enough for all of them: some messages may be delivered or
checked twice, none is lost. Behind a closed read gate the delay progress counts no dropped delivery
(delay_delivery.py), but a file of another version or of RocketMQ may. Consumer offsets end with
their queues.
"""

from collections import Counter

from core_broker.errors import ProtocolError
from core_broker.message import sysflag
from core_broker.message.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    decode_properties,
)
from core_broker.message.record import decode_record
from core_broker.message.topics import (
    SCHEDULE_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    TRANSACTION_GROUP,
)
from core_broker.message.transactions import ended_halves
from core_broker.state.consumer_offsets import ConsumerOffsets
from core_broker.state.delay_progress import DelayProgress
from core_broker.state.half_messages import HALF_QUEUE_ID
from core_broker.store import MessageStore
from core_broker.store.log_scan import LogRecord
from core_broker.store.truncation import QueueEnds, Rollback, Truncation

#: Deliveries whose level is unknown count for every level.
_ANY_LEVEL = 0


def plan_rollback(store: MessageStore, offset: int, delays: DelayProgress) -> Rollback:
    """Return the progress to take back when the paused store is truncated to an offset.

    Reads the records to be dropped. Waits for the disk.
    """
    deliveries: Counter[int] = Counter()
    first_half: int | None = None
    for record in store.truncator.tail(offset):
        if record.topic in (TRANS_OP_HALF_TOPIC, TRANS_CHECK_MAX_TIME_TOPIC):
            half = _first_ended(store, record)
            first_half = half if first_half is None else min(first_half, half)
        elif (level := _delivered_level(record)) is not None:
            deliveries[level] += 1
    ends = store.truncator.queue_ends(offset)
    levels = {level: _level_offset(level, deliveries, ends, delays) for level in delays.levels}
    back = {level: at for level, at in levels.items() if at < delays.offset(level)}
    if first_half is None:
        return Rollback(back)
    return Rollback(back, _half_offsets(store, offset, first_half, ends))


def _level_offset(
    level: int, deliveries: Counter[int], ends: QueueEnds, delays: DelayProgress
) -> int:
    """Return the first offset of a level whose delivery may be dropped, within its queue."""
    first = delays.offset(level) - deliveries[level] - deliveries[_ANY_LEVEL]
    end = ends.get(SCHEDULE_TOPIC, {}).get(level - 1)
    return max(0, first if end is None else min(first, end))


def _delivered_level(record: LogRecord) -> int | None:
    """Return the delay level of a delivered message, None for any other message."""
    is_plain = record.sys_flag & sysflag.TRANSACTION_MASK == sysflag.TRANSACTION_NONE
    if not is_plain or record.topic == SCHEDULE_TOPIC:
        return None
    properties = decode_properties(record.properties)
    queue_id = properties.get(PROPERTY_REAL_QUEUE_ID)
    if (properties.get(PROPERTY_REAL_TOPIC), queue_id) != (record.topic, str(record.queue_id)):
        return None
    level = properties.get(PROPERTY_DELAY_TIME_LEVEL, "")
    return int(level) if level.isascii() and level.isdigit() and len(level) < 3 else _ANY_LEVEL


def _first_ended(store: MessageStore, record: LogRecord) -> int:
    """Return the first half message that an op message ends; 0 when that is unknown.

    A discarded message does not tell its offset in the half queue.
    """
    data = store.read_at(record.offset, record.size)
    try:
        op = decode_record(data) if data is not None else None
    except ProtocolError:
        op = None
    if op is None or op.topic != TRANS_OP_HALF_TOPIC:
        return 0
    return min(ended_halves(op), default=0)


def _half_offsets(
    store: MessageStore, offset: int, first_half: int, ends: QueueEnds
) -> tuple[int, int]:
    """Return the first half message that may be pending, and the first op message to read.

    An op message follows its half message in the log.
    """
    low, end = store.queue_range(TRANS_HALF_TOPIC, HALF_QUEUE_ID)
    end = ends.get(TRANS_HALF_TOPIC, {}).get(HALF_QUEUE_ID, end)
    half = min(max(first_half, low), end)
    units = store.queue_units(TRANS_HALF_TOPIC, HALF_QUEUE_ID, half, 1)
    begin = units[0].offset_physical if half < end and units else offset
    return half, store.truncator.first_unit(TRANS_OP_HALF_TOPIC, HALF_QUEUE_ID, begin)


def roll_back(truncation: Truncation, offsets: ConsumerOffsets, delays: DelayProgress) -> None:
    """Take the progress of a truncation back; repeating it changes nothing more."""
    for group, topic, queue_id, offset in list(offsets.rows()):
        end = truncation.queue_ends.get(topic, {}).get(queue_id)
        if end is not None and offset > end:
            offsets.commit(group, topic, queue_id, end)
    for level, offset in truncation.rollback.delay_offsets.items():
        if offset < delays.offset(level):
            delays.advance(level, offset)
    halves = truncation.rollback.half_offsets
    if halves is None:
        return
    for topic, offset in zip((TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC), halves, strict=True):
        saved = offsets.committed(TRANSACTION_GROUP, topic, HALF_QUEUE_ID)
        if saved is not None and offset < saved:
            offsets.commit(TRANSACTION_GROUP, topic, HALF_QUEUE_ID, offset)
