"""Pulling: codes 11 and 361, with long polling.

    0   FOUND              records, one behind the other
    19  PULL_NOT_FOUND     nothing new; held first when the request allows it
    20  PULL_RETRY_…       nothing matched the filter up to nextBeginOffset
    21  PULL_OFFSET_MOVED  the offset is outside of the queue; go on at nextBeginOffset

Flag bit 1 commits the offset that comes along, bit 2 allows holding, bit 4 says that the
subscription is in the request; without it the group's latest heartbeat tells what it wants, which
is how Java push consumers pull. Compatible with RocketMQ's PullMessageProcessor.
"""

import asyncio
import time
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple, Protocol

from core_broker.errors import RequestRefused
from core_broker.message import sysflag
from core_broker.processors.admission import check_foreign_group
from core_broker.processors.context import BrokerContext, settled
from core_broker.processors.failed_messages import find_group
from core_broker.processors.remarks import SEE_FAQ
from core_broker.processors.subscriptions import Accept, Wanted, wanted
from core_broker.remoting.bodies import MASTER_ID, PERM_READ, SubscriptionGroupConfig
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import PullMessageRequestHeader
from core_broker.state.long_poll import SUSPEND_MS_MAX, HeldPull, HeldPulls
from core_broker.store import ColdRead, GetResult, GetStatus

#: How long woken requests are answered in one go, in seconds; then others have their turn.
WAKE_S_MAX = 0.02
#: After so many of them the clock is looked at.
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


class Question(NamedTuple):
    """A pull request with the connection that waits for its answer."""

    connection: Connection
    request: RemotingCommand
    header: PullMessageRequestHeader
    #: Where to read: behind what was looked at already while the request was held.
    offset: int
    #: Until when it waits; None as long as it was not held.
    deadline_ms: int | None = None


class Gatherer(Protocol):
    """Answers usual pulls faster than the processor, with the same bytes."""

    def begin_gathering(self) -> None:
        """Find out what may be pulled now."""

    def gathered(self, question: Question) -> bytes | None:
        """The answer to a pull that was held, as a frame; None when it is for the processor."""


