"""A scripted broker that a whole consumer can live with: members, offsets, pulls that wait."""

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
    """A broker whose members are those that sent it a heartbeat, and whose pulls wait."""

    def __init__(self) -> None:
        super().__init__()
        self.members: list[str] = []
        self.offsets: dict[tuple[str, int], int] = {}
        self.locked_by_others: set[MessageQueue] = set()
        self.on(RequestCode.HEART_BEAT, self._beat)
        self.on(RequestCode.GET_CONSUMER_LIST_BY_GROUP, self.members_known)
        self.on(RequestCode.QUERY_CONSUMER_OFFSET, self._offset)
        self.on(RequestCode.UPDATE_CONSUMER_OFFSET, self._commit)
        self.on(RequestCode.PULL_MESSAGE, lambda _: None)
        self.on(RequestCode.LOCK_BATCH_MQ, self._lock)
        self.on(RequestCode.GET_MAX_OFFSET, lambda _: ok({"offset": "90"}))
        self.on(RequestCode.GET_MIN_OFFSET, lambda _: ok({"offset": "10"}))
        self.on(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, lambda _: ok({"offset": "50"}))

    def _beat(self, request: RemotingCommand) -> RemotingCommand:
        client_id = decode_body(HeartbeatData, request.body).client_id
        if client_id not in self.members:
            self.members.append(client_id)
        return ok()

    def _lock(self, request: RemotingCommand) -> RemotingCommand:
        wanted = decode_body(LockBatchRequestBody, request.body).mq_set
        granted = [queue for queue in wanted if queue not in self.locked_by_others]
        return ok(body=encode_body(LockBatchResponseBody(lock_ok_mq_set=granted)))

    def members_known(self, _request: RemotingCommand) -> RemotingCommand:
        """Tell who sent a heartbeat."""
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
        """The last offset that each queue was asked for."""
        return {
            (each.ext_fields["topic"], int(each.ext_fields["queueId"])): int(
                each.ext_fields["queueOffset"]
            )
            for each in self.asked(RequestCode.PULL_MESSAGE)
        }

    async def ask(
        self, code: RequestCode, fields: dict[str, str], body: bytes = b""
    ) -> RemotingCommand:
        """Ask the consumer, over the connection it made."""
        command = RemotingCommand.request(code, fields, body)
        return await self.connections[-1].invoke(command, 5000)

    def serve_once(self, code: int, next_offset: int, body: bytes = b"") -> None:
        """Answer the first pull of each queue; those from ``next_offset`` on wait."""

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

    def tell(self, code: RequestCode, fields: dict[str, str], body: bytes = b"") -> None:
        self.connections[-1].send(RemotingCommand.request(code, fields, body))


async def succeed(_messages: list[MessageExt]) -> ConsumeStatus:
    return ConsumeStatus.CONSUME_SUCCESS


def consumer(broker: OneBroker, settings: ConsumerSettings | None = None) -> PushConsumer:
    made = PushConsumer("G", broker.addr, settings=settings)
    made.subscribe("T", "A || B")
    made.listener(succeed)
    return made


def commits(consuming: PushConsumer) -> dict[MessageQueue, int]:
    """How far the consumer says it is, in each queue."""
    info = consuming.running_info()
    assert info is not None
    return {queue: it.commit_offset for queue, it in info.mq_table.items()}
