"""Members of a consumer group, which send the requests of RocketMQ's clients to processors.

A member gets all its knowledge from the broker: the members of the group (38), committed offsets
(14), granted locks (41), messages (11). Members allocate queues averagely, rebalance after a change
notification (40), and apply offset resets (220).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from core_broker.client.consumer.allocate import averagely, sorted_client_ids, sorted_queues
from core_broker.message.model import MessageExt
from core_broker.message.record import decode_records
from core_broker.message.topics import retry_topic
from core_broker.remoting.bodies import (
    ConsumerData,
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    LockBatchRequestBody,
    LockBatchResponseBody,
    MessageQueue,
    ResetOffsetBody,
    SubscriptionData,
    UnlockBatchRequestBody,
    decode_body,
)
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import (
    ConsumerSendMsgBackRequestHeader,
    GetConsumerListByGroupRequestHeader,
    Header,
    QueryConsumerOffsetRequestHeader,
    UnregisterClientRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from tests.support.broker_harness import BrokerHarness
from tests.support.broker_requests import pull_header

GROUP, TOPIC, BROKER = "G", "T", "b"
#: Lifetime of a granted lock on the client, ms: rocketmq.client.rebalance.lockMaxLiveTime.
TRUSTED_MS = 30_000
RECONSUME_MAX = 2
SUSPEND = 2

#: Arguments: queue, message, True for consumed and False for sent back.
Consumed = Callable[[MessageQueue, MessageExt, bool], None]
#: Arguments: queue, first offset and end offset of a range without messages.
Skipped = Callable[[MessageQueue, int, int], None]


@dataclass
class Share:
    """A member's state of an allocated queue."""

    next_offset: int
    locked_ms: int
    pending: RemotingCommand | None = None


