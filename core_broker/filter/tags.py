"""Subscriptions by tag: "A || B" wants the messages tagged A or B, "*" or nothing wants all.

The broker compares only the Java hash of a message's tags, which stands in its consume-queue unit;
consumers compare the strings again. A message without tags has the code 0 and matches only "*".
Compatible with RocketMQ's FilterAPI and DefaultMessageFilter.
"""

from collections.abc import Callable

from core_broker.errors import ProtocolError
from core_broker.message.hashing import java_string_hash
from core_broker.remoting.bodies import EXPRESSION_TAG, SUBSCRIBE_ALL, SubscriptionData

SEPARATOR = "||"


def parse_subscription(
    topic: str, expression: str | None, expression_type: str | None
) -> SubscriptionData:
    """The subscription of a pull request; raises ProtocolError when it is not one."""
    text = (expression or "").strip()
    if not is_by_tag(expression_type):
        if not text:
            raise ProtocolError(f"Expression can't be null! {expression_type}")
        return SubscriptionData(topic=topic, sub_string=text, expression_type=str(expression_type))
    if text in {"", SUBSCRIBE_ALL}:
        return SubscriptionData(
            topic=topic, sub_string=SUBSCRIBE_ALL, expression_type=EXPRESSION_TAG
        )
    tags = tags_of(text)
    if not tags:
        raise ProtocolError("subString split error")
    return SubscriptionData(
        topic=topic,
        sub_string=text,
        expression_type=EXPRESSION_TAG,
        tags_set=tags,
        code_set={java_string_hash(tag) for tag in tags},
    )


def is_by_tag(expression_type: str | None) -> bool:
    """True for the type of filters that nothing else is said of."""
    return expression_type in {None, "", EXPRESSION_TAG}


def matcher(subscription: SubscriptionData) -> Callable[[int], bool] | None:
    """The test on a message's tags code, or None when everything is wanted."""
    codes = codes_of(subscription)
    return None if codes is None else codes.__contains__


def codes_of(subscription: SubscriptionData) -> frozenset[int] | None:
    """The codes of the tags that are wanted, or None when everything is.

    They are computed here: those that C++ clients put into their heartbeats are wrong.
    """
    text = (subscription.sub_string or "").strip()
    if text in {"", SUBSCRIBE_ALL} or subscription.class_filter_mode:
        return None
    if not is_by_tag(subscription.expression_type):
        return None
    tags = subscription.tags_set or tags_of(text)
    return frozenset(java_string_hash(tag) for tag in tags)


def tags_of(text: str) -> set[str]:
    """The single tags of an expression, without the blanks around them."""
    return {part.strip() for part in text.split(SEPARATOR)} - {""}
