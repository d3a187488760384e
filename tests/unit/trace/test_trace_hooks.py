"""The trace hook: records, batches, and dropped records after failures."""

from collections.abc import AsyncIterator

import pytest

import trace.hooks as hooks_module
from core_broker.client import Producer, SendContext, SendResult, SendStatus
from core_broker.client.hooks import ConsumeContext, EndTransactionContext
from core_broker.client.sending import prepare, prepare_batch
from core_broker.errors import ClientError, RequestRefused
from core_broker.message.model import Message, MessageExt
from core_broker.message.properties import decode_properties
from core_broker.remoting.bodies import MessageQueue
from core_broker.remoting.codes import RequestCode
from tests.support.consumer_parts import message as stored_message
from tests.support.eventually import eventually
from tests.support.scripted_peer import ScriptedPeer, refuse, stored
from trace.codec import (
    EndTransaction,
    MessageType,
    Pub,
    SubAfter,
    SubBefore,
    TraceRecord,
    decode_trace,
)
from trace.hooks import CALLS_PER_BATCH, CALLS_WAITING_MAX, MESSAGE_BYTES_MAX, TraceHook, pack

TRACE = "RMQ_SYS_TRACE_TOPIC"
SEND = RequestCode.SEND_MESSAGE_V2
QUEUE = MessageQueue("T", "b", 0)


@pytest.fixture
async def peer() -> AsyncIterator[ScriptedPeer]:
    async with ScriptedPeer() as scripted:
        scripted.serve_route(["T", TRACE], {"b": scripted.addr})
        scripted.on(SEND, stored)
        yield scripted


def traced(peer: ScriptedPeer) -> list[TraceRecord]:
    """All records that arrived at the trace topic."""
    bodies = [it.body for it in peer.received(SEND) if it.ext_fields["b"] == TRACE]
    decoded = [decode_trace(body) for body in bodies]
    assert sum(it.broken_count for it in decoded) == 0
    return [record for it in decoded for record in it.records]


def sent(*messages: Message, trace_on: bool = True) -> SendContext:
    if len(messages) == 1:
        outgoing = prepare(messages[0], "KEY")
    else:
        outgoing = prepare_batch(messages, [f"K{number}" for number in range(len(messages))])
    offset_ids = ",".join(f"OFFSET{number}" for number in range(len(messages)))
    return SendContext(
        "PG",
        outgoing,
        QUEUE,
        "h:1",
        started_ms=1000,
        cost_ms=12,
        result=SendResult(SendStatus.SEND_OK, "KEY", offset_ids, QUEUE, 0, trace_on=trace_on),
    )


def consumed(*messages: MessageExt, success: bool = True) -> ConsumeContext:
    return ConsumeContext(
        "CG",
        QUEUE,
        messages,
        "CALL",
        started_ms=2000,
        cost_ms=30,
        success=success,
        return_type=0 if success else 4,
    )


async def written(peer: ScriptedPeer, hook: TraceHook) -> list[TraceRecord]:
    await hook.start(peer.addr, "G", "PRODUCE")
    await hook.stop()
    return traced(peer)


async def test_a_send(peer: ScriptedPeer) -> None:
    hook = TraceHook()
    hook.after_send(sent(Message("T", b"four", tags="A", keys=["k1", "k2"])))
    assert await written(peer, hook) == [
        Pub(
            timestamp_ms=1000,
            region_id="DefaultRegion",
            group="PG",
            topic="T",
            msg_id="KEY",
            tags="A",
            keys="k1 k2",
            store_host="h:1",
            body_bytes=4,
            cost_ms=12,
            msg_type=MessageType.NORMAL,
            offset_msg_id="OFFSET0",
            success=True,
        )
    ]
    (request,) = peer.received(SEND)
    assert decode_properties(request.ext_fields["i"])["KEYS"] == "KEY k1 k2"
    assert request.ext_fields["a"].startswith("_INNER_TRACE_PRODUCER-G-PRODUCE-")
    assert (hook.sent, hook.dropped) == (1, 0)


async def test_each_message_of_a_batch_is_a_record(peer: ScriptedPeer) -> None:
    hook = TraceHook()
    hook.after_send(sent(Message("T", b"1"), Message("T", b"2")))
    records = await written(peer, hook)
    ids = [(r.msg_id, r.offset_msg_id) for r in records if isinstance(r, Pub)]
    assert ids == [("K0", "OFFSET0"), ("K1", "OFFSET1")]


async def test_kinds_of_messages(peer: ScriptedPeer) -> None:
    hook = TraceHook()
    hook.after_send(sent(Message("T", b"1", delay_level=3)))
    hook.after_send(sent(Message("T", b"1", properties={"TRAN_MSG": "true"})))
    records = await written(peer, hook)
    kinds = [record.msg_type for record in records if isinstance(record, Pub)]
    assert kinds == [MessageType.DELAY, MessageType.TRANSACTION_HALF]


async def test_a_send_that_failed_is_a_record_too(peer: ScriptedPeer) -> None:
    hook, context = TraceHook(), sent(Message("T", b"1"))
    context.result, context.error = None, RequestRefused(1)
    hook.after_send(context)
    (record,) = await written(peer, hook)
    assert isinstance(record, Pub)
    assert (record.success, record.offset_msg_id) == (False, "")


