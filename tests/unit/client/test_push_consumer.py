"""The whole consumer against a broker that answers as told: joining, being asked, leaving.

What it does against a real cluster is in test_cluster.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.client import ConsumerSettings, ConsumeStatus, PushConsumer
from core_broker.errors import ClientError
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import (
    ConsumeFromWhere,
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
    GetConsumerListByGroupResponseBody,
    GetConsumerStatusBody,
    HeartbeatData,
    MessageModel,
    MessageQueue,
    ResetOffsetBody,
    ResetOffsetBodyForC,
    decode_body,
    encode_body,
)
from core_broker.remoting.bodies.queues import MessageQueueForC
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.support.consumer_parts import record
from tests.support.eventually import eventually
from tests.support.scripted_peer import ScriptedPeer, ok, refuse

T0, T1 = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)
RETRY0, RETRY1 = MessageQueue("%RETRY%G", "b", 0), MessageQueue("%RETRY%G", "b", 1)


class OneBroker(ScriptedPeer):
    """A broker whose members are those that sent it a heartbeat, and whose pulls wait."""

    def __init__(self) -> None:
        super().__init__()
        self.members: list[str] = []
        self.offsets: dict[tuple[str, int], int] = {}
        self.on(RequestCode.HEART_BEAT, self._beat)
        self.on(RequestCode.GET_CONSUMER_LIST_BY_GROUP, self._list)
        self.on(RequestCode.QUERY_CONSUMER_OFFSET, self._offset)
        self.on(RequestCode.UPDATE_CONSUMER_OFFSET, self._commit)
        self.on(RequestCode.PULL_MESSAGE, lambda _: None)
        self.on(RequestCode.GET_MAX_OFFSET, lambda _: ok({"offset": "90"}))
        self.on(RequestCode.GET_MIN_OFFSET, lambda _: ok({"offset": "10"}))
        self.on(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, lambda _: ok({"offset": "50"}))

    def _beat(self, request: RemotingCommand) -> RemotingCommand:
        client_id = decode_body(HeartbeatData, request.body).client_id
        if client_id not in self.members:
            self.members.append(client_id)
        return ok()

    def _list(self, _request: RemotingCommand) -> RemotingCommand:
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

    async def ask(self, code: RequestCode, fields: dict[str, str], body: bytes = b""):  # type: ignore[no-untyped-def]
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


@pytest.fixture
async def broker() -> AsyncIterator[OneBroker]:
    async with OneBroker() as peer:
        peer.serve_route(["T", "%RETRY%G"], {"b": peer.addr})
        yield peer


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


async def test_joining(broker: OneBroker) -> None:
    async with consumer(broker) as joined:
        await eventually(lambda: len(broker.pulls()) == 4)
        assert joined.queues == [RETRY0, RETRY1, T0, T1]
        assert broker.members == [joined.client_id]
    beat = decode_body(HeartbeatData, broker.asked(RequestCode.HEART_BEAT)[0].body)
    (data,) = beat.consumer_data_set
    assert (data.group_name, data.consume_type) == ("G", "CONSUME_PASSIVELY")
    assert (data.message_model, data.consume_from_where) == (
        "CLUSTERING",
        "CONSUME_FROM_LAST_OFFSET",
    )
    shown = {it.topic: (it.sub_string, it.tags_set) for it in data.subscription_data_set}
    assert shown == {"T": ("A || B", {"A", "B"}), "%RETRY%G": ("*", set())}
    (goodbye,) = broker.asked(RequestCode.UNREGISTER_CLIENT)
    assert goodbye.ext_fields == {"clientID": beat.client_id, "consumerGroup": "G"}


@pytest.mark.parametrize(
    ("where", "offset"),
    [
        (ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, 90),
        (ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, 10),
        (ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, 50),
    ],
)
async def test_where_a_new_group_begins(
    broker: OneBroker, where: ConsumeFromWhere, offset: int
) -> None:
    broker.offsets["T", 1] = 77
    async with consumer(broker, ConsumerSettings(consume_from=where)):
        await eventually(lambda: len(broker.pulls()) == 4)
    assert broker.pulls() == {
        ("T", 0): offset,
        ("T", 1): 77,
        ("%RETRY%G", 0): 0,
        ("%RETRY%G", 1): 0,
    }


async def test_the_time_to_begin_at_is_half_an_hour_ago_or_as_told(broker: OneBroker) -> None:
    settings = ConsumerSettings(
        consume_from=ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, consume_timestamp_ms=123
    )
    async with consumer(broker, settings):
        await eventually(lambda: len(broker.pulls()) == 4)
    asked = broker.asked(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP)
    assert {request.ext_fields["timestamp"] for request in asked} == {"123"}


async def test_code_40_shares_the_queues_at_once(broker: OneBroker) -> None:
    async with consumer(broker) as joined:
        await eventually(lambda: len(joined.queues) == 4)
        broker.members.append("zzz")
        broker.tell(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": "OTHER"})
        broker.tell(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": "G"})
        await eventually(lambda: joined.queues == [RETRY0, T0])
        broker.members.remove("zzz")
        broker.tell(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": "G"})
        await eventually(lambda: len(joined.queues) == 4)


async def test_when_nobody_lists_the_members_the_queues_are_kept(broker: OneBroker) -> None:
    async with consumer(broker) as joined:
        await eventually(lambda: len(joined.queues) == 4)
        asked = len(broker.asked(RequestCode.GET_CONSUMER_LIST_BY_GROUP))
        broker.on(RequestCode.GET_CONSUMER_LIST_BY_GROUP, lambda _: refuse(1))
        broker.tell(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": "G"})
        code = RequestCode.GET_CONSUMER_LIST_BY_GROUP
        await eventually(lambda: len(broker.asked(code)) >= asked + 2)
        assert len(joined.queues) == 4


JAVA_FORM = encode_body(ResetOffsetBody(offset_table={T0: 3, MessageQueue("T", "x", 0): 4}))
C_FORM = encode_body(
    ResetOffsetBodyForC(
        offset_table=[MessageQueueForC(topic="T", broker_name="b", queue_id=0, offset=3)]
    )
)


@pytest.mark.parametrize("body", [JAVA_FORM, C_FORM], ids=["java", "c++"])
async def test_code_220_moves_the_offset_and_commits_it(broker: OneBroker, body: bytes) -> None:
    fields = {"group": "G", "topic": "T", "timestamp": "0", "isForce": "true"}
    async with consumer(broker):
        await eventually(lambda: len(broker.pulls()) == 4)
        broker.tell(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, body)
        await eventually(lambda: broker.pulls()["T", 0] == 3)
    assert broker.offsets["T", 0] == 3
    assert broker.pulls()["T", 1] == 90


@pytest.mark.parametrize("body", [b"", b"\xff", b'{"offsetTable":7}'])
async def test_a_reset_that_cannot_be_read_changes_nothing(broker: OneBroker, body: bytes) -> None:
    async with consumer(broker) as joined:
        await eventually(lambda: len(broker.pulls()) == 4)
        fields = {"group": "G", "topic": "T", "timestamp": "0", "isForce": "true"}
        answer = await broker.ask(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, body)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert len(joined.queues) == 4


async def test_code_221_tells_the_offsets(broker: OneBroker) -> None:
    broker.serve_once(ResponseCode.PULL_RETRY_IMMEDIATELY, 95)
    async with consumer(broker):
        await eventually(lambda: set(broker.pulls().values()) == {95})
        answer = await broker.ask(
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, {"topic": "T", "group": "G"}
        )
        table = decode_body(GetConsumerStatusBody, answer.body).message_queue_table
        assert table == {T0: 95, T1: 95}
        answer = await broker.ask(
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, {"topic": "T", "group": "X"}
        )
        assert answer.code == ResponseCode.SYSTEM_ERROR


async def test_code_307_tells_everything(broker: OneBroker) -> None:
    async with consumer(broker) as joined:
        await eventually(lambda: len(broker.pulls()) == 4)
        fields = {"consumerGroup": "G", "clientId": joined.client_id, "jstackEnable": "true"}
        answer = await broker.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
        info = decode_body(ConsumerRunningInfo, answer.body)
        assert set(info.mq_table) == {T0, T1, RETRY0, RETRY1}
        assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
        assert info.properties["PROP_NAMESERVER_ADDR"] == broker.addr
        assert {it.topic for it in info.subscription_set} == {"T", "%RETRY%G"}
        assert "pull T@b:0" in (info.jstack or "")
        fields["jstackEnable"] = "false"
        answer = await broker.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
        assert decode_body(ConsumerRunningInfo, answer.body).jstack is None


async def answering(kind: str) -> ConsumeStatus | None:
    if kind == "raise":
        raise RuntimeError("cannot")
    return {"ok": ConsumeStatus.CONSUME_SUCCESS, "later": ConsumeStatus.RECONSUME_LATER}.get(kind)


@pytest.mark.parametrize(
    ("kind", "result", "remark"),
    [
        ("ok", "CR_SUCCESS", None),
        ("later", "CR_LATER", None),
        ("null", "CR_RETURN_NULL", None),
        ("raise", "CR_THROW_EXCEPTION", "RuntimeError: cannot"),
    ],
)
async def test_code_309_consumes_the_message_it_brings(
    broker: OneBroker, kind: str, result: str, remark: str | None
) -> None:
    seen: list[MessageExt] = []

    async def listener(messages: list[MessageExt]) -> ConsumeStatus | None:
        seen.extend(messages)
        return await answering(kind)

    joined = consumer(broker)
    joined.listener(listener)
    async with joined:
        await eventually(lambda: len(broker.pulls()) == 4)
        fields = {"consumerGroup": "G", "clientId": joined.client_id, "brokerName": "b"}
        stored = record(7, b"direct", topic="%RETRY%G", properties={"RETRY_TOPIC": "T"})
        answer = await broker.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields, stored)
    told = decode_body(ConsumeMessageDirectlyResult, answer.body)
    assert (told.consume_result, told.remark) == (result, remark)
    (message,) = seen
    assert (message.body, message.topic, message.broker_name) == (b"direct", "T", "b")


async def test_code_309_is_bounded_and_survives_rubbish(
    broker: OneBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core_broker.client.consumer.broker_requests.DIRECT_CALLS_MAX", 1)
    gate = asyncio.Event()

    async def listener(_messages: list[MessageExt]) -> ConsumeStatus:
        await gate.wait()
        return ConsumeStatus.CONSUME_SUCCESS

    joined = consumer(broker)
    joined.listener(listener)
    code, fields = RequestCode.CONSUME_MESSAGE_DIRECTLY, {"consumerGroup": "G"}
    async with joined:
        await eventually(lambda: len(broker.pulls()) == 4)
        assert (await broker.ask(code, fields, b"rubbish")).code == ResponseCode.SYSTEM_ERROR
        first = asyncio.create_task(broker.ask(code, fields, record(1)))
        await asyncio.sleep(0)
        assert (await broker.ask(code, fields, record(2))).code == ResponseCode.SYSTEM_BUSY
        gate.set()
        assert (await first).code == ResponseCode.SUCCESS


async def test_other_codes_are_not_supported(broker: OneBroker) -> None:
    async with consumer(broker):
        await eventually(lambda: broker.connections)
        answer = await broker.ask(RequestCode.SEND_MESSAGE, {})
        assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


async def test_an_offset_outside_of_the_queue_is_mended(broker: OneBroker) -> None:
    broker.serve_once(ResponseCode.PULL_OFFSET_MOVED, 40)
    async with consumer(broker):
        await eventually(lambda: set(broker.pulls().values()) == {40})
    assert broker.offsets["T", 0] == 40


async def test_subscribing_while_running(broker: OneBroker) -> None:
    broker.serve_route(["T", "U", "%RETRY%G"], {"b": broker.addr})
    async with consumer(broker) as joined:
        await eventually(lambda: len(broker.pulls()) == 4)
        joined.subscribe("U")
        await eventually(lambda: len(broker.pulls()) == 6)
    beat = decode_body(HeartbeatData, broker.asked(RequestCode.HEART_BEAT)[-1].body)
    topics = {it.topic for it in beat.consumer_data_set[0].subscription_data_set}
    assert topics == {"T", "U", "%RETRY%G"}


async def test_broadcasting_takes_all_queues_and_keeps_offsets_here(
    broker: OneBroker, tmp_path: Path
) -> None:
    settings = ConsumerSettings(model=MessageModel.BROADCASTING, local_offsets=tmp_path)
    broker.members.append("aaa")
    found = record(90, properties={"TAGS": "A"})
    broker.serve_once(ResponseCode.SUCCESS, 91, found)
    async with consumer(broker, settings) as first:
        await eventually(lambda: set(broker.pulls().values()) == {91})
        await eventually(lambda: commits(first) == {T0: 91, T1: 91})
    broker.requests.clear()
    async with consumer(broker, settings) as again:
        await eventually(lambda: set(broker.pulls().values()) == {91})
        assert again.queues == [T0, T1]
        assert again.client_id.endswith("@DEFAULT")
    assert broker.asked(RequestCode.UPDATE_CONSUMER_OFFSET) == []
    assert broker.asked(RequestCode.GET_MAX_OFFSET) == []


async def test_no_server_is_no_reason_to_fail(caplog: pytest.LogCaptureFixture) -> None:
    joined = PushConsumer("G", "127.0.0.1:1")
    joined.subscribe("T")
    joined.listener(succeed)
    caplog.set_level("INFO")
    async with joined:
        await eventually(lambda: "Cannot connect to 127.0.0.1:1" in caplog.text)
        assert joined.queues == []


async def test_what_is_missing_is_said_at_the_start(broker: OneBroker) -> None:
    empty = PushConsumer("G", broker.addr)
    with pytest.raises(ClientError, match="listener"):
        await empty.start()
    empty.listener(succeed)
    with pytest.raises(ClientError, match="nothing"):
        await empty.start()
    with pytest.raises(ClientError):
        empty.subscribe("no blanks")
    empty.subscribe("T")
    async with empty:
        with pytest.raises(ClientError, match="already"):
            await empty.start()
    await empty.stop()
    assert (empty.queues, empty.client_id, empty.running_info()) == ([], "", None)


async def test_a_consumer_that_is_dropped_complains(broker: OneBroker) -> None:
    kept = [consumer(broker)]
    await kept[0].start()
    running = kept[0]._running
    with pytest.warns(ResourceWarning, match="without stop"):
        kept.clear()
    assert running is not None
    await running.stop()
