"""Pulling: codes 11 and 361, with long polling.

    0   FOUND              concatenated records
    19  PULL_NOT_FOUND     no new message, at the end of the hold time if the request allows holding
    20  PULL_RETRY_…       no message matched the filter before nextBeginOffset
    21  PULL_OFFSET_MOVED  the offset is outside of the queue; continue at nextBeginOffset

Flag bit 1 commits the request's commitOffset, bit 2 allows holding, bit 4 says that the request
contains the subscription. Without bit 4 the subscription of the group's latest heartbeat applies,
as for Java push consumers. Compatible with RocketMQ's PullMessageProcessor.
"""

import asyncio
import time
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple, Protocol

from core_broker.errors import RequestRefused
from core_broker.message import sysflag
from core_broker.message.topics import TOOLS_CONSUMER_GROUP
from core_broker.processors.admission import check_foreign_group
from core_broker.processors.context import BrokerContext, response_of
from core_broker.processors.failed_messages import find_group
from core_broker.processors.remarks import SEE_FAQ
from core_broker.processors.subscriptions import Accept, MessageFilter, message_filter
from core_broker.remoting.bodies import MASTER_ID, PERM_READ, SubscriptionGroupConfig
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import PullMessageRequestHeader
from core_broker.state.long_poll import SUSPEND_MS_MAX, HeldPull, HeldPulls
from core_broker.store import ColdRead, GetResult, GetStatus

#: Maximum time for answering woken pulls before the loop handles other events, seconds.
WAKE_S_MAX = 0.02
#: Woken pulls answered between two readings of the clock.
WOKEN_AT_ONCE = 4

_CODES = {
    GetStatus.FOUND: ResponseCode.SUCCESS,
    GetStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
}
_EMPTY = frozenset({GetStatus.NO_MATCHED_LOGIC_QUEUE, GetStatus.NO_MESSAGE_IN_QUEUE})


class PullQuery(NamedTuple):
    """A pull request with the connection of the request."""

    connection: Connection
    request: RemotingCommand
    header: PullMessageRequestHeader
    #: Offset to read from: while held, behind the messages rejected by the filter.
    offset: int
    #: End of the hold time; None before the first hold.
    deadline_ms: int | None = None


class PullFastPath(Protocol):
    """The fast path of pulls: answers common-case pulls with the processor's bytes."""

    def begin_wake(self) -> None:
        """Refresh the topics and groups for which the fast path may answer."""

    def answer_held(self, query: PullQuery) -> bytes | None:
        """Return the answer to a held pull as a frame; None to leave the pull to the processor."""


