"""Pulling: codes 11 and 361, with long polling.

    0   FOUND              records, one behind the other
    19  PULL_NOT_FOUND     nothing new; held first when the request allows it
    20  PULL_RETRY_…       nothing matched the filter up to nextBeginOffset
    21  PULL_OFFSET_MOVED  the offset is outside of the queue; go on at nextBeginOffset

Flag bit 1 commits the offset that comes along, bit 2 allows holding, bit 4 says that the
subscription is in the request; without it the group's latest heartbeat tells what it wants, which
is how Java push consumers pull. Compatible with RocketMQ's PullMessageProcessor.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from core_broker.errors import ProtocolError, RequestRefused
from core_broker.filter import matcher, parse_subscription
from core_broker.message import sysflag
from core_broker.processors.context import BrokerContext, settled
from core_broker.processors.failed_messages import find_group
from core_broker.processors.remarks import SEE_FAQ
from core_broker.remoting.bodies import (
    EXPRESSION_TAG,
    MASTER_ID,
    PERM_READ,
    MessageModel,
    SubscriptionData,
    SubscriptionGroupConfig,
)
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import PullMessageRequestHeader
from core_broker.state.long_poll import SUSPEND_MS_MAX, HeldPull, HeldPulls
from core_broker.store import ColdRead, GetResult, GetStatus

Accept = Callable[[int], bool] | None

_CODES = {
    GetStatus.FOUND: ResponseCode.SUCCESS,
    GetStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
}


class Question(NamedTuple):
    """A pull request with the connection that waits for its answer."""

    connection: Connection
    request: RemotingCommand
    header: PullMessageRequestHeader


class PullProcessor:
    """Answers pulls, and holds those that found nothing."""

    def __init__(self, ctx: BrokerContext, held: HeldPulls[Question]) -> None:
        self._ctx = ctx
        self._held = held

    def pull(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """PULL_MESSAGE (11) and LITE_PULL_MESSAGE (361)."""
        header = request.header(PullMessageRequestHeader)
        return self._answer(Question(connection, request, header), may_hold=True)

    def wake(self) -> None:
        """Answer the held requests for which messages have arrived."""
        if self._held.has_ready:
            self._answer_held(self._held.take_ready())

    def expire(self) -> None:
        """Answer the held requests that have waited long enough."""
        self._answer_held(self._held.take_expired(self._ctx.now_ms()))

    def release_all(self) -> None:
        """Answer everything that is held, because the broker stops."""
        self._answer_held(self._held.take_all())

    def _answer_held(self, pulls: list[HeldPull[Question]]) -> None:
        for pull in pulls:
            connection, request, _ = pull.question
            # What one pull raises must not keep the other consumers waiting.
            response = settled(partial(self._answer_again, pull.question), request)
            if response is not None:
                connection.answer(request, response)

    def _answer_again(self, question: Question) -> RemotingCommand | None:
        """Answer a request that was held, without holding it any more."""
        try:
            return self._answer(question, may_hold=False)
        except ColdRead as cold:
            again = partial(self._answer_again, question)
            self._ctx.answer_when_warm(cold, question.connection, question.request, again)
            return None

    def _answer(self, question: Question, *, may_hold: bool) -> RemotingCommand | None:
        ctx = self._ctx
        header = question.header
        group = self._checked_group(header)
        self._check_queue(question)
        accept = matcher(self._subscription(header, group))
        started = time.perf_counter_ns()
        found = ctx.store.get(
            header.topic,
            header.queue_id,
            header.queue_offset,
            header.max_msg_nums,
            header.max_msg_bytes,
            accept,
        )
        if found.status is GetStatus.FOUND:
            response = self._found(header, found, group)
            self._count(header, found, len(response.body), time.perf_counter_ns() - started)
        elif (
            may_hold
            and _code(found.status, header.queue_offset) is ResponseCode.PULL_NOT_FOUND
            and self._hold(question, accept)
        ):
            response = None
        else:
            response = self._nothing(header, found)
        if may_hold and header.sys_flag & sysflag.PULL_COMMIT_OFFSET and header.commit_offset > 0:
            ctx.offsets.commit(
                header.consumer_group, header.topic, header.queue_id, header.commit_offset
            )
        return response

    def _checked_group(self, header: PullMessageRequestHeader) -> SubscriptionGroupConfig:
        ctx = self._ctx
        if not ctx.config.broker_permission & PERM_READ:
            raise RequestRefused(
                ResponseCode.NO_PERMISSION,
                f"the broker[{ctx.host[0]}] pulling message is forbidden",
            )
        name = header.consumer_group
        group = ctx.groups.get(name) or find_group(ctx, name)
        if group is None:
            raise RequestRefused(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group [{name}] does not exist, {SEE_FAQ}",
            )
        if not group.consume_enable:
            raise RequestRefused(
                ResponseCode.NO_PERMISSION, f"subscription group no permission, {name}"
            )
        return group

    def _check_queue(self, question: Question) -> None:
        header = question.header
        topic = self._ctx.topics.get(header.topic)
        if topic is None:
            raise RequestRefused(
                ResponseCode.TOPIC_NOT_EXIST,
                f"topic[{header.topic}] not exist, apply first please! {SEE_FAQ}",
            )
        if not topic.perm & PERM_READ:
            raise RequestRefused(
                ResponseCode.NO_PERMISSION,
                f"the topic[{header.topic}] pulling message is forbidden",
            )
        if not 0 <= header.queue_id < topic.read_queue_nums:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR,
                f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}] "
                f"topicConfig.readQueueNums:[{topic.read_queue_nums}] "
                f"consumer:[/{question.connection.peer}]",
            )

    def _subscription(
        self, header: PullMessageRequestHeader, group: SubscriptionGroupConfig
    ) -> SubscriptionData:
        if header.sys_flag & sysflag.PULL_SUBSCRIPTION:
            try:
                subscription = parse_subscription(
                    header.topic, header.subscription, header.expression_type
                )
            except ProtocolError:
                raise RequestRefused(
                    ResponseCode.SUBSCRIPTION_PARSE_FAILED,
                    "parse the consumer's subscription failed",
                ) from None
        else:
            subscription = self._subscription_of_heartbeat(header, group)
        if subscription.expression_type not in {EXPRESSION_TAG, "", None}:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, only_tags(subscription.expression_type))
        return subscription

    def _subscription_of_heartbeat(
        self, header: PullMessageRequestHeader, group: SubscriptionGroupConfig
    ) -> SubscriptionData:
        online = self._ctx.consumers.group(header.consumer_group)
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
        if subscription.sub_version < header.sub_version:
            raise RequestRefused(
                ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest"
            )
        return subscription

    def _hold(self, question: Question, accept: Accept) -> bool:
        """Keep the request until a message comes; False when it does not want to wait."""
        ctx, header = self._ctx, question.header
        if not header.sys_flag & sysflag.PULL_SUSPEND or not ctx.is_accepting:
            return False
        wait_ms = min(header.suspend_timeout_millis, SUSPEND_MS_MAX)
        if not ctx.config.long_polling_enable:
            wait_ms = ctx.config.short_polling_time_mills
        return self._held.hold(
            HeldPull(
                question.connection,
                header.topic,
                header.queue_id,
                header.queue_offset,
                accept,
                ctx.now_ms() + wait_ms,
                question,
            )
        )

    def _found(
        self, header: PullMessageRequestHeader, found: GetResult, group: SubscriptionGroupConfig
    ) -> RemotingCommand:
        suggested = MASTER_ID
        if self._ctx.config.slave_read_enable:
            slow, usual = group.which_broker_when_consume_slowly, group.broker_id
            suggested = slow if found.is_slow else usual
        response = _response(ResponseCode.SUCCESS, found, suggested)
        response.body = b"".join(found.records)
        return response

    def _nothing(self, header: PullMessageRequestHeader, found: GetResult) -> RemotingCommand:
        return _response(_code(found.status, header.queue_offset), found, MASTER_ID)

    def _count(
        self, header: PullMessageRequestHeader, found: GetResult, size: int, took_ns: int
    ) -> None:
        statistics = self._ctx.statistics
        group, topic = header.consumer_group, header.topic
        took_ms = took_ns // 1_000_000
        statistics.got(group, topic, header.queue_id, found.count, size, took_ms)
        if found.is_slow:
            statistics.got_from_disk(group, topic, found.count)


def only_tags(expression_type: str) -> str:
    """The remark for a filter language that the broker does not have or that is switched off."""
    return f"The broker does not support consumer to filter message by {expression_type}"


def _code(status: GetStatus, offset: int) -> ResponseCode:
    if status in {GetStatus.NO_MATCHED_LOGIC_QUEUE, GetStatus.NO_MESSAGE_IN_QUEUE}:
        return ResponseCode.PULL_OFFSET_MOVED if offset else ResponseCode.PULL_NOT_FOUND
    return _CODES[status]


def _response(code: ResponseCode, found: GetResult, suggested: int) -> RemotingCommand:
    fields = {
        "suggestWhichBrokerId": str(suggested),
        "nextBeginOffset": str(found.next_offset),
        "minOffset": str(found.min_offset),
        "maxOffset": str(found.max_offset),
    }
    return RemotingCommand.response(code, found.status.value, fields)
