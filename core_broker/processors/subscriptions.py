"""What a pull wants: the subscription in the request, or the one its group's heartbeats brought.

    tags           compared by their code, before a message is read
    SQL92          evaluated over the properties, within a budget of steps a pull
    retry topic    with filterSupportRetry, by the group's expression for the topic it failed in

Compatible with RocketMQ's PullMessageProcessor, ExpressionMessageFilter and
ExpressionForRetryMessageFilter.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from core_broker.errors import FilterSyntaxError, ProtocolError, RequestRefused
from core_broker.filter import (
    Sql92Filter,
    codes_of,
    compile_filter,
    is_by_tag,
    parse_subscription,
)
from core_broker.message import sysflag
from core_broker.message.properties import PROPERTY_RETRY_TOPIC
from core_broker.message.topics import RETRY_PREFIX
from core_broker.processors.context import BrokerContext
from core_broker.processors.remarks import SEE_FAQ
from core_broker.remoting.bodies import MessageModel, SubscriptionData, SubscriptionGroupConfig
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.headers import PullMessageRequestHeader
from core_broker.store import PropertyFilter

#: What the filter of one pull may cost, in nodes of its expression; some 20 ms of the event loop.
STEPS_PER_PULL_MAX = 50_000
#: What reading the properties of one message costs, in the same measure.
STEPS_PER_MESSAGE = 20

Accept = Callable[[int], bool] | None


class Wanted(NamedTuple):
    """The tests that a message must pass: on its tags code, then on its properties."""

    #: The tags codes of what is wanted, None for all.
    codes: frozenset[int] | None
    by_properties: PropertyFilter | None = None
    #: Nothing but the subscription and the tags code decides.
    is_by_tag: bool = False

    @property
    def accept(self) -> Accept:
        """The test on a tags code."""
        return None if self.codes is None else self.codes.__contains__


def wanted(
    ctx: BrokerContext, header: PullMessageRequestHeader, group: SubscriptionGroupConfig
) -> Wanted:
    """Find out what a pull wants; raises RequestRefused when that is not known or not possible."""
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
        return Wanted(codes_of(subscription), by_original_topic, is_by_tag=True)
    if not ctx.config.enable_property_filter:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, only_tags(subscription.expression_type))
    by_original_topic = _by_original_topic(ctx, header)
    if by_original_topic is not None:
        return Wanted(None, by_original_topic)
    return Wanted(None, _property_filter(compiled) if compiled is not None else None)


def only_tags(expression_type: str) -> str:
    """The remark for filters that are switched off."""
    return f"The broker does not support consumer to filter message by {expression_type}"


def _of_request(header: PullMessageRequestHeader) -> SubscriptionData:
    try:
        return parse_subscription(header.topic, header.subscription, header.expression_type)
    except ProtocolError:
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed"
        ) from None


def _compiled_or_none(header: PullMessageRequestHeader) -> Sql92Filter | None:
    """The filter in a request. One that does not compile filters nothing: Java lets it pass so.

    Consumers learn of their mistake from CHECK_CLIENT_CONFIG (46), which they send first.
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
    if subscription.sub_version < header.sub_version and not _has_everything(subscription, header):
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest"
        )
    return subscription


def _has_everything(known: SubscriptionData, header: PullMessageRequestHeader) -> bool:
    """Whether an older subscription leaves out nothing that the newer one may want.

    A Java client counts its version up with each rebalance, and when two of its heartbeats coincide
    only the older version is told, for 30 s (apache/rocketmq issue 3434). RocketMQ's broker refuses
    its pulls meanwhile. Who wants tags looks at them itself, too, so all messages are never wrong.
    """
    return codes_of(known) is None and all(
        is_by_tag(each) for each in (known.expression_type, header.expression_type)
    )


def _of_heartbeats(ctx: BrokerContext, header: PullMessageRequestHeader) -> Sql92Filter | None:
    known = ctx.filters.get(header.topic, header.consumer_group)
    if known is None:
        raise RequestRefused(
            ResponseCode.FILTER_DATA_NOT_EXIST,
            "The broker's consumer filter data is not exist!Your expression may be wrong!",
        )
    if known.data.client_version < header.sub_version:
        raise RequestRefused(
            ResponseCode.FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not latest"
        )
    return known.compiled


def _property_filter(compiled: Sql92Filter) -> PropertyFilter:
    return PropertyFilter(compiled.matches, _messages_max(compiled.steps))


def _messages_max(steps: int) -> int:
    return max(STEPS_PER_PULL_MAX // (steps + STEPS_PER_MESSAGE), 1)


def _by_original_topic(
    ctx: BrokerContext, header: PullMessageRequestHeader
) -> PropertyFilter | None:
    """The filter of a retry topic: each message by the expression for the topic it came from."""
    if not ctx.config.filter_support_retry or not header.topic.startswith(RETRY_PREFIX):
        return None
    group = header.topic.removeprefix(RETRY_PREFIX)
    steps = [known.compiled.steps for known in ctx.filters.of_group(group) if known.compiled]
    if not steps:
        return None

    def matches(properties: Mapping[str, str]) -> bool | None:
        known = ctx.filters.get(properties.get(PROPERTY_RETRY_TOPIC, ""), group)
        if known is None or known.compiled is None:
            return True
        return known.compiled.matches(properties)

    return PropertyFilter(matches, _messages_max(max(steps)))
