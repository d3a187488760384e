"""Sending a message into its delay: it waits in the schedule topic, in the queue of its level.

    DELAY       level, stays on the message
    REAL_TOPIC  where it goes when its time has come
    REAL_QID

`delay_delivery` brings it there. Compatible with the delay branch of RocketMQ's
CommitLog.asyncPutMessage.
"""

from core_broker.errors import RequestRefused
from core_broker.message.model import MessageInner
from core_broker.message.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
)
from core_broker.message.topics import SCHEDULE_TOPIC
from core_broker.remoting.codes import ResponseCode
from core_broker.state.delay_levels import DelayLevels


def asked_level(inner: MessageInner) -> int:
    """The delay level that a message asks for, 0 for none."""
    text = inner.properties.get(PROPERTY_DELAY_TIME_LEVEL)
    if text is None:
        return 0
    try:
        return int(text)
    except ValueError:
        raise RequestRefused(
            ResponseCode.MESSAGE_ILLEGAL, f"the delay level {text[:32]!r} is not a number"
        ) from None


def delay(inner: MessageInner, level: int, levels: DelayLevels) -> None:
    """Redirect a message to the queue of its level; `level` is at least 1."""
    level = levels.capped(level)
    properties = inner.properties
    properties[PROPERTY_DELAY_TIME_LEVEL] = str(level)
    properties[PROPERTY_REAL_TOPIC] = inner.topic
    properties[PROPERTY_REAL_QUEUE_ID] = str(inner.queue_id)
    inner.topic = SCHEDULE_TOPIC
    inner.queue_id = level - 1
