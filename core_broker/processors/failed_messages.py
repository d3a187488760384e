"""The retry and dead-letter topics of a group, for messages that its consumers failed to consume.

    %RETRY%group    permission read and write, retryQueueNums queues; filled after a delay
    %DLQ%group      permission dlqTopicPerm, one queue; no client consumes it by default

Compatible with RocketMQ's TopicConfigManager.createTopicInSendMessageBackMethod.
"""

from core_broker.errors import RequestRefused
from core_broker.message.topics import dlq_topic, is_system_group, retry_topic
from core_broker.processors.context import BrokerContext, ConfigTable
from core_broker.processors.remarks import SEE_FAQ
from core_broker.remoting.bodies import (
    PERM_READ,
    PERM_WRITE,
    SubscriptionGroupConfig,
    TopicConfig,
)
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.state.topics import UNIT_SUB

DLQ_QUEUES = 1
SYSTEM_QUEUES = 1
#: First client version (3.4.9) that sends maxReconsumeTimes.
VERSION_WITH_RECONSUME_LIMIT = 121


def find_group(ctx: BrokerContext, name: str) -> SubscriptionGroupConfig | None:
    """The group, created on first use when autoCreateSubscriptionGroup allows.

    Raises RequestRefused when the broker has maxAutoCreateSubscriptionGroupNum groups.
    """
    group = ctx.groups.get(name)
    if group is not None:
        return group
    config, count = ctx.config, len(ctx.groups)
    may_create = config.auto_create_subscription_group
    limit = config.max_auto_create_subscription_group_num
    if may_create and count >= limit and not is_system_group(name):
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"subscription group [{name}] does not exist, and the broker has {count} groups; "
            f"maxAutoCreateSubscriptionGroupNum is {limit}",
        )
    group, created = ctx.groups.obtain(name, may_create=may_create, now_ms=ctx.now_ms())
    if created:
        ctx.saver.save(ConfigTable.GROUPS)
    return group


def group_of_failure(ctx: BrokerContext, name: str) -> SubscriptionGroupConfig:
    """The group of a failed message; raises RequestRefused when the group does not exist."""
    group = find_group(ctx, name)
    if group is None:
        raise RequestRefused(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"subscription group not exist, {name} {SEE_FAQ}",
        )
    return group


def reconsume_times_max(
    request: RemotingCommand, from_client: int | None, group: SubscriptionGroupConfig
) -> int:
    """Maximum retries: the client's maxReconsumeTimes, or else the group's retryMaxTimes."""
    if request.version >= VERSION_WITH_RECONSUME_LIMIT and from_client is not None:
        return from_client
    return group.retry_max_times


def ensure_retry_topic(
    ctx: BrokerContext, group: SubscriptionGroupConfig, *, unit_mode: bool
) -> TopicConfig:
    """The retry topic of a group; raises RequestRefused when its name is illegal for a topic."""
    return _ensure(
        ctx,
        retry_topic(group.group_name),
        group.retry_queue_nums,
        PERM_READ | PERM_WRITE,
        UNIT_SUB if unit_mode else 0,
    )


def ensure_dlq_topic(ctx: BrokerContext, group: str) -> TopicConfig:
    """The dead-letter topic of a group; raises RequestRefused when its name is illegal."""
    return _ensure(ctx, dlq_topic(group), DLQ_QUEUES, ctx.config.dlq_topic_perm, 0)


def ensure_system_topic(ctx: BrokerContext, name: str) -> TopicConfig:
    """A topic for the broker's own messages, with one queue."""
    return _ensure(ctx, name, SYSTEM_QUEUES, PERM_READ | PERM_WRITE, 0)


def _ensure(ctx: BrokerContext, name: str, queues: int, perm: int, sys_flag: int) -> TopicConfig:
    topic, created = ctx.topics.ensure(name, queues, perm, sys_flag=sys_flag, now_ms=ctx.now_ms())
    if topic is None:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"topic[{name}] not exist")
    if created:
        ctx.topic_created(topic)
    return topic