@dataclass
class Member:
    """A consumer with its own connection."""

    broker: BrokerHarness
    client_id: str
    is_orderly: bool
    expression: str
    on_consumed: Consumed
    on_skipped: Skipped
    shares: dict[MessageQueue, Share] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.peer = self.broker.peer()
        self.send_heartbeat()

    def _ask(
        self, code: RequestCode, header: Header | None = None, body: bytes | object = b""
    ) -> RemotingCommand:
        response = self.broker.give(self.broker.request(code, header, body), self.peer)
        assert response is not None, f"{code.name} was not answered"
        return response

    @property
    def is_connected(self) -> bool:
        """True until the connection is closed."""
        return not self.peer.closed_for

    def send_heartbeat(self) -> None:
        """Send a heartbeat with the subscriptions."""
        kind = "TAG" if self.expression == "*" else "SQL92"
        subscription = SubscriptionData(
            topic=TOPIC, sub_string=self.expression, expression_type=kind, sub_version=1
        )
        retry = SubscriptionData(topic=retry_topic(GROUP), sub_version=1)
        data = ConsumerData(group_name=GROUP, subscription_data_set=[subscription, retry])
        heartbeat = HeartbeatData(client_id=self.client_id, consumer_data_set=[data])
        assert self._ask(RequestCode.HEART_BEAT, body=heartbeat).code == ResponseCode.SUCCESS

    # -- sharing --

    def rebalance(self) -> None:
        """Release queues allocated to other members, and take the member's own queues."""
        header = GetConsumerListByGroupRequestHeader(consumer_group=GROUP)
        answer = self._ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
        members = decode_body(GetConsumerListByGroupResponseBody, answer.body).consumer_id_list
        own: set[MessageQueue] = set()
        for topic in (TOPIC, retry_topic(GROUP)):
            config = self.broker.ctx.topics.get(topic)
            assert config is not None
            queues = [MessageQueue(topic, BROKER, at) for at in range(config.read_queue_nums)]
            own.update(averagely(self.client_id, sorted_queues(queues), sorted_client_ids(members)))
        for queue in sorted(self.shares.keys() - own):
            self.release(queue)
        for queue in sorted(own - self.shares.keys()):
            if self._lock(queue):
                self.shares[queue] = Share(self._committed(queue), self.broker.now_ms)

    def release(self, queue: MessageQueue) -> None:
        """Commit the offset of a queue, unlock and remove the queue."""
        self.commit(queue)
        del self.shares[queue]
        if self.is_orderly:
            body = UnlockBatchRequestBody(
                consumer_group=GROUP, client_id=self.client_id, mq_set=[queue]
            )
            self._ask(RequestCode.UNLOCK_BATCH_MQ, body=body)

    def _lock(self, queue: MessageQueue) -> bool:
        if not self.is_orderly:
            return True
        body = LockBatchRequestBody(consumer_group=GROUP, client_id=self.client_id, mq_set=[queue])
        answer = self._ask(RequestCode.LOCK_BATCH_MQ, body=body)
        return queue in decode_body(LockBatchResponseBody, answer.body).lock_ok_mq_set

    def renew_locks(self) -> None:
        """Renew the locks of all queues; drop queues that other members have locked."""
        for queue, share in list(self.shares.items()):
            if self._lock(queue):
                share.locked_ms = self.broker.now_ms
            else:
                del self.shares[queue]

    def _committed(self, queue: MessageQueue) -> int:
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=GROUP, topic=queue.topic, queue_id=queue.queue_id
        )
        answer = self._ask(RequestCode.QUERY_CONSUMER_OFFSET, header)
        # A new group starts at the first message.
        return int(answer.ext_fields["offset"]) if answer.code == ResponseCode.SUCCESS else 0

    def commit(self, queue: MessageQueue, offset: int | None = None) -> None:
        """Commit the consumed offset of a queue."""
        header = UpdateConsumerOffsetRequestHeader(
            consumer_group=GROUP,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=self.shares[queue].next_offset if offset is None else offset,
        )
        assert self._ask(RequestCode.UPDATE_CONSUMER_OFFSET, header).code == ResponseCode.SUCCESS

    def listen(self) -> None:
        """Handle commands of the broker, and answers to held pulls."""
        told, self.peer.told = self.peer.told, []
        for command in told:
            if command.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET:
                self._reset(decode_body(ResetOffsetBody, command.body).offset_table)
        if told:
            self.rebalance()
        for queue, share in list(self.shares.items()):
            if share.pending is not None and share.pending.opaque in self.peer.answers:
                answer = self.peer.answers[share.pending.opaque]
                share.pending = None
                self._take(queue, answer, may_fail=False)

    def _reset(self, table: dict[MessageQueue, int]) -> None:
        for queue, offset in table.items():
            if queue in self.shares:
                self.commit(queue, offset)
                del self.shares[queue]

    # -- consuming --

    def may_consume(self, queue: MessageQueue) -> bool:
        """True while the lock on a queue is valid."""
        share = self.shares[queue]
        return not self.is_orderly or self.broker.now_ms - share.locked_ms <= TRUSTED_MS

    def consume(self, queue: MessageQueue, *, count: int, waits: bool, fails: bool) -> None:
        """Pull once, and consume the messages or send them back."""
        share = self.shares[queue]
        if share.pending is not None or not self.may_consume(queue):
            return
        header = pull_header(
            queue.topic,
            share.next_offset,
            consumer_group=GROUP,
            queue_id=queue.queue_id,
            max_msg_nums=count,
            sys_flag=SUSPEND if waits else 0,
            subscription=None,
            sub_version=1,
        )
        request = self.broker.request(RequestCode.PULL_MESSAGE, header)
        answer = self.broker.give(request, self.peer)
        if answer is None:
            assert waits
            share.pending = request
        else:
            self._take(queue, answer, may_fail=fails)

    def _take(self, queue: MessageQueue, answer: RemotingCommand, *, may_fail: bool) -> None:
        share = self.shares[queue]
        if not self.may_consume(queue):
            return
        assert answer.code in {0, 19, 20, 21}, (answer.code, answer.remark)
        at = share.next_offset
        for message in decode_records(answer.body) if answer.code == 0 else []:
            self.on_skipped(queue, at, message.queue_offset)
            sent_back = may_fail and not self.is_orderly and self._send_back(message)
            self.on_consumed(queue, message, not sent_back)
            at = message.queue_offset + 1
        share.next_offset = int(answer.ext_fields["nextBeginOffset"])
        if answer.code != ResponseCode.PULL_OFFSET_MOVED:
            self.on_skipped(queue, at, share.next_offset)

    def _send_back(self, message: MessageExt) -> bool:
        header = ConsumerSendMsgBackRequestHeader(
            offset=message.offset_physical,
            group=GROUP,
            delay_level=0,
            origin_topic=message.topic,
            max_reconsume_times=RECONSUME_MAX,
        )
        return self._ask(RequestCode.CONSUMER_SEND_MSG_BACK, header).code == ResponseCode.SUCCESS

    # -- the end --

    def leave(self) -> None:
        """Release all queues and unregister."""
        for queue in list(self.shares):
            self.release(queue)
        header = UnregisterClientRequestHeader(client_id=self.client_id, consumer_group=GROUP)
        self._ask(RequestCode.UNREGISTER_CLIENT, header)

    def lose_connection(self) -> None:
        """Lose the connection without unregistering."""
        if self.is_connected:
            self.peer.close("lost")
        self.broker.requests.held_pulls.drop_owner(self.peer)
        self.broker.requests.clients.disconnected(self.peer)  # type: ignore[arg-type]
