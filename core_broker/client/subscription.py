"""Subscriptions of a client, and the tag filter of the client. Pure.

Compatible with RocketMQ's FilterAPI.buildSubscriptionData. A TAG expression is ``*`` or tags joined
by ``||``. The broker compares only 32-bit hashes of tags, so the client compares the tags again.
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
    """A filter for the messages of a topic: ``by_tag("A || B")`` or ``by_sql("a > 1")``."""

    expression: str = SUBSCRIBE_ALL
    kind: str = EXPRESSION_TAG

    @classmethod
    def by_tag(cls, expression: str) -> Self:
        """Select messages by tags; broker and client compare the tags."""
        return cls(expression, EXPRESSION_TAG)

    @classmethod
    def by_sql(cls, expression: str) -> Self:
        """Select messages by an SQL92 condition over properties. The broker filters, and needs
        enablePropertyFilter=true."""
        return cls(expression, EXPRESSION_SQL92)


def build_subscription(
    topic: str, expression: str = SUBSCRIBE_ALL, *, version: int, kind: str = EXPRESSION_TAG
) -> SubscriptionData:
    """Build the subscription of a topic for heartbeats; ``version`` is the time of the change in
    ms. Raises ClientError for an empty expression."""
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
    """Compare a message's tags with a TAG subscription; True for SQL92, filtered by the broker."""
    if subscription.expression_type != EXPRESSION_TAG or not subscription.tags_set:
        return True
    return tags is not None and tags in subscription.tags_set
