"""A transactional message in its forms: half, ended, committed, checked, given up. Pure.

    half        RMQ_SYS_TRANS_HALF_TOPIC, queue 0; REAL_TOPIC and REAL_QID say where it belongs,
                PGROUP whom to ask, TRANSACTION_CHECK_TIMES how often that was done
    op          RMQ_SYS_TRANS_OP_HALF_TOPIC, queue 0; TAGS is "d", the body the offset of the half
                message in its queue, in decimal; RocketMQ 5 writes several, each with a comma.
                With MOVED_TO, which is Gantry's own, the half message was not ended but stored
                again at that offset; to RocketMQ the old one is done with all the same
    committed   its real topic and queue, with the commit bit and the position of the half message
    given up    TRANS_CHECK_MAX_TIME_TOPIC, queue 0

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
from core_broker.state.half_ledger import times_checked

#: Half and op messages lie in one queue each.
HALF_QUEUE_ID = 0
#: The tag of an op message: the half message is done with.
REMOVE_TAG = "d"
PROPERTY_MOVED_TO = "MOVED_TO"
_DIGITS_MAX = 18
_QUEUE_DIGITS_MAX = 9


def make_half(inner: MessageInner, group: str) -> None:
    """Turn a message of a producer into a half message, which no consumer sees."""
    properties = inner.properties
    properties.setdefault(PROPERTY_PRODUCER_GROUP, group)
    properties[PROPERTY_REAL_TOPIC] = inner.topic
    properties[PROPERTY_REAL_QUEUE_ID] = str(inner.queue_id)
    inner.sys_flag &= ~sysflag.TRANSACTION_MASK
    inner.topic = TRANS_HALF_TOPIC
    inner.queue_id = HALF_QUEUE_ID


def real_place(half: MessageExt) -> tuple[str, int] | None:
    """The topic and queue of a half message; None when it does not say."""
    topic = half.properties.get(PROPERTY_REAL_TOPIC)
    queue = half.properties.get(PROPERTY_REAL_QUEUE_ID, "")
    is_queue = queue.isascii() and queue.isdigit() and len(queue) <= _QUEUE_DIGITS_MAX
    return (topic, int(queue)) if topic and is_queue else None


def committed(half: MessageExt, topic: str, queue_id: int) -> MessageInner:
    """The message as consumers get it, with all its properties."""
    inner = _copy(half, topic, queue_id)
    inner.sys_flag = half.sys_flag & ~sysflag.TRANSACTION_MASK | sysflag.TRANSACTION_COMMIT
    inner.prepared_transaction_offset = half.offset_physical
    return inner


def op_message(
    half: MessageExt, host: Host, now_ms: int, moved_to: int | None = None
) -> MessageInner:
    """The note that a half message is done with, or was stored again at another offset.

    RocketMQ writes none in the second case. After a crash it asks about both copies.
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


def ended_halves(op: MessageExt) -> list[int]:
    """The half messages that an op message names."""
    if op.tags != REMOVE_TAG:
        return []
    parts = op.body.split(b",")
    return [int(part) for part in parts if part.isdigit() and len(part) <= _DIGITS_MAX]


def moved_to(op: MessageExt) -> int | None:
    """Where the half message of an op message was stored again; None when it was ended."""
    text = op.properties.get(PROPERTY_MOVED_TO, "")
    is_offset = text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
    return int(text) if is_offset else None


def checked_again(half: MessageExt) -> MessageInner:
    """A half message as it is stored again before its producer is asked."""
    inner = _copy(half, TRANS_HALF_TOPIC, HALF_QUEUE_ID)
    inner.properties[PROPERTY_TRANSACTION_CHECK_TIMES] = str(times_checked(half.properties) + 1)
    return inner


def shielded_again(half: MessageExt) -> MessageInner:
    """A half message as it is stored again without asking, which does not count as a check.

    It keeps its first place, by which its producer knows it. RocketMQ counts; it would give up a
    message of a long immunity before it asked once.
    """
    inner = _copy(half, TRANS_HALF_TOPIC, HALF_QUEUE_ID)
    inner.properties.setdefault(PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET, str(half.queue_offset))
    return inner


def given_up(half: MessageExt) -> MessageInner:
    """A half message that is put aside for a person to look at."""
    return _copy(half, TRANS_CHECK_MAX_TIME_TOPIC, 0)


def resumed(given: MessageExt) -> MessageInner:
    """A message that was given up, as a half message again, never checked."""
    inner = _copy(given, TRANS_HALF_TOPIC, HALF_QUEUE_ID)
    inner.properties[PROPERTY_TRANSACTION_CHECK_TIMES] = "0"
    return inner


def as_sent(
    half: MessageExt, properties: dict[str, str], topic: str, queue_id: int
) -> MessageInner:
    """The message as its producer is asked about it: with the topic it was sent to."""
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
