"""Pull requests and their answers (codes 11 and 361), for consumers, tools and Spark. Pure.

Compatible with RocketMQ's PullMessageRequestHeader, PullSysFlag and PullAPIWrapper.
"""

from dataclasses import dataclass
from typing import Final

from core_broker.client.answers import refusal
from core_broker.client.results import PullResult, PullStatus, RawPull
from core_broker.client.subscription import matches_tags
from core_broker.message.record import decode_records
from core_broker.message.sysflag import (
    PULL_COMMIT_OFFSET,
    PULL_LITE,
    PULL_SUBSCRIPTION,
    PULL_SUSPEND,
)
from core_broker.remoting.bodies import EXPRESSION_TAG, MessageQueue, SubscriptionData
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import PullMessageRequestHeader, PullMessageResponseHeader

_STATUSES: Final[dict[int, PullStatus]] = {
    ResponseCode.SUCCESS: PullStatus.FOUND,
    ResponseCode.PULL_NOT_FOUND: PullStatus.NO_NEW_MSG,
    ResponseCode.PULL_RETRY_IMMEDIATELY: PullStatus.NO_MATCHED_MSG,
    ResponseCode.PULL_OFFSET_MOVED: PullStatus.OFFSET_ILLEGAL,
}


@dataclass(frozen=True, slots=True)
class Pull:
    """One pull request to one queue."""

    queue: MessageQueue
    group: str
    offset: int
    count: int
    #: Filter expression; with None the broker uses the subscription of the group's heartbeat.
    subscription: str | None = "*"
    sub_version: int = 0
    expression_type: str = EXPRESSION_TAG
    #: Offset to commit with the pull; 0 commits no offset.
    commit_offset: int = 0
    #: Maximum time at the broker without matching messages; 0 answers immediately.
    suspend_ms: int = 0
    #: Use LITE_PULL_MESSAGE (361), unknown to brokers before 5.0.
    lite: bool = False

    def request(self) -> RemotingCommand:
        sys_flag = 0
        if self.commit_offset > 0:
            sys_flag |= PULL_COMMIT_OFFSET
        if self.suspend_ms > 0:
            sys_flag |= PULL_SUSPEND
        if self.subscription is not None:
            sys_flag |= PULL_SUBSCRIPTION
        if self.lite:
            sys_flag |= PULL_LITE
        header = PullMessageRequestHeader(
            consumer_group=self.group,
            topic=self.queue.topic,
            queue_id=self.queue.queue_id,
            queue_offset=self.offset,
            max_msg_nums=self.count,
            sys_flag=sys_flag,
            commit_offset=self.commit_offset,
            suspend_timeout_millis=self.suspend_ms,
            subscription=self.subscription,
            sub_version=self.sub_version,
            expression_type=self.expression_type,
            broker_name=self.queue.broker_name or None,
        )
        code = RequestCode.LITE_PULL_MESSAGE if self.lite else RequestCode.PULL_MESSAGE
        return RemotingCommand.request(code, header)


def read_raw_pull(answer: RemotingCommand, addr: str) -> RawPull:
    """Read an answer without decoding the body; raises RequestRefused for a refusal."""
    status = _STATUSES.get(answer.code)
    if status is None:
        raise refusal(answer, addr)
    header = answer.header(PullMessageResponseHeader)
    return RawPull(
        status,
        answer.body if status is PullStatus.FOUND else b"",
        header.next_begin_offset,
        header.min_offset,
        header.max_offset,
        header.suggest_which_broker_id,
    )


def decode_pull(
    raw: RawPull, broker_name: str, subscription: SubscriptionData | None
) -> PullResult:
    """Decode the messages, and drop messages whose tag only has the hash of a subscribed tag."""
    messages = decode_records(raw.body)
    if subscription is not None:
        messages = [message for message in messages if matches_tags(subscription, message.tags)]
    for message in messages:
        message.broker_name = broker_name
    return PullResult(
        raw.status,
        messages,
        raw.next_offset,
        raw.min_offset,
        raw.max_offset,
        raw.suggested_broker_id,
    )
