"""Requests from brokers to a consumer: codes 40, 220, 221, 307, 309, and malformed requests."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from core_broker.client import ConsumeStatus
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import (
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
    GetConsumerStatusBody,
    MessageQueue,
    ResetOffsetBody,
    ResetOffsetBodyForC,
    decode_body,
    encode_body,
)
from core_broker.remoting.bodies.queues import MessageQueueForC
from core_broker.remoting.codes import RequestCode, ResponseCode
from tests.support.consumer_parts import record
from tests.support.eventually import eventually
from tests.support.one_broker import RETRY0, RETRY1, T0, T1, OneBroker, commits, consumer


@pytest.fixture
async def broker() -> AsyncIterator[OneBroker]:
    async with OneBroker() as peer:
        peer.serve_route(["T", "%RETRY%G"], {"b": peer.addr})
        yield peer


async def test_code_40_shares_the_queues_at_once(broker: OneBroker) -> None:
    async with consumer(broker) as joined:
        await eventually(lambda: len(joined.queues) == 4)
        broker.members.append("zzz")
        broker.notify(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": "OTHER"})
        broker.notify(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": "G"})
        await eventually(lambda: joined.queues == [RETRY0, T0])
        broker.members.remove("zzz")
        broker.notify(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": "G"})
        await eventually(lambda: len(joined.queues) == 4)


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
        broker.notify(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, body)
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


async def test_code_221_returns_the_offsets(broker: OneBroker) -> None:
    broker.serve_once(ResponseCode.PULL_RETRY_IMMEDIATELY, 95)
    async with consumer(broker) as joined:
        await eventually(lambda: list(commits(joined).values()) == [95] * 4)
        answer = await broker.ask(
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, {"topic": "T", "group": "G"}
        )
        table = decode_body(GetConsumerStatusBody, answer.body).message_queue_table
        assert table == {T0: 95, T1: 95}
        answer = await broker.ask(
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, {"topic": "T", "group": "X"}
        )
        assert answer.code == ResponseCode.SYSTEM_ERROR


async def test_code_307_returns_the_running_info(broker: OneBroker) -> None:
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
    consumed: list[MessageExt] = []

    async def listener(messages: list[MessageExt]) -> ConsumeStatus | None:
        consumed.extend(messages)
        return await answering(kind)

    joined = consumer(broker)
    joined.listener(listener)
    async with joined:
        await eventually(lambda: len(broker.pulls()) == 4)
        fields = {"consumerGroup": "G", "clientId": joined.client_id, "brokerName": "b"}
        stored = record(7, b"direct", topic="%RETRY%G", properties={"RETRY_TOPIC": "T"})
        answer = await broker.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields, stored)
    answer_body = decode_body(ConsumeMessageDirectlyResult, answer.body)
    assert (answer_body.consume_result, answer_body.remark) == (result, remark)
    (message,) = consumed
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
