"""Redirection of a delayed message to the schedule topic, into the queue of its delay level.

    DELAY       the delay level; stays on the message
    REAL_TOPIC  topic for the delivery
    REAL_QID    queue id for the delivery

`delay_delivery` delivers the message. Compatible with the delay branch of RocketMQ's
CommitLog.asyncPutMessage.

Timer messages of RocketMQ 5 are refused with MESSAGE_ILLEGAL, an error that producers do not retry.
"""

from collections.abc import Iterable

from core_broker.errors import RequestRefused
from core_broker.message.model import MessageInner
from core_broker.message.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    TIMER_PROPERTIES,
)
from core_broker.message.topics import RETRY_PREFIX, SCHEDULE_TOPIC
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


def refuse_timer(properties: Iterable[str]) -> None:
    """Raise RequestRefused for properties of a timer message.

    A 4.x broker stores such a message as a plain message: consumers get the message at once.
    """
    timers = TIMER_PROPERTIES.intersection(properties)
    if timers:
        raise RequestRefused(
            ResponseCode.MESSAGE_ILLEGAL,
            f"timer messages are not supported (property {min(timers)}); use a delay level (DELAY)",
        )


def settle_timer(inner: MessageInner) -> None:
    """Remove the timer properties of a message with a delay level or of a retried message.

    As in RocketMQ 5 the level wins. A retried message has been delivered before, by a broker of
    RocketMQ 5 for example. Raises RequestRefused for all other messages with a timer property.
    """
    properties = inner.properties
    if requested_level(inner) <= 0 and not inner.topic.startswith(RETRY_PREFIX):
        refuse_timer(properties)
    for name in TIMER_PROPERTIES:
        properties.pop(name, None)