class PullProcessor:
    """Answers pulls, and holds pulls without a message to return."""

    def __init__(self, ctx: BrokerContext, held: HeldPulls[PullQuery]) -> None:
        self._ctx = ctx
        self._held = held
        self._fast_path: PullFastPath | None = None

    def use_fast_path(self, fast_path: PullFastPath) -> None:
        """Try `fast_path` first for held pulls; called once, while the broker is assembled."""
        self._fast_path = fast_path

    def pull(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """PULL_MESSAGE (11) and LITE_PULL_MESSAGE (361)."""
        header = request.header(PullMessageRequestHeader)
        query = PullQuery(connection, request, header, header.queue_offset)
        return self._answer(query, may_hold=True)

    def wake(self) -> None:
        """Answer held pulls for which messages have arrived.

        A pull whose property filter rejects all new messages is held again. A pull whose peer has
        unread answers waits until the peer has read them.
        """
        if not self._held.has_ready:
            return
        if self._fast_path is not None:
            self._fast_path.begin_wake()
        end = time.perf_counter() + WAKE_S_MAX
        while self._held.has_ready:
            self._answer_woken(self._held.take_ready(WOKEN_AT_ONCE))
            if self._held.has_ready and time.perf_counter() > end:
                asyncio.get_running_loop().call_soon(self.wake)
                return

    def resumed(self, connection: Connection) -> None:
        """Answer woken pulls of a peer that reads again."""
        self._held.unpark(connection)
        self.wake()

    def expire(self) -> None:
        """Answer held pulls after the end of the hold time."""
        self._answer_held(self._held.take_expired(self._ctx.now_ms()), may_hold=False)

    def release_all(self) -> None:
        """Answer all held pulls, because the broker stops."""
        self._answer_held(self._held.take_all(), may_hold=False)

    def _answer_woken(self, pulls: Iterable[HeldPull[PullQuery]]) -> None:
        for_slow_path = []
        for pull in pulls:
            query, answer = pull.query, None
            if not query.connection.answer_capacity_bytes:
                self._held.park(pull)
                continue
            if self._fast_path is not None:
                answer = self._fast_path.answer_held(query)
            if answer is None:
                for_slow_path.append(pull)
            else:
                query.connection.answer_frame(query.request, answer)
        self._answer_held(for_slow_path, may_hold=True)

    def _answer_held(self, pulls: Iterable[HeldPull[PullQuery]], *, may_hold: bool) -> None:
        for pull in pulls:
            query = pull.query
            # An error in one pull must not delay later pulls.
            again = partial(self._answer_again, query, may_hold=may_hold)
            response = response_of(again, query.request)
            if response is not None:
                query.connection.answer(query.request, response)

    def _answer_again(self, query: PullQuery, *, may_hold: bool) -> RemotingCommand | None:
        """Answer a held pull."""
        try:
            return self._answer(query, may_hold=may_hold)
        except ColdRead as cold:
            again = partial(self._answer_again, query, may_hold=may_hold)
            self._ctx.answer_when_warm(cold, query.connection, query.request, again)
            return None

    def admitted(
        self, header: PullMessageRequestHeader, peer: str
    ) -> tuple[SubscriptionGroupConfig, MessageFilter]:
        """The group and the filter of a pull; raises RequestRefused when pulling is not allowed."""
        group = self._checked_group(header)
        self._check_queue(header, peer)
        return group, message_filter(self._ctx, header, group)

    def _answer(self, query: PullQuery, *, may_hold: bool) -> RemotingCommand | None:
        ctx = self._ctx
        header = query.header
        group, msg_filter = self.admitted(header, query.connection.peer)
        started = time.perf_counter_ns()
        result = ctx.store.get(
            header.topic,
            header.queue_id,
            query.offset,
            header.max_msg_nums,
            header.max_msg_bytes,
            msg_filter.accept,
            msg_filter.by_properties,
            is_counted=header.consumer_group != TOOLS_CONSUMER_GROUP,
        )
        if result.status is GetStatus.FOUND:
            response = self._found(header, result, group)
            self._count(header, result, len(response.body), time.perf_counter_ns() - started)
        elif may_hold and _may_wait(query, result) and self.hold(query, result, msg_filter.accept):
            response = None
        else:
            response = self._nothing(query, result)
        is_first = query.deadline_ms is None
        if is_first and header.sys_flag & sysflag.PULL_COMMIT_OFFSET and header.commit_offset > 0:
            check_foreign_group(header.consumer_group)
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

    def _check_queue(self, header: PullMessageRequestHeader, peer: str) -> None:
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
                f"consumer:[/{peer}]",
            )

    def hold(self, query: PullQuery, result: GetResult, accept: Accept) -> bool:
        """Hold the pull until a message arrives; False when the request does not allow holding."""
        ctx, header = self._ctx, query.header
        if not header.sys_flag & sysflag.PULL_SUSPEND or not ctx.is_accepting:
            return False
        deadline_ms = query.deadline_ms
        if deadline_ms is None:
            wait_ms = min(header.suspend_timeout_millis, SUSPEND_MS_MAX)
            if not ctx.config.long_polling_enable:
                wait_ms = ctx.config.short_polling_time_mills
            deadline_ms = ctx.now_ms() + wait_ms
        has_rejected = result.status is GetStatus.NO_MATCHED_MESSAGE
        offset = result.next_offset if has_rejected else query.offset
        return self._held.hold(
            HeldPull(
                query.connection,
                header.topic,
                header.queue_id,
                offset,
                accept,
                deadline_ms,
                query._replace(offset=offset, deadline_ms=deadline_ms),
            )
        )

    def _found(
        self, header: PullMessageRequestHeader, result: GetResult, group: SubscriptionGroupConfig
    ) -> RemotingCommand:
        suggested = self.suggested(group, is_slow=result.is_slow)
        response = answer_of(ResponseCode.SUCCESS, result, suggested)
        response.body = b"".join(result.records)
        return response

    def suggested(self, group: SubscriptionGroupConfig, *, is_slow: bool) -> int:
        """Id of the broker from which a group should pull next."""
        if not self._ctx.config.slave_read_enable:
            return MASTER_ID
        return group.which_broker_when_consume_slowly if is_slow else group.broker_id

    def _nothing(self, query: PullQuery, result: GetResult) -> RemotingCommand:
        return answer_of(_code(result.status, query.offset), result, MASTER_ID)

    def _count(
        self, header: PullMessageRequestHeader, result: GetResult, size: int, took_ns: int
    ) -> None:
        statistics = self._ctx.statistics
        group, topic = header.consumer_group, header.topic
        took_ms = took_ns // 1_000_000
        statistics.got(group, topic, header.queue_id, result.count, size, took_ms)
        if self._ctx.config.disable_consume_if_consumer_read_slowly:
            self._ctx.slow_groups.note(group, topic, header.queue_id, result.behind)
        if result.is_slow:
            statistics.got_from_disk(group, topic, result.count)


def _may_wait(query: PullQuery, result: GetResult) -> bool:
    """True when a later message can satisfy the pull."""
    if query.deadline_ms is None:
        return _code(result.status, query.offset) is ResponseCode.PULL_NOT_FOUND
    # The pull was woken, and its filter has rejected all messages up to the end of the queue.
    return result.status is GetStatus.NO_MATCHED_MESSAGE and result.next_offset == result.max_offset


def _code(status: GetStatus, offset: int) -> ResponseCode:
    if status in _EMPTY:
        return ResponseCode.PULL_OFFSET_MOVED if offset else ResponseCode.PULL_NOT_FOUND
    return _CODES[status]


def answer_of(code: ResponseCode, result: GetResult, suggested: int) -> RemotingCommand:
    """An answer to a pull, without the records."""
    fields = {
        "suggestWhichBrokerId": str(suggested),
        "nextBeginOffset": str(result.next_offset),
        "minOffset": str(result.min_offset),
        "maxOffset": str(result.max_offset),
    }
    # In Java a pull creates a missing queue, so clients never get NO_MATCHED_LOGIC_QUEUE.
    status = GetStatus.NO_MESSAGE_IN_QUEUE if result.status in _EMPTY else result.status
    return RemotingCommand.response(code, status.value, fields)