async def test_the_end_of_a_transaction(peer: ScriptedPeer) -> None:
    hook, message = TraceHook(), Message("T", b"1", tags="A", keys=["k1", "k2"])
    context = EndTransactionContext(
        "PG", message, "KEY", "TX", "h:1", "COMMIT_MESSAGE", is_from_check=True, ended_ms=3000
    )
    hook.end_transaction(context)
    message.properties["TRACE_ON"] = "false"
    hook.end_transaction(context)
    assert await written(peer, hook) == [
        EndTransaction(
            timestamp_ms=3000,
            region_id="DefaultRegion",
            group="PG",
            topic="T",
            msg_id="KEY",
            tags="A",
            keys="k1 k2",
            store_host="h:1",
            msg_type=MessageType.TRANSACTION_COMMIT,
            transaction_id="TX",
            transaction_state="COMMIT_MESSAGE",
            from_transaction_check=True,
        )
    ]


async def test_untraced_messages(peer: ScriptedPeer) -> None:
    hook, oneway = TraceHook(), sent(Message("T", b"1"))
    oneway.result = None
    hook.after_send(oneway)
    hook.after_send(sent(Message("T", b"1"), trace_on=False))
    hook.after_send(sent(Message(TRACE, b"1")))
    silent = consumed(stored_message(5, properties={"TRACE_ON": "false"}))
    hook.before_consume(silent)
    hook.after_consume(silent)
    assert await written(peer, hook) == []


async def test_a_call_of_a_listener(peer: ScriptedPeer) -> None:
    hook = TraceHook()
    first, second = stored_message(5, properties={"KEYS": "k"}), stored_message(6)
    second.reconsume_times = 2
    context = consumed(first, second, success=False)
    hook.before_consume(context)
    hook.after_consume(context)
    before, before_2, after, after_2 = await written(peer, hook)
    assert before == SubBefore(
        timestamp_ms=2000,
        region_id="DefaultRegion",
        group="CG",
        request_id="CALL",
        msg_id=first.msg_id,
        retry_times=0,
        keys="k",
    )
    assert isinstance(before_2, SubBefore)
    assert (before_2.retry_times, before_2.msg_id) == (2, second.msg_id)
    assert after == SubAfter(
        request_id="CALL",
        msg_id=first.msg_id,
        cost_ms=15,
        success=False,
        keys="k",
        context_code=4,
        timestamp_ms=2030,
        group="CG",
    )
    assert isinstance(after_2, SubAfter)
    assert after_2.msg_id == second.msg_id


async def test_a_full_batch_is_sent_at_once(peer: ScriptedPeer) -> None:
    hook = TraceHook()
    await hook.start(peer.addr, "G", "PRODUCE")
    for _ in range(CALLS_PER_BATCH - 1):
        hook.after_send(sent(Message("T", b"1")))
    assert traced(peer) == []
    hook.after_send(sent(Message("T", b"1")))
    await eventually(lambda: len(traced(peer)) == CALLS_PER_BATCH)
    assert len(peer.received(SEND)) == 1
    await hook.stop()


async def test_a_partial_batch_is_sent_after_the_interval(
    peer: ScriptedPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks_module, "FLUSH_INTERVAL_S", 0.01)
    hook = TraceHook()
    await hook.start(peer.addr, "G", "PRODUCE")
    hook.after_send(sent(Message("T", b"1")))
    await eventually(lambda: traced(peer))
    await hook.stop()


async def test_records_without_a_broker_are_dropped_and_counted(
    peer: ScriptedPeer, caplog: pytest.LogCaptureFixture
) -> None:
    peer.on(SEND, lambda _: refuse(13, "no"))
    hook = TraceHook()
    await hook.start(peer.addr, "G", "PRODUCE")
    for _ in range(CALLS_PER_BATCH):
        hook.after_send(sent(Message("T", b"1")))
    await eventually(lambda: hook.dropped == CALLS_PER_BATCH)
    await hook.stop()
    assert hook.sent == 0
    assert "MESSAGE_ILLEGAL" in caplog.text


def test_the_queue_is_bounded() -> None:
    hook = TraceHook()
    for _ in range(CALLS_WAITING_MAX + 5):
        hook.after_send(sent(Message("T", b"1")))
    assert hook.dropped == 5


async def test_tracing_does_not_change_the_sends_of_a_producer(peer: ScriptedPeer) -> None:
    peer.on(
        SEND, lambda request: refuse(1) if request.ext_fields["b"] == TRACE else stored(request)
    )
    hook = TraceHook()
    async with Producer("PG", peer.addr, hooks=[hook]) as producer:
        for _ in range(3):
            assert (await producer.send(Message("T", b"hi"))).status is SendStatus.SEND_OK
    assert (hook.sent, hook.dropped) == (0, 3)


async def test_a_hook_serves_one_client(peer: ScriptedPeer) -> None:
    hook = TraceHook()
    await hook.start(peer.addr, "G", "PRODUCE")
    with pytest.raises(ClientError, match="one client"):
        await hook.start(peer.addr, "G", "PRODUCE")
    await hook.stop()
    await hook.stop()


def records(count: int, *, region_id: str = "", keys: str = "") -> list[TraceRecord]:
    return [
        Pub(
            timestamp_ms=1,
            group="G",
            topic="T",
            msg_id=f"{number:032d}",
            region_id=region_id,
            keys=keys,
        )
        for number in range(count)
    ]


def test_messages_stay_below_the_limit_of_bytes() -> None:
    packed = list(pack(TRACE, records(600, region_id="ä" * 200)))
    assert len(packed) > 1
    assert all(len(message.body) <= MESSAGE_BYTES_MAX for message, _ in packed)
    assert sum(count for _, count in packed) == 600


def test_messages_stay_below_the_limit_of_properties() -> None:
    packed = list(pack(TRACE, records(50, keys="ä" * 1000)))
    assert sum(count for _, count in packed) == 50
    for message, _ in packed:
        prepare(message, "KEY")


def test_no_records_give_no_messages() -> None:
    assert list(pack(TRACE, [])) == []
