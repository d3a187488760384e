"""The forms of a transactional message: half, op, committed, discarded. Pure.

    half        RMQ_SYS_TRANS_HALF_TOPIC, queue 0; REAL_TOPIC and REAL_QID name the real queue,
                PGROUP the producer group, TRANSACTION_CHECK_TIMES the number of checks
    op          RMQ_SYS_TRANS_OP_HALF_TOPIC, queue 0; TAGS is "d", the body is the queue offset of
                the half message, in decimal; RocketMQ 5 writes several, each followed by a comma.
                MOVED_TO, a property of Gantry, is the queue offset at which the half message was
                stored again without being ended; RocketMQ treats the old copy as ended
    committed   real topic and queue, with the commit bit and the position of the half message
    discarded   TRANS_CHECK_MAX_TIME_TOPIC, queue 0

Compatible with RocketMQ's TransactionalMessageBridge, EndTransactionProcessor and
DefaultTransactionalMessageCheckListener.
"""

from core_broker.message import sysflag
from core_broker.message.model import Host, MessageExt, MessageInner
from core_broker.message.properties import (
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TAGS,
    PROPERTY_TRANSACTION_CHECK_TIMES,
    PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET,
    PROPERTY_WAIT_STORE_MSG_OK,
)
from core_broker.message.topics import (
    TRANS_CHECK_MAX_TIME_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
)
from core_broker.message.transactions import PROPERTY_MOVED_TO, REMOVE_TAG, times_checked

#: The only queue of the half topic and of the op topic.
HALF_QUEUE_ID = 0
_QUEUE_DIGITS_MAX = 9


def make_half(inner: MessageInner, group: str) -> None:
    """Turn a producer's message into a half message, which is invisible to consumers."""
    properties = inner.properties
    properties.setdefault(PROPERTY_PRODUCER_GROUP, group)
    properties[PROPERTY_REAL_TOPIC] = inner.topic
    properties[PROPERTY_REAL_QUEUE_ID] = str(inner.queue_id)
    inner.sys_flag &= ~sysflag.TRANSACTION_MASK
    inner.topic = TRANS_HALF_TOPIC
    inner.queue_id = HALF_QUEUE_ID


def real_queue(half: MessageExt) -> tuple[str, int] | None:
    """REAL_TOPIC and REAL_QID of a half message; None when one is missing or invalid."""
    topic = half.properties.get(PROPERTY_REAL_TOPIC)
    queue = half.properties.get(PROPERTY_REAL_QUEUE_ID, "")
    is_queue = queue.isascii() and queue.isdigit() and len(queue) <= _QUEUE_DIGITS_MAX
    return (topic, int(queue)) if topic and is_queue else None


def committed(half: MessageExt, topic: str, queue_id: int) -> MessageInner:
    """The message for consumers, with all properties."""
    inner = _copy(half, topic, queue_id)
    inner.sys_flag = half.sys_flag & ~sysflag.TRANSACTION_MASK | sysflag.TRANSACTION_COMMIT
    inner.prepared_transaction_offset = half.offset_physical
    return inner


def op_message(
    half: MessageExt, host: Host, now_ms: int, moved_to: int | None = None
) -> MessageInner:
    """The op message for an ended half message, or for one stored again at offset `moved_to`.

    RocketMQ writes no op message for a half message stored again, and checks both copies after a
    crash.
    """
    properties = {PROPERTY_WAIT_STORE_MSG_OK: "true", PROPERTY_TAGS: REMOVE_TAG}
    if moved_to is not None:
        properties[PROPERTY_MOVED_TO] = str(moved_to)
    return MessageInner(
        TRANS_OP_HALF_TOPIC,
        HALF_QUEUE_ID,
        str(half.queue_offset).encode(),
        properties,
        born_timestamp=now_ms,
        born_host=host,
        store_host=host,
    )


def renewed(half: MessageExt) -> MessageInner:
    """The copy of a half message to store before a check, with one more check counted."""
    inner = _copy(half, TRANS_HALF_TOPIC, HALF_QUEUE_ID)
    inner.properties[PROPERTY_TRANSACTION_CHECK_TIMES] = str(times_checked(half.properties) + 1)
    return inner


def renewed_immune(half: MessageExt) -> MessageInner:
    """The copy of a half message to store during its immunity time, without a check.

    The copy keeps the first queue offset, because the producer ends the transaction by that offset.
    RocketMQ counts the copy as a check, and so discards a message with a long immunity time before
    its first check.
    """
    inner = _copy(half, TRANS_HALF_TOPIC, HALF_QUEUE_ID)
    inner.properties.setdefault(PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET, str(half.queue_offset))
    return inner


def discarded(half: MessageExt) -> MessageInner:
    """The copy of a half message for operators, after its last check."""
    return _copy(half, TRANS_CHECK_MAX_TIME_TOPIC, 0)


def resumed(message: MessageExt) -> MessageInner:
    """A discarded message as a half message with 0 checks."""
    inner = _copy(message, TRANS_HALF_TOPIC, HALF_QUEUE_ID)
    inner.properties[PROPERTY_TRANSACTION_CHECK_TIMES] = "0"
    return inner


def as_sent(
    half: MessageExt, properties: dict[str, str], topic: str, queue_id: int
) -> MessageInner:
    """The message in the body of a check: with the topic of the original send."""
    inner = _copy(half, topic, queue_id)
    inner.properties = properties
    return inner


def _copy(message: MessageExt, topic: str, queue_id: int) -> MessageInner:
    return MessageInner(
        topic,
        queue_id,
        message.body,
        dict(message.properties),
        message.flag,
        message.sys_flag,
        message.born_timestamp,
        message.born_host,
        message.store_host,
        message.reconsume_times,
    )
