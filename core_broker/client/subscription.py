"""Filter expressions as a client states and applies them. Pure.

Compatible with RocketMQ's FilterAPI.buildSubscriptionData. A TAG expression is ``*`` or tags joined
by ``||``. The broker compares only 32-bit hashes of tags, so the client compares the text again.
"""

from dataclasses import dataclass
from typing import Self

from core_broker.errors import ClientError
from core_broker.message.hashing import java_string_hash
from core_broker.remoting.bodies import (
    EXPRESSION_SQL92,
    EXPRESSION_TAG,
    SUBSCRIBE_ALL,
    SubscriptionData,
)


@dataclass(frozen=True, slots=True)
class MessageSelector:
    """What of a topic a consumer wants: ``by_tag("A || B")`` or ``by_sql("a > 1 AND b = 'x'")``."""

    expression: str = SUBSCRIBE_ALL
    kind: str = EXPRESSION_TAG

    @classmethod
    def by_tag(cls, expression: str) -> Self:
        """Messages with one of the tags; the client compares the tags again."""
        return cls(expression, EXPRESSION_TAG)

    @classmethod
    def by_sql(cls, expression: str) -> Self:
        """Messages whose properties meet an SQL92 condition; the broker decides, and must have
        enablePropertyFilter=true."""
        return cls(expression, EXPRESSION_SQL92)


def build_subscription(
    topic: str, expression: str = SUBSCRIBE_ALL, *, version: int, kind: str = EXPRESSION_TAG
) -> SubscriptionData:
    """What a heartbeat says about one topic; ``version`` is the time of the change in ms."""
    if kind != EXPRESSION_TAG:
        if not expression.strip():
            raise ClientError(f"The {kind} expression for topic {topic} is empty.")
        return SubscriptionData(
            topic=topic, sub_string=expression, expression_type=kind, sub_version=version
        )
    if not expression.strip() or expression == SUBSCRIBE_ALL:
        return SubscriptionData(
            topic=topic, sub_string=SUBSCRIBE_ALL, expression_type=kind, sub_version=version
        )
    tags = [tag for tag in (part.strip() for part in expression.split("||")) if tag]
    if not tags:
        raise ClientError(f"The tag expression {expression!r} for topic {topic} names no tag.")
    return SubscriptionData(
        topic=topic,
        sub_string=expression,
        tags_set=set(tags),
        code_set={java_string_hash(tag) for tag in tags},
        expression_type=kind,
        sub_version=version,
    )


def matches_tags(subscription: SubscriptionData, tags: str | None) -> bool:
    """Whether a message with these tags is wanted; SQL92 was decided by the broker."""
    if subscription.expression_type != EXPRESSION_TAG or not subscription.tags_set:
        return True
    return tags is not None and tags in subscription.tags_set