class PullProcessor:
    """Answers pulls, and holds those that found nothing."""

    def __init__(self, ctx: BrokerContext, held: HeldPulls[Question]) -> None:
        #: Where the kernel is compiled.
        self.gatherer: Gatherer | None = None
        self._ctx = ctx
        self._held = held

    def pull(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """PULL_MESSAGE (11) and LITE_PULL_MESSAGE (361)."""
        header = request.header(PullMessageRequestHeader)
        question = Question(connection, request, header, header.queue_offset)
        return self._answer(question, may_hold=True)

    def wake(self) -> None:
        """Answer the held requests for which messages have arrived.

        A filter by properties may want none of them; then the request is held on. One whose peer
        has not read what it was sent before waits until it has.
        """
        if not self._held.has_ready:
            return
        if self.gatherer is not None:
            self.gatherer.begin_gathering()
        end = time.perf_counter() + WAKE_S_MAX
        while self._held.has_ready:
            self._answer_woken(self._held.take_ready(WOKEN_AT_ONCE))
            if self._held.has_ready and time.perf_counter() > end:
                asyncio.get_running_loop().call_soon(self.wake)
                return

    def resumed(self, connection: Connection) -> None:
        """Answer what waited until a peer reads again."""
        self._held.unpark(connection)
        self.wake()

    def expire(self) -> None:
        """Answer the held requests that have waited long enough."""
        self._answer_held(self._held.take_expired(self._ctx.now_ms()), may_hold=False)

    def release_all(self) -> None:
        """Answer everything that is held, because the broker stops."""
        self._answer_held(self._held.take_all(), may_hold=False)

    def _answer_woken(self, pulls: Iterable[HeldPull[Question]]) -> None:
        plain = []
        for pull in pulls:
            question, answer = pull.question, None
            if not question.connection.answer_room:
                self._held.park(pull)
                continue
            if self.gatherer is not None:
                answer = self.gatherer.gathered(question)
            if answer is None:
                plain.append(pull)
            else:
                question.connection.answer_frame(question.request, answer)
        self._answer_held(plain, may_hold=True)

    def _answer_held(self, pulls: Iterable[HeldPull[Question]], *, may_hold: bool) -> None:
        for pull in pulls:
            question = pull.question
            # What one pull raises must not keep the other consumers waiting.
            again = partial(self._answer_again, question, may_hold=may_hold)
            response = settled(again, question.request)
            if response is not None:
                question.connection.answer(question.request, response)

    def _answer_again(self, question: Question, *, may_hold: bool) -> RemotingCommand | None:
        """Answer a request that was held."""
        try:
            return self._answer(question, may_hold=may_hold)
        except ColdRead as cold:
            again = partial(self._answer_again, question, may_hold=may_hold)
            self._ctx.answer_when_warm(cold, question.connection, question.request, again)
            return None

    def admitted(
        self, header: PullMessageRequestHeader, peer: str
    ) -> tuple[SubscriptionGroupConfig, Wanted]:
        """The group of a pull and what it wants; raises RequestRefused when it may not have it."""
        group = self._checked_group(header)
        self._check_queue(header, peer)
        return group, wanted(self._ctx, header, group)

    def _answer(self, question: Question, *, may_hold: bool) -> RemotingCommand | None:
        ctx = self._ctx
        header = question.header
        group, wants = self.admitted(header, question.connection.peer)
        started = time.perf_counter_ns()
        found = ctx.store.get(
            header.topic,
            header.queue_id,
            question.offset,
            header.max_msg_nums,
            header.max_msg_bytes,
            wants.accept,
            wants.by_properties,
        )
        if found.status is GetStatus.FOUND:
            response = self._found(header, found, group)
            self._count(header, found, len(response.body), time.perf_counter_ns() - started)
        elif may_hold and _may_wait(question, found) and self.hold(question, found, wants.accept):
            response = None
        else:
            response = self._nothing(question, found)
        is_first = question.deadline_ms is None
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

    def hold(self, question: Question, found: GetResult, accept: Accept) -> bool:
        """Keep the request until a message comes; False when it does not want to wait."""
        ctx, header = self._ctx, question.header
        if not header.sys_flag & sysflag.PULL_SUSPEND or not ctx.is_accepting:
            return False
        deadline_ms = question.deadline_ms
        if deadline_ms is None:
            wait_ms = min(header.suspend_timeout_millis, SUSPEND_MS_MAX)
            if not ctx.config.long_polling_enable:
                wait_ms = ctx.config.short_polling_time_mills
            deadline_ms = ctx.now_ms() + wait_ms
        has_looked_on = found.status is GetStatus.NO_MATCHED_MESSAGE
        offset = found.next_offset if has_looked_on else question.offset
        return self._held.hold(
            HeldPull(
                question.connection,
                header.topic,
                header.queue_id,
                offset,
                accept,
                deadline_ms,
                question._replace(offset=offset, deadline_ms=deadline_ms),
            )
        )

    def _found(
        self, header: PullMessageRequestHeader, found: GetResult, group: SubscriptionGroupConfig
    ) -> RemotingCommand:
        suggested = self.suggested(group, is_slow=found.is_slow)
        response = answer_of(ResponseCode.SUCCESS, found, suggested)
        response.body = b"".join(found.records)
        return response

    def suggested(self, group: SubscriptionGroupConfig, *, is_slow: bool) -> int:
        """The broker from which a group should pull next."""
        if not self._ctx.config.slave_read_enable:
            return MASTER_ID
        return group.which_broker_when_consume_slowly if is_slow else group.broker_id

    def _nothing(self, question: Question, found: GetResult) -> RemotingCommand:
        return answer_of(_code(found.status, question.offset), found, MASTER_ID)

    def _count(
        self, header: PullMessageRequestHeader, found: GetResult, size: int, took_ns: int
    ) -> None:
        statistics = self._ctx.statistics
        group, topic = header.consumer_group, header.topic
        took_ms = took_ns // 1_000_000
        statistics.got(group, topic, header.queue_id, found.count, size, took_ms)
        if self._ctx.config.disable_consume_if_consumer_read_slowly:
            self._ctx.slow_groups.note(group, topic, header.queue_id, found.behind)
        if found.is_slow:
            statistics.got_from_disk(group, topic, found.count)


def _may_wait(question: Question, found: GetResult) -> bool:
    """Whether a message that comes may be what the request waits for."""
    if question.deadline_ms is None:
        return _code(found.status, question.offset) is ResponseCode.PULL_NOT_FOUND
    # It was woken by messages that its filter did not want, and has looked at all there are.
    return found.status is GetStatus.NO_MATCHED_MESSAGE and found.next_offset == found.max_offset


def _code(status: GetStatus, offset: int) -> ResponseCode:
    if status in _EMPTY:
        return ResponseCode.PULL_OFFSET_MOVED if offset else ResponseCode.PULL_NOT_FOUND
    return _CODES[status]


def answer_of(code: ResponseCode, found: GetResult, suggested: int) -> RemotingCommand:
    """An answer to a pull, without the records."""
    fields = {
        "suggestWhichBrokerId": str(suggested),
        "nextBeginOffset": str(found.next_offset),
        "minOffset": str(found.min_offset),
        "maxOffset": str(found.max_offset),
    }
    # Java makes a queue by looking at it, so its clients never hear that there is none.
    status = GetStatus.NO_MESSAGE_IN_QUEUE if found.status in _EMPTY else found.status
    return RemotingCommand.response(code, status.value, fields)
