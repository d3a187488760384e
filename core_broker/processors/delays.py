"""Redirection of a delayed message to the schedule topic, into the queue of its delay level.

    DELAY       the delay level; stays on the message
    REAL_TOPIC  topic for the delivery
    REAL_QID    queue id for the delivery

`delay_delivery` delivers the message. Compatible with the delay branch of RocketMQ's
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


def requested_level(inner: MessageInner) -> int:
    """The delay level in a message's properties; 0 without a level."""
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
    """Redirect a message to the queue of its level; `level` must be at least 1."""
    level = levels.capped(level)
    properties = inner.properties
    properties[PROPERTY_DELAY_TIME_LEVEL] = str(level)
    properties[PROPERTY_REAL_TOPIC] = inner.topic
    properties[PROPERTY_REAL_QUEUE_ID] = str(inner.queue_id)
    inner.topic = SCHEDULE_TOPIC
    inner.queue_id = level - 1
