"""processors/relays.py: the broker relays administrators' requests to consumers."""

import pytest

from core_broker.errors import RequestTimeout
from core_broker.message.topics import TRANSACTION_GROUP
from core_broker.remoting.bodies import (
    ConsumerData,
    GetConsumerStatusBody,
    HeartbeatData,
    MessageQueue,
    ResetOffsetBody,
    ResetOffsetBodyForC,
    SubscriptionData,
    decode_body,
    encode_body,
)
from core_broker.remoting.codes import LanguageCode, RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
    ResetOffsetRequestHeader,
)
from tests.support.broker_harness import BrokerHarness, Peer


async def online(broker: BrokerHarness, client_id: str = "c1") -> Peer:
    """A consumer after its heartbeat."""
    peer = broker.peer()
    consumer = ConsumerData(group_name="CG", subscription_data_set=[SubscriptionData(topic="T")])
    beat = HeartbeatData(client_id=client_id, consumer_data_set=[consumer])
    assert (await broker.ask(RequestCode.HEART_BEAT, body=beat, peer=peer)).code == 0
    return peer


def asked_of(peer: Peer) -> list[RemotingCommand]:
    """Commands to a consumer, except change notifications."""
    return [each for each in peer.told if each.code != RequestCode.NOTIFY_CONSUMER_IDS_CHANGED]


def running_info(client_id: str = "c1") -> GetConsumerRunningInfoRequestHeader:
    return GetConsumerRunningInfoRequestHeader(
        consumer_group="CG", client_id=client_id, jstack_enable=False
    )


class TestRunningInfo:
    async def test_the_answer_of_the_consumer_comes_back(self, broker: BrokerHarness) -> None:
        peer = await online(broker)
        peer.replies = lambda asked: RemotingCommand.response(0, "ok", {"k": "v"}, b"{}")
        response = await broker.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, running_info())
        assert (response.code, response.remark, response.body) == (0, "ok", b"{}")
        assert response.ext_fields == {"k": "v"}
        (asked,) = asked_of(peer)
        assert asked.code == RequestCode.GET_CONSUMER_RUNNING_INFO
        assert asked.ext_fields["clientId"] == "c1"

    async def test_without_a_consumer_online(self, broker: BrokerHarness) -> None:
        response = await broker.ask(
            RequestCode.GET_CONSUMER_RUNNING_INFO, running_info("127.0.0.1:1")
        )
        assert (response.code, response.remark) == (1, "The Consumer <CG> <127.0.0.1:1> not online")

    async def test_a_consumer_that_does_not_answer(self, broker: BrokerHarness) -> None:
        peer = await online(broker)

        def silence(asked: RemotingCommand) -> RemotingCommand:
            raise RequestTimeout(peer.peer, asked.code, 10_000)

        peer.replies = silence
        response = await broker.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, running_info())
        assert response.code == 207
        assert (response.remark or "").startswith("consumer <CG> <c1> Timeout: ")

    async def test_a_consumer_that_disconnects(self, broker: BrokerHarness) -> None:
        await online(broker)
        response = await broker.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, running_info())
        assert response.code == 1
        assert (response.remark or "").startswith("consumer <CG> <c1> Exception: ")

    async def test_too_many_at_once(
        self, broker: BrokerHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("core_broker.processors.context.TASKS_MAX", 0)
        await online(broker)
        response = await broker.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, running_info())
        assert response.code == 2


class TestConsumeDirectly:
    async def test_the_broker_adds_the_message(self, broker: BrokerHarness, topic: str) -> None:
        await broker.send(topic, b"payload")
        (stored,) = await broker.messages(topic)
        peer = await online(broker)
        peer.replies = lambda asked: RemotingCommand.response(0)
        header = ConsumeMessageDirectlyResultRequestHeader(
            consumer_group="CG", client_id="c1", msg_id=stored.offset_msg_id
        )
        assert (await broker.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)).code == 0
        (asked,) = asked_of(peer)
        assert asked.ext_fields["brokerName"] == "b"
        assert asked.body == broker.ctx.store.read_at(stored.offset_physical)

    async def test_an_unconfirmed_message_is_not_consumed(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        await broker.send(topic, b"payload")
        (stored,) = await broker.messages(topic)
        broker.ctx.store.gate.close()
        peer = await online(broker)
        header = ConsumeMessageDirectlyResultRequestHeader(
            consumer_group="CG", client_id="c1", msg_id=stored.offset_msg_id
        )
        answer = await broker.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
        assert "can not find message" in (answer.remark or "")
        assert asked_of(peer) == []

    @pytest.mark.parametrize("msg_id", [None, "", "garbage", "0" * 32, "F" * 32, "F" * 56])
    async def test_a_missing_message(self, broker: BrokerHarness, msg_id: str | None) -> None:
        await online(broker)
        header = ConsumeMessageDirectlyResultRequestHeader(
            consumer_group="CG", client_id="c1", msg_id=msg_id
        )
        assert (await broker.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)).code == 1


