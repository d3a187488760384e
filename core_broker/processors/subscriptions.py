"""The filter of a pull, from the subscription in the request or in the group's heartbeats.

    tags           hash codes compared with the consume queue's, before a message is read
    SQL92          evaluated over the properties, within a budget of evaluation steps per pull
    retry topic    with filterSupportRetry, by the group's expression for the original topic

Compatible with RocketMQ's PullMessageProcessor, ExpressionMessageFilter and
ExpressionForRetryMessageFilter.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from core_broker.errors import FilterSyntaxError, ProtocolError, RequestRefused
from core_broker.filter import codes_of, compile_filter, is_by_tag, parse_subscription
from core_broker.message import sysflag
from core_broker.message.properties import PROPERTY_RETRY_TOPIC
from core_broker.message.topics import RETRY_PREFIX
from core_broker.processors.context import BrokerContext
from core_broker.processors.remarks import SEE_FAQ
from core_broker.remoting.bodies import MessageModel, SubscriptionData, SubscriptionGroupConfig
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.headers import PullMessageRequestHeader
from core_broker.store import PropertyFilter

if TYPE_CHECKING:
    from core_broker.filter.sql92 import Sql92Filter

#: Evaluation budget of one pull, expression nodes; about 20 ms of the event loop.
STEPS_PER_PULL_MAX = 50_000
#: Cost of reading one message's properties, counted as expression nodes.
STEPS_PER_MESSAGE = 20

Accept = Callable[[int], bool] | None


class MessageFilter(NamedTuple):
    """The tests of a message: of its tags code, then of its properties."""

    #: Accepted tags codes; None accepts all.
    codes: frozenset[int] | None
    by_properties: PropertyFilter | None = None
    #: True when the subscription filters by tag.
    is_by_tag: bool = False

    @property
    def accept(self) -> Accept:
        """The test on a tags code."""
        return None if self.codes is None else self.codes.__contains__


def message_filter(
    ctx: BrokerContext, header: PullMessageRequestHeader, group: SubscriptionGroupConfig
) -> MessageFilter:
    """The filter of a pull; raises RequestRefused for a missing or unsupported subscription."""
    compiled: Sql92Filter | None = None
    if header.sys_flag & sysflag.PULL_SUBSCRIPTION:
        subscription = _of_request(header)
        if not is_by_tag(subscription.expression_type):
            compiled = _compiled_or_none(header)
    else:
        subscription = _of_heartbeat(ctx, header, group)
        if not is_by_tag(subscription.expression_type):
            compiled = _of_heartbeats(ctx, header)
    if is_by_tag(subscription.expression_type):
        by_original_topic = _by_original_topic(ctx, header)
        return MessageFilter(codes_of(subscription), by_original_topic, is_by_tag=True)
    if not ctx.config.enable_property_filter:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, only_tags(subscription.expression_type))
    by_original_topic = _by_original_topic(ctx, header)
    if by_original_topic is not None:
        return MessageFilter(None, by_original_topic)
    return MessageFilter(None, _property_filter(compiled) if compiled is not None else None)


def only_tags(expression_type: str) -> str:
    """The remark for an expression type that enablePropertyFilter=false disables."""
    return f"The broker does not support consumer to filter message by {expression_type}"


def _of_request(header: PullMessageRequestHeader) -> SubscriptionData:
    try:
        return parse_subscription(header.topic, header.subscription, header.expression_type)
    except ProtocolError:
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed"
        ) from None


def _compiled_or_none(header: PullMessageRequestHeader) -> "Sql92Filter | None":
    """The filter in a request; as in Java, None (no filter) for an expression with a syntax error.

    Consumers get the syntax error from CHECK_CLIENT_CONFIG (46), which they send before pulling.
    """
    try:
        return compile_filter(header.expression_type or "", header.subscription or "")
    except FilterSyntaxError:
        return None


def _of_heartbeat(
    ctx: BrokerContext, header: PullMessageRequestHeader, group: SubscriptionGroupConfig
) -> SubscriptionData:
    online = ctx.consumers.group(header.consumer_group)
    if online is None:
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_NOT_EXIST,
            f"the consumer's group info not exist{SEE_FAQ}",
        )
    if not group.consume_broadcast_enable and online.message_model == MessageModel.BROADCASTING:
        raise RequestRefused(
            ResponseCode.NO_PERMISSION,
            f"the consumer group[{group.group_name}] can not consume by broadcast way",
        )
    subscription = online.subscriptions.get(header.topic)
    if subscription is None:
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_NOT_EXIST,
            f"the consumer's subscription not exist{SEE_FAQ}",
        )
    if subscription.sub_version < header.sub_version and not _covers(subscription, header):
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest"
        )
    return subscription


def _covers(older: SubscriptionData, header: PullMessageRequestHeader) -> bool:
    """True when the older subscription accepts every message that the newer one accepts.

    A Java client increments the version with each rebalance. When two of its heartbeats coincide,
    the broker knows only the older version for up to 30 s (apache/rocketmq issue 3434), and
    RocketMQ's broker refuses the client's pulls meanwhile. Gantry answers the pulls with messages
    of all tags, because consumers filter tags themselves as well.
    """
    return codes_of(older) is None and all(
        is_by_tag(kind) for kind in (older.expression_type, header.expression_type)
    )


def _of_heartbeats(ctx: BrokerContext, header: PullMessageRequestHeader) -> "Sql92Filter | None":
    group_filter = ctx.filters.get(header.topic, header.consumer_group)
    if group_filter is None:
        raise RequestRefused(
            ResponseCode.FILTER_DATA_NOT_EXIST,
            "The broker's consumer filter data is not exist!Your expression may be wrong!",
        )
    if group_filter.data.client_version < header.sub_version:
        raise RequestRefused(
            ResponseCode.FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not latest"
        )
    return group_filter.compiled


def _property_filter(compiled: "Sql92Filter") -> PropertyFilter:
    return PropertyFilter(compiled.matches, _messages_max(compiled.steps))


def _messages_max(steps: int) -> int:
    return max(STEPS_PER_PULL_MAX // (steps + STEPS_PER_MESSAGE), 1)


def _by_original_topic(
    ctx: BrokerContext, header: PullMessageRequestHeader
) -> PropertyFilter | None:
    """The filter of a retry topic: each message by the expression for its original topic."""
    if not ctx.config.filter_support_retry or not header.topic.startswith(RETRY_PREFIX):
        return None
    group = header.topic.removeprefix(RETRY_PREFIX)
    steps = [
        group_filter.compiled.steps
        for group_filter in ctx.filters.of_group(group)
        if group_filter.compiled
    ]
    if not steps:
        return None

    def matches(properties: Mapping[str, str]) -> bool | None:
        group_filter = ctx.filters.get(properties.get(PROPERTY_RETRY_TOPIC, ""), group)
        if group_filter is None or group_filter.compiled is None:
            return True
        return group_filter.compiled.matches(properties)

    return PropertyFilter(matches, _messages_max(max(steps)))
