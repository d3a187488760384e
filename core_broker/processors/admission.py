"""Checks of a message's topic and queue before the store sees the message.

Order and remarks are compatible with RocketMQ's AbstractSendMessageProcessor.msgCheck. Like
msgCheck, the checks ignore the topic's permission: producers read the permission from the route.
"""

import random
from datetime import datetime

from core_broker.errors import ClientError, RequestRefused
from core_broker.message.topics import (
    AUTO_CREATE_TOPIC,
    DLQ_PREFIX,
    FAILURE_PREFIXES,
    RETRY_PREFIX,
    SEND_FORBIDDEN_TOPICS,
    TOPIC_BYTES_MAX,
    TRANSACTION_GROUP,
    validate_topic,
)
from core_broker.processors.context import BrokerContext
from core_broker.processors.failed_messages import group_of_failure
from core_broker.processors.put_answers import put_refusal
from core_broker.processors.remarks import SEE_FAQ
from core_broker.remoting.bodies import PERM_READ, PERM_WRITE, TopicConfig
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import SendMessageRequestHeader
from core_broker.state.topics import UNIT, UNIT_SUB, topic_text
from core_broker.store import PutStatus

#: Maximum length of client ids and group names, characters. Legal names have less than 300.
NAME_CHARS_MAX = 1_024
#: Maximum topics or groups in one request to change a list.
LIST_MAX = 1_000


def check_accepting(ctx: BrokerContext) -> None:
    """Raise RequestRefused while the broker accepts no messages."""
    if not ctx.is_accepting:
        raise RequestRefused(
            ResponseCode.SERVICE_NOT_AVAILABLE, "service not available now, it is shutting down"
        )
    if ctx.is_slave:
        raise put_refusal(ctx.config, PutStatus.SERVICE_NOT_AVAILABLE)
    if not ctx.has_enough_members():
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, "in-sync replicas not enough")
    start_ms = ctx.config.start_accept_send_request_time_stamp
    if start_ms and ctx.now_ms() < start_ms:
        start = datetime.fromtimestamp(start_ms / 1000)  # noqa: DTZ006 - the operator's own zone
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"broker unable to service, until {start:%Y-%m-%d %H:%M:%S}"
        )


def check_sendable(ctx: BrokerContext, topic: TopicConfig | None, name: str) -> None:
    """Raise RequestRefused when the topic accepts no messages from producers now.

    `topic` is None when the topic does not exist; only then the name is validated. In the common
    case a call costs a few comparisons.
    """
    config = ctx.config
    if (
        not ctx.is_accepting
        or config.start_accept_send_request_time_stamp
        or config.broker_role == "SLAVE"
        or config.has_elected_role
    ):
        check_accepting(ctx)
    if topic is None:
        check_topic_name(name)
    elif topic.order and not config.broker_permission & PERM_WRITE:
        raise RequestRefused(
            ResponseCode.NO_PERMISSION, f"the broker[{ctx.host[0]}] sending message is forbidden"
        )
    if name in SEND_FORBIDDEN_TOPICS:
        raise RequestRefused(
            ResponseCode.NO_PERMISSION, f"Sending message to topic[{name}] is forbidden."
        )


def check_topic_name(name: str) -> None:
    """Raise RequestRefused when the name is illegal for a topic."""
    try:
        validate_topic(name[:TOPIC_BYTES_MAX])
    except ClientError as error:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(error)) from None
    if len(name) > TOPIC_BYTES_MAX:
        # Group names are checked here too: clients allow longer group names, 4.9 brokers do not.
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, "The specified topic is longer than topic max length."
        )


def list_too_long(items: str, count: int) -> RequestRefused:
    """The refusal of a request with more than LIST_MAX topics or groups."""
    return RequestRefused(
        ResponseCode.INVALID_PARAMETER,
        f"the list has {count} {items}, a request may have {LIST_MAX}; send the list in parts",
    )


def check_changeable(ctx: BrokerContext) -> None:
    """Raise RequestRefused on a slave, whose topics and groups are copies of its master's."""
    if ctx.is_slave:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR,
            "Can't modify topic or subscription group from slave broker, "
            "please execute it from master broker.",
        )


def check_foreign_group(group: str) -> None:
    """Raise RequestRefused for the group whose offsets are the progress of transaction checks.

    A client that moved these offsets could make a restarted broker skip half messages.
    """
    if group == TRANSACTION_GROUP:
        raise RequestRefused(
            ResponseCode.NO_PERMISSION, f"the offsets of [{group}] belong to the broker itself"
        )


def create_topic(ctx: BrokerContext, header: SendMessageRequestHeader) -> TopicConfig:
    """Create the topic of a first message; raises RequestRefused when creation is not allowed.

    The number of topics is limited: retry and dead-letter topics by the number of groups, all other
    topics by maxAutoCreateTopicNum.
    """
    name, config = header.topic, ctx.config
    is_retry = name.startswith(RETRY_PREFIX)
    limit = config.max_auto_create_topic_num
    may_inherit = header.default_topic != AUTO_CREATE_TOPIC or config.auto_create_topic_enable
    if name.startswith(FAILURE_PREFIXES):
        group_of_failure(ctx, name.removeprefix(RETRY_PREFIX).removeprefix(DLQ_PREFIX))
    elif ctx.topics.limited_count >= limit and may_inherit:
        raise RequestRefused(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{name}] does not exist, and the broker has {ctx.topics.limited_count} topics; "
            f"maxAutoCreateTopicNum is {limit}",
        )
    sys_flag = (UNIT_SUB if is_retry else UNIT) if header.unit_mode else 0
    topic = None
    if may_inherit:
        topic = ctx.topics.inherit(
            name,
            header.default_topic,
            header.default_topic_queue_nums,
            sys_flag=sys_flag,
            now_ms=ctx.now_ms(),
        )
    if topic is None and is_retry:
        topic, _ = ctx.topics.ensure(
            name, 1, PERM_READ | PERM_WRITE, sys_flag=sys_flag, now_ms=ctx.now_ms()
        )
    if topic is None:
        raise RequestRefused(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{name}] not exist, apply first please!{SEE_FAQ}",
        )
    ctx.topic_created(topic)
    return topic


def queue_for(topic: TopicConfig, queue_id: int, connection: Connection) -> int:
    """The queue id for a message: `queue_id`, or a random writable queue when that is negative."""
    if queue_id >= max(topic.write_queue_nums, topic.read_queue_nums):
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR,
            f"request queueId[{queue_id}] is illegal, {topic_text(topic)} "
            f"Producer: {connection.peer}",
        )
    if queue_id >= 0:
        return queue_id
    if topic.write_queue_nums <= 0:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"the topic[{topic.topic_name}] has no queue to write to"
        )
    return random.randrange(topic.write_queue_nums)
