"""A scripted broker for whole consumers: members, offsets, locks, long polling."""

from core_broker.client import ConsumerSettings, ConsumeStatus, PushConsumer
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import (
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    LockBatchRequestBody,
    LockBatchResponseBody,
    MessageQueue,
    decode_body,
    encode_body,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from tests.support.scripted_peer import ScriptedPeer, ok, refuse

T0, T1 = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)
RETRY0, RETRY1 = MessageQueue("%RETRY%G", "b", 0), MessageQueue("%RETRY%G", "b", 1)


class OneBroker(ScriptedPeer):
    """A broker with the senders of heartbeats as members, and without answers to pulls."""

    def __init__(self) -> None:
        super().__init__()
        self.members: list[str] = []
        self.offsets: dict[tuple[str, int], int] = {}
        self.locked_by_others: set[MessageQueue] = set()
        self.on(RequestCode.HEART_BEAT, self._heartbeat)
        self.on(RequestCode.GET_CONSUMER_LIST_BY_GROUP, self.member_list)
        self.on(RequestCode.QUERY_CONSUMER_OFFSET, self._offset)
        self.on(RequestCode.UPDATE_CONSUMER_OFFSET, self._commit)
        self.on(RequestCode.PULL_MESSAGE, lambda _: None)
        self.on(RequestCode.LOCK_BATCH_MQ, self._lock)
        self.on(RequestCode.GET_MAX_OFFSET, lambda _: ok({"offset": "90"}))
        self.on(RequestCode.GET_MIN_OFFSET, lambda _: ok({"offset": "10"}))
        self.on(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, lambda _: ok({"offset": "50"}))

    def _heartbeat(self, request: RemotingCommand) -> RemotingCommand:
        client_id = decode_body(HeartbeatData, request.body).client_id
        if client_id not in self.members:
            self.members.append(client_id)
        return ok()

    def _lock(self, request: RemotingCommand) -> RemotingCommand:
        requested = decode_body(LockBatchRequestBody, request.body).mq_set
        granted = [queue for queue in requested if queue not in self.locked_by_others]
        return ok(body=encode_body(LockBatchResponseBody(lock_ok_mq_set=granted)))

    def member_list(self, _request: RemotingCommand) -> RemotingCommand:
        """Answer with the client ids of all heartbeats."""
        if not self.members:
            return refuse(1, "no consumer for this group, G")
        body = GetConsumerListByGroupResponseBody(consumer_id_list=self.members)
        return ok(body=encode_body(body))

    def _offset(self, request: RemotingCommand) -> RemotingCommand:
        fields = request.ext_fields
        offset = self.offsets.get((fields["topic"], int(fields["queueId"])))
        return refuse(22) if offset is None else ok({"offset": str(offset)})

    def _commit(self, request: RemotingCommand) -> RemotingCommand:
        fields = request.ext_fields
        self.offsets[fields["topic"], int(fields["queueId"])] = int(fields["commitOffset"])
        return ok()

    def pulls(self) -> dict[tuple[str, int], int]:
        """The offset of the last pull from each queue."""
        return {
            (request.ext_fields["topic"], int(request.ext_fields["queueId"])): int(
                request.ext_fields["queueOffset"]
            )
            for request in self.received(RequestCode.PULL_MESSAGE)
        }

    async def ask(
        self, code: RequestCode, fields: dict[str, str], body: bytes = b""
    ) -> RemotingCommand:
        """Send a request to the consumer over the consumer's last connection."""
        command = RemotingCommand.request(code, fields, body)
        return await self.connections[-1].invoke(command, 5000)

    def serve_once(self, code: int, next_offset: int, body: bytes = b"") -> None:
        """Answer the first pull from each queue, and hold pulls at ``next_offset``."""

        def pull(request: RemotingCommand) -> RemotingCommand | None:
            if request.ext_fields["queueOffset"] == str(next_offset):
                return None
            fields = {
                "suggestWhichBrokerId": "0",
                "nextBeginOffset": str(next_offset),
                "minOffset": str(next_offset),
                "maxOffset": str(next_offset),
            }
            return RemotingCommand.response(code, None, fields, body)

        self.on(RequestCode.PULL_MESSAGE, pull)

    def notify(self, code: RequestCode, fields: dict[str, str], body: bytes = b"") -> None:
        """Send a one-way request to the consumer, over the consumer's last connection."""
        self.connections[-1].send(RemotingCommand.request(code, fields, body))


async def succeed(_messages: list[MessageExt]) -> ConsumeStatus:
    return ConsumeStatus.CONSUME_SUCCESS


def consumer(broker: OneBroker, settings: ConsumerSettings | None = None) -> PushConsumer:
    push_consumer = PushConsumer("G", broker.addr, settings=settings)
    push_consumer.subscribe("T", "A || B")
    push_consumer.listener(succeed)
    return push_consumer


def commits(consuming: PushConsumer) -> dict[MessageQueue, int]:
    """The commit offsets of all queues in the consumer's running info."""
    info = consuming.running_info()
    assert info is not None
    return {queue: it.commit_offset for queue, it in info.mq_table.items()}