class TestResetOffset:
    async def reset(
        self,
        broker: BrokerHarness,
        *,
        timestamp: int = 0,
        force: bool = True,
        topic: str = "T",
        language: LanguageCode = LanguageCode.JAVA,
    ) -> RemotingCommand:
        header = ResetOffsetRequestHeader(
            topic=topic, group="CG", timestamp=timestamp, is_force=force
        )
        return await broker.ask(
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header, language=language
        )

    async def ready(self, broker: BrokerHarness) -> Peer:
        broker.topic("T", queues=2)
        for _ in range(3):
            await broker.send("T")
            broker.now_ms += 1_000
        for queue_id, offset in ((0, 2), (1, 0)):
            broker.ctx.offsets.commit("CG", "T", queue_id, offset)
        return await online(broker)

    async def test_every_member_is_told_and_the_table_answered(self, broker: BrokerHarness) -> None:
        peer = await self.ready(broker)
        other = await online(broker, "c2")
        response = await self.reset(broker)
        expected = (
            b'{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:0,'
            b'{"brokerName":"b","queueId":1,"topic":"T"}:0}}'
        )
        assert (response.code, response.body) == (0, expected)
        for each in (peer, other):
            (order,) = asked_of(each)
            assert order.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET
            assert order.body == expected
            assert (order.ext_fields["group"], order.ext_fields["topic"]) == ("CG", "T")

    @pytest.mark.parametrize(
        ("timestamp", "force", "offset"), [(-1, True, 3), (-1, False, 2), (0, False, 0)]
    )
    async def test_to_a_time_or_the_end(
        self, broker: BrokerHarness, timestamp: int, force: bool, offset: int
    ) -> None:
        await self.ready(broker)
        response = await self.reset(broker, timestamp=timestamp, force=force)
        table = decode_body(ResetOffsetBody, response.body).offset_table
        assert table[MessageQueue("T", "b", 0)] == offset

    async def test_a_cpp_administrator_sends_a_list(self, broker: BrokerHarness) -> None:
        peer = await self.ready(broker)
        response = await self.reset(broker, language=LanguageCode.CPP)
        (order,) = asked_of(peer)
        queues = decode_body(ResetOffsetBodyForC, order.body).offset_table
        assert [(each.queue_id, each.offset) for each in queues] == [(0, 0), (1, 0)]
        answered = decode_body(ResetOffsetBody, response.body).offset_table
        assert answered == {MessageQueue("T", "b", 0): 0, MessageQueue("T", "b", 1): 0}

    async def test_refusals(self, broker: BrokerHarness) -> None:
        response = await self.reset(broker, topic="NOPE")
        assert (response.code, response.remark) == (
            1,
            "[reset-offset] reset offset failed, no topic in this broker. topic=NOPE",
        )
        broker.topic("T", queues=1)
        response = await self.reset(broker)
        assert (response.code, response.remark) == (1, "THe consumer group <CG> not exist")
        broker.ctx.offsets.commit("CG", "T", 0, 0)
        response = await self.reset(broker, timestamp=-1)
        assert (response.code, response.remark) == (
            206,
            "Consumer not online, so can not reset offset, Group: CG Topic: T Timestamp: -1",
        )

    async def test_queues_go_to_offsets_of_their_own(self, broker: BrokerHarness) -> None:
        peer = await self.ready(broker)
        assert (await set_offsets(broker, {("T", 0): 1, ("T", 1): 0})).code == 0
        (order,) = asked_of(peer)
        assert order.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET
        assert decode_body(ResetOffsetBody, order.body).offset_table == queues(
            {("T", 0): 1, ("T", 1): 0}
        )
        assert [broker.ctx.offsets.committed("CG", "T", each) for each in (0, 1)] == [1, 0]

    async def test_offsets_of_an_offline_group_are_set(self, broker: BrokerHarness) -> None:
        broker.topic("T", queues=2)
        await broker.send("T")
        assert (await set_offsets(broker, {("T", 1): 0})).code == 0
        assert broker.ctx.offsets.committed("CG", "T", 1) == 0
        assert broker.ctx.offsets.committed("CG", "T", 0) is None

    @pytest.mark.parametrize(
        "wanted",
        [
            {},
            {("T", 0): 1, ("T", 1): 99},
            {("T", 0): -1},
            {("T", 2): 0},
            {("T", -1): 0},
            {("U", 0): 0},
        ],
    )
    async def test_an_offset_outside_of_the_queue_is_refused(
        self, broker: BrokerHarness, wanted: dict[tuple[str, int], int]
    ) -> None:
        peer = await self.ready(broker)
        assert (await set_offsets(broker, wanted)).code == 1
        assert broker.ctx.offsets.committed("CG", "T", 0) == 2
        assert asked_of(peer) == []

    async def test_the_offsets_of_the_broker_itself_are_not_set(
        self, broker: BrokerHarness
    ) -> None:
        await self.ready(broker)
        answer = await set_offsets(broker, {("T", 0): 0}, group=TRANSACTION_GROUP)
        assert answer.code == ResponseCode.NO_PERMISSION

    async def test_a_disconnected_member_is_skipped(self, broker: BrokerHarness) -> None:
        peer = await self.ready(broker)
        peer.closed_for = "gone"
        assert (await self.reset(broker)).code == 0


