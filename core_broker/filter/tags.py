"""Subscriptions by tag: "A || B" matches messages tagged A or B, "*" or "" matches all messages.

The broker compares only the tags code of the consume-queue unit, the Java hash of the message's
tags; consumers compare the strings again. A message without tags has the code 0 and matches only
"*". Compatible with RocketMQ's FilterAPI and DefaultMessageFilter.
"""

from collections.abc import Callable

from core_broker.errors import ProtocolError
from core_broker.message.hashing import java_string_hash
from core_broker.remoting.bodies import EXPRESSION_TAG, SUBSCRIBE_ALL, SubscriptionData

SEPARATOR = "||"
#: Maximum length of an expression in a pull, characters; as of SQL92 expressions.
TAG_EXPRESSION_CHARS_MAX = 32_768


def parse_subscription(
    topic: str, expression: str | None, expression_type: str | None
) -> SubscriptionData:
    """Read the subscription of a pull request; raises ProtocolError for an invalid expression."""
    text = (expression or "").strip()
    if not is_by_tag(expression_type):
        if not text:
            raise ProtocolError(f"Expression can't be null! {expression_type}")
        return SubscriptionData(topic=topic, sub_string=text, expression_type=str(expression_type))
    if text in {"", SUBSCRIBE_ALL}:
        return SubscriptionData(
            topic=topic, sub_string=SUBSCRIBE_ALL, expression_type=EXPRESSION_TAG
        )
    if len(text) > TAG_EXPRESSION_CHARS_MAX:
        raise ProtocolError(
            f"The expression has {len(text)} characters, over {TAG_EXPRESSION_CHARS_MAX}"
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
    """True for the type TAG and for a missing type."""
    return expression_type in {None, "", EXPRESSION_TAG}


def matcher(subscription: SubscriptionData) -> Callable[[int], bool] | None:
    """The test of a message's tags code; None when all messages match."""
    codes = codes_of(subscription)
    return None if codes is None else codes.__contains__


def codes_of(subscription: SubscriptionData) -> frozenset[int] | None:
    """The codes of the subscribed tags; None when all messages match.

    The codes are computed from the tags, because C++ clients send wrong codes in heartbeats.
    """
    text = (subscription.sub_string or "").strip()
    if text in {"", SUBSCRIBE_ALL} or subscription.class_filter_mode:
        return None
    if not is_by_tag(subscription.expression_type):
        return None
    tags = subscription.tags_set or tags_of(text)
    return frozenset(java_string_hash(tag) for tag in tags)


def tags_of(text: str) -> set[str]:
    """The tags of an expression, without surrounding blanks."""
    return {part.strip() for part in text.split(SEPARATOR)} - {""}
