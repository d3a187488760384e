"""The transaction producer against a scripted broker: END_TRANSACTION requests and checks."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest

from core_broker.client import (
    EndTransactionContext,
    LocalTransactionState,
    Message,
    MessageExt,
    SendContext,
    TransactionProducer,
)
from core_broker.client import transactions as module
from core_broker.errors import ClientError, RequestRefused
from core_broker.message.properties import decode_properties
from core_broker.message.record import encode_record
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.state.half_messages import as_sent
from tests.support.eventually import eventually
from tests.support.scripted_peer import ScriptedPeer, ok, refuse
from tests.support.stored_messages import stored

COMMIT, ROLLBACK = LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.ROLLBACK_MESSAGE
UNKNOW = LocalTransactionState.UNKNOW
SEND, END = RequestCode.SEND_MESSAGE_V2, RequestCode.END_TRANSACTION
MESSAGE = Message("T", b"hi", tags="A", keys="k")
ANSWER = {"msgId": "7F00000100002A9F0000000000000123", "queueId": "1", "queueOffset": "7"}


class Answers:
    """Callbacks with given results, recording the arguments."""

    def __init__(self, state: Any = COMMIT) -> None:
        self.state = state
        self.executed: list[tuple[Message, Any]] = []
        self.checked: list[MessageExt] = []

    async def execute(self, message: Message, arg: Any) -> LocalTransactionState:
        self.executed.append((message, arg))
        return self._state()

    async def check(self, message: MessageExt) -> LocalTransactionState:
        self.checked.append(message)
        return self._state()

    def _state(self) -> LocalTransactionState:
        if isinstance(self.state, Exception):
            raise self.state
        return self.state  # type: ignore[no-any-return]


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedPeer]:
    async with ScriptedPeer() as peer:
        peer.serve_route(["T"], {"b": peer.addr})
        peer.on(SEND, lambda _: ok(ANSWER))
        peer.on(RequestCode.HEART_BEAT, lambda _: ok())
        yield peer


def producer(broker: ScriptedPeer, answers: Answers, **more: Any) -> TransactionProducer:
    return TransactionProducer(
        "PG", broker.addr, execute=answers.execute, check=answers.check, **more
    )


async def ended(broker: ScriptedPeer, count: int = 1) -> list[RemotingCommand]:
    await eventually(lambda: len(broker.received(END)) >= count)
    return broker.received(END)


@pytest.mark.parametrize(("state", "flag"), [(COMMIT, "8"), (ROLLBACK, "12"), (UNKNOW, "0")])
async def test_the_broker_receives_the_transaction_state(
    broker: ScriptedPeer, state: LocalTransactionState, flag: str
) -> None:
    answers = Answers(state)
    async with producer(broker, answers) as sending:
        result = await sending.send_in_transaction(MESSAGE, "arg")
        (end,) = await ended(broker)
    (half,) = broker.received(SEND)
    properties = decode_properties(half.ext_fields["i"])
    assert half.ext_fields["f"] == "4"
    assert (properties["TRAN_MSG"], properties["PGROUP"]) == ("true", "PG")
    assert end.is_oneway
    assert end.ext_fields == {
        "bname": "b",
        "commitLogOffset": str(0x123),
        "commitOrRollback": flag,
        "fromTransactionCheck": "false",
        "msgId": properties["UNIQ_KEY"],
        "producerGroup": "PG",
        "tranStateTableOffset": "7",
    }
    ((shown, arg),) = answers.executed
    assert (shown.body, shown.msg_id, arg) == (b"hi", properties["UNIQ_KEY"], "arg")
    assert (result.local_state, result.transaction_id) == (state, properties["UNIQ_KEY"])
    assert "TRAN_MSG" not in MESSAGE.properties


@pytest.mark.parametrize("answer", [ValueError("no"), None, "COMMIT", True])
async def test_without_a_state_it_is_unknown(broker: ScriptedPeer, answer: Any) -> None:
    async with producer(broker, Answers(answer)) as sending:
        result = await sending.send_in_transaction(MESSAGE)
        (end,) = await ended(broker)
    assert result.local_state is UNKNOW
    assert end.ext_fields["commitOrRollback"] == "0"
    assert result.error is (answer if isinstance(answer, Exception) else None)
    assert bool(end.remark) == isinstance(answer, Exception)


@pytest.mark.parametrize("code", [10, 11, 12])
async def test_what_may_be_lost_is_rolled_back(broker: ScriptedPeer, code: int) -> None:
    broker.on(SEND, lambda _: RemotingCommand.response(code, None, ANSWER))
    answers = Answers()
    async with producer(broker, answers) as sending:
        result = await sending.send_in_transaction(MESSAGE)
        (end,) = await ended(broker)
    assert (result.local_state, answers.executed) == (ROLLBACK, [])
    assert end.ext_fields["commitOrRollback"] == "12"


async def test_nothing_runs_when_the_half_message_is_refused(broker: ScriptedPeer) -> None:
    broker.on(SEND, lambda _: refuse(16, "forbidden"))
    answers = Answers()
    async with producer(broker, answers) as sending:
        with pytest.raises(RequestRefused):
            await sending.send_in_transaction(MESSAGE)
        with pytest.raises(ClientError, match="delayed"):
            await sending.send_in_transaction(Message("T", b"x", delay_level=1))
    assert answers.executed == []
    assert broker.received(END) == []


async def test_plain_functions_run_beside_the_event_loop(broker: ScriptedPeer) -> None:
    threads = []

    def execute(message: Message, arg: Any) -> LocalTransactionState:
        threads.append(threading.current_thread())
        return COMMIT

    async def later(message: Message, arg: Any) -> LocalTransactionState:
        return ROLLBACK

    async with TransactionProducer(
        "PG", broker.addr, execute=execute, check=lambda _: COMMIT
    ) as sending:
        assert (await sending.send_in_transaction(MESSAGE)).local_state is COMMIT
    assert threads != [threading.main_thread()]

    def soon(message: Message, arg: Any) -> Awaitable[LocalTransactionState]:
        return later(message, arg)

    async with TransactionProducer(
        "PG", broker.addr, execute=soon, check=lambda _: COMMIT
    ) as sending:
        assert (await sending.send_in_transaction(MESSAGE)).local_state is ROLLBACK


def question(group: str = "PG", body: bytes | None = None) -> RemotingCommand:
    half = stored(2, 9, 1_700_000_000_000)
    properties = {"PGROUP": group, "UNIQ_KEY": "U1", "REAL_TOPIC": "T", "REAL_QID": "2"}
    record = encode_record(
        as_sent(half, properties, "T", 2), queue_offset=9, physical_offset=555, store_timestamp=1
    )
    fields = {
        "commitLogOffset": "555",
        "tranStateTableOffset": "9",
        "msgId": "U1",
        "transactionId": "U1",
        "offsetMsgId": "7F00000100002A9F000000000000022B",
    }
    return RemotingCommand.request(
        RequestCode.CHECK_TRANSACTION_STATE, fields, record if body is None else body
    )


@pytest.mark.parametrize(
    ("answer", "flag"), [(COMMIT, "8"), (ROLLBACK, "12"), (UNKNOW, "0"), (ValueError("x"), "0")]
)
async def test_a_question_is_answered(broker: ScriptedPeer, answer: Any, flag: str) -> None:
    answers = Answers()
    async with producer(broker, answers) as sending:
        await sending.send_in_transaction(MESSAGE)
        await ended(broker)
        answers.state = answer
        broker.connections[-1].send(question())
        end = (await ended(broker, 2))[1]
    assert end.is_oneway
    assert end.ext_fields == {
        "commitLogOffset": "555",
        "commitOrRollback": flag,
        "fromTransactionCheck": "true",
        "msgId": "U1",
        "producerGroup": "PG",
        "tranStateTableOffset": "9",
        "transactionId": "U1",
    }
    (message,) = answers.checked
    assert (message.topic, message.queue_id, message.msg_id) == ("T", 2, "U1")


async def test_questions_that_are_not_answered(
    broker: ScriptedPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Answers()
    async with producer(broker, answers) as sending:
        await sending.send_in_transaction(MESSAGE)
        await ended(broker)
        connection = broker.connections[-1]
        connection.send(question("other group"))
        connection.send(question(body=b""))
        connection.send(question(body=b"\xff" * 200))
        connection.send(RemotingCommand.request(RequestCode.CHECK_TRANSACTION_STATE, {}))
        with monkeypatch.context() as full:
            full.setattr(module, "CHECKS_MAX", 0)
            connection.send(question())
            # The answer to a further request shows: the client has read the checks before.
            answer = await connection.invoke(RemotingCommand.request(9999, {}), 5_000)
        assert answer.code == 3
        connection.send(question())
        assert len(await ended(broker, 2)) == 2
    assert len(answers.checked) == 1


async def test_stopping_does_not_wait_for_a_check(broker: ScriptedPeer) -> None:
    entered = asyncio.Event()

    async def check(message: MessageExt) -> LocalTransactionState:
        entered.set()
        await asyncio.Event().wait()
        return COMMIT

    answers = Answers()
    sending = TransactionProducer("PG", broker.addr, execute=answers.execute, check=check)
    async with sending:
        await sending.send_in_transaction(MESSAGE)
        broker.connections[-1].send(question())
        await entered.wait()
    assert len(broker.received(END)) == 1


class Notes:
    """A hook recording the ends of transactions and raising exceptions."""

    def __init__(self) -> None:
        self.contexts: list[EndTransactionContext] = []

    async def start(self, namesrv_addr: str, group: str, role: object) -> None: ...
    async def stop(self) -> None: ...
    def before_send(self, context: SendContext) -> None: ...
    def after_send(self, context: SendContext) -> None: ...
    def before_consume(self, context: object) -> None: ...
    def after_consume(self, context: object) -> None: ...

    def end_transaction(self, context: EndTransactionContext) -> None:
        self.contexts.append(context)
        raise ValueError("an onlooker must not break what it looks at")


async def test_hooks_see_both_kinds_of_ends(broker: ScriptedPeer) -> None:
    notes = Notes()
    async with producer(broker, Answers(ROLLBACK), hooks=[notes]) as sending:
        await sending.send_in_transaction(MESSAGE)
        await ended(broker)
        broker.connections[-1].send(question())
        await ended(broker, 2)
    first, second = notes.contexts
    assert (first.group, first.state, first.is_from_check) == ("PG", "ROLLBACK_MESSAGE", False)
    assert (first.message.topic, first.broker_addr) == ("T", broker.addr)
    assert first.transaction_id == first.msg_id
    assert (second.msg_id, second.transaction_id, second.is_from_check) == ("U1", "U1", True)