class TestConsumerStatus:
    async def status(
        self, broker: BrokerHarness, client_addr: str | None = None
    ) -> RemotingCommand:
        header = GetConsumerStatusRequestHeader(topic="T", group="CG", client_addr=client_addr)
        return await broker.ask(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header)

    def knows(self, offset: int) -> RemotingCommand:
        table = {MessageQueue("T", "b", 0): offset}
        return RemotingCommand.response(
            0, body=encode_body(GetConsumerStatusBody(message_queue_table=table))
        )

    async def test_status_of_all_answering_members(self, broker: BrokerHarness) -> None:
        first, second, silent, broken = [await online(broker, name) for name in "abcd"]
        first.replies = lambda asked: self.knows(1)
        second.replies = lambda asked: self.knows(2)
        broken.replies = lambda asked: RemotingCommand.response(0, body=b"garbage{")
        response = await self.status(broker)
        table = decode_body(GetConsumerStatusBody, response.body).consumer_table
        queue = MessageQueue("T", "b", 0)
        assert table == {"a": {queue: 1}, "b": {queue: 2}}
        assert asked_of(silent)[0].code == RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT

    async def test_status_of_one_member(self, broker: BrokerHarness) -> None:
        first, second = [await online(broker, name) for name in "ab"]
        second.replies = lambda asked: self.knows(2)
        response = await self.status(broker, "b")
        assert decode_body(GetConsumerStatusBody, response.body).consumer_table.keys() == {"b"}
        assert asked_of(first) == []

    async def test_status_without_members(self, broker: BrokerHarness) -> None:
        response = await self.status(broker)
        assert (response.code, response.remark) == (
            1,
            "No Any Consumer online in the consumer group: [CG]",
        )


def queues(offsets: dict[tuple[str, int], int]) -> dict[MessageQueue, int]:
    return {MessageQueue(topic, "b", queue_id): at for (topic, queue_id), at in offsets.items()}


async def set_offsets(
    broker: BrokerHarness, offsets: dict[tuple[str, int], int], group: str = "CG"
) -> RemotingCommand:
    header = ResetOffsetRequestHeader(topic="T", group=group)
    body = ResetOffsetBody(offset_table=queues(offsets))
    return await broker.ask(RequestCode.SET_GROUP_OFFSETS, header, body=body)
