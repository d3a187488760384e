"""Send-back of messages that a consumer failed to consume: code 36.

The broker stores the message again, in the retry topic of the group after a delay that grows with
each failure, or as a dead letter after the last retry:

    RETRY_TOPIC        the original topic          DELAY       3 + failures so far, or delayLevel
    ORIGIN_MESSAGE_ID  the first offset id         WAIT        false

Compatible with RocketMQ's SendMessageProcessor.consumerSendMsgBack.
"""

import random

from core_broker.errors import ProtocolError, RequestRefused
from core_broker.message.model import MessageExt, MessageInner
from core_broker.message.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_WAIT_STORE_MSG_OK,
)
from core_broker.message.record import decode_record
from core_broker.processors.admission import check_accepting
from core_broker.processors.context import BrokerContext
from core_broker.processors.delays import delay
from core_broker.processors.failed_messages import (
    ensure_dlq_topic,
    ensure_retry_topic,
    group_of_failure,
    reconsume_times_max,
)
from core_broker.processors.turn import Turn
from core_broker.remoting.bodies import PERM_WRITE, SubscriptionGroupConfig
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import ConsumerSendMsgBackRequestHeader
from core_broker.state.delay_levels import FIRST_RETRY_LEVEL
from core_broker.state.statistics import SNDBCK_PUT_NUMS
from core_broker.store import PutStatus


class SendBackProcessor:
    """Stores failed messages for another delivery."""

    def __init__(self, ctx: BrokerContext, turn: Turn) -> None:
        self._ctx = ctx
        self._turn = turn

    def send_back(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """CONSUMER_SEND_MSG_BACK (36)."""
        ctx = self._ctx
        header = request.header(ConsumerSendMsgBackRequestHeader)
        if ctx.is_slave:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, PutStatus.SERVICE_NOT_AVAILABLE.value)
        check_accepting(ctx)
        group = group_of_failure(ctx, header.group)
        if not ctx.config.broker_permission & PERM_WRITE:
            raise RequestRefused(
                ResponseCode.NO_PERMISSION,
                f"the broker[{ctx.host[0]}] sending message is forbidden",
            )
        if group.retry_queue_nums <= 0:
            return RemotingCommand.response()
        retry = ensure_retry_topic(ctx, group, unit_mode=header.unit_mode)
        if not retry.perm & PERM_WRITE:
            raise RequestRefused(
                ResponseCode.NO_PERMISSION,
                f"the topic[{retry.topic_name}] sending message is forbidden",
            )
        failed = self._look_up(header.offset)
        ctx.check_stored(connection, request, failed.topic)
        inner = _again(failed, retry.topic_name, random.randrange(group.retry_queue_nums))
        inner.store_host = ctx.host
        retries_max = reconsume_times_max(request, header.max_reconsume_times, group)
        self._route(inner, failed, header, group, retries_max)
        result = ctx.store.put(inner)
        if result.status is not PutStatus.PUT_OK:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, result.status.value)
        origin = inner.properties[PROPERTY_RETRY_TOPIC]
        ctx.statistics.add(SNDBCK_PUT_NUMS, f"{origin}@{group.group_name}")
        return self._turn.confirm(connection, request, RemotingCommand.response())

    def _look_up(self, offset_physical: int) -> MessageExt:
        record = self._ctx.store.read_at(offset_physical)
        if record is None:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {offset_physical}"
            )
        try:
            return decode_record(record)
        except ProtocolError as error:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(error)) from None

    def _route(
        self,
        inner: MessageInner,
        failed: MessageExt,
        header: ConsumerSendMsgBackRequestHeader,
        group: SubscriptionGroupConfig,
        retries_max: int,
    ) -> None:
        """Redirect the message to its next retry, or to the dead-letter topic."""
        if failed.reconsume_times >= retries_max or header.delay_level < 0:
            inner.topic = ensure_dlq_topic(self._ctx, group.group_name).topic_name
            self._ctx.require_saved(inner.topic)
            inner.queue_id = 0
            inner.properties[PROPERTY_DELAY_TIME_LEVEL] = "0"
            self._ctx.statistics.dead_lettered(group.group_name)
            return
        level = header.delay_level or FIRST_RETRY_LEVEL + failed.reconsume_times
        delay(inner, level, self._ctx.delay_levels)


def _again(failed: MessageExt, topic: str, queue_id: int) -> MessageInner:
    properties = failed.properties
    properties.setdefault(PROPERTY_RETRY_TOPIC, failed.topic)
    properties.setdefault(PROPERTY_ORIGIN_MESSAGE_ID, failed.offset_msg_id)
    properties[PROPERTY_WAIT_STORE_MSG_OK] = "false"
    return MessageInner(
        topic,
        queue_id,
        failed.body,
        properties,
        failed.flag,
        failed.sys_flag,
        failed.born_timestamp,
        failed.born_host,
        reconsume_times=failed.reconsume_times + 1,
    )
