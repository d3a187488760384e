"""Which filters of consumers reject a message."""

import pytest

from console.gateway.groups.members import GroupClients
from console.gateway.messages.deliveries import rejecting_filter
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import SubscriptionData


def members(*subscriptions: SubscriptionData) -> GroupClients:
    return GroupClients((), subscriptions, None, None, None)


def subscription(expression: str, kind: str = "TAG", topic: str = "T") -> SubscriptionData:
    return SubscriptionData(topic=topic, sub_string=expression, expression_type=kind)


def stored(topic: str, **properties: str) -> MessageExt:
    host = ("127.0.0.1", 1)
    return MessageExt(topic, b"", properties, 0, 0, 0, 0, 0, 0, 0, host, 0, host, 0, 0, 0)


@pytest.mark.parametrize(
    ("subscriptions", "rejecting"),
    [
        ((), None),
        ((subscription("*"),), None),
        ((subscription("A || B"),), None),
        ((subscription("B||C"),), "B||C"),
        ((subscription("B", topic="Other"),), None),
        ((subscription("price > 10", "SQL92"),), "price > 10"),
        ((subscription("price > 5", "SQL92"),), None),
        ((subscription("price >", "SQL92"),), None),
        ((subscription("B"), subscription("C")), "B, C"),
        ((subscription("B"), subscription("A")), None),
    ],
)
def test_filters_by_tag_and_sql(
    subscriptions: tuple[SubscriptionData, ...], rejecting: str | None
) -> None:
    message = stored("T", TAGS="A", price="7")
    assert rejecting_filter(members(*subscriptions), message) == rejecting


def test_retries_pass_the_filter() -> None:
    message = stored("%RETRY%G", TAGS="A")
    assert rejecting_filter(members(subscription("B", topic="%RETRY%G")), message) is None
