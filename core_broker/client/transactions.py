"""Transactional messages: delivered only after the commit of a local transaction.

    producer                    broker
    half message          ->    stores the half message, invisible to consumers
    execute()
    commit, rollback (37) ->    delivers or discards the message
                          <-    without commit or rollback: check (39) at a producer of the group
    check()
    commit, rollback (37) ->

END_TRANSACTION (37) is a one-way request; after a loss the broker checks again. Compatible with
RocketMQ's TransactionMQProducer and TransactionListener.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, Final

from core_broker.client.hooks import ClientHook, EndTransactionContext, HookChain
from core_broker.client.identity import new_uniq_key, now_ms
from core_broker.client.instance import ClientInstance
from core_broker.client.producer import Producer
from core_broker.client.producer_settings import ProducerSettings
from core_broker.client.results import SendResult, SendStatus
from core_broker.errors import ClientError, GantryError, ProtocolError
from core_broker.message import sysflag
from core_broker.message.ids import parse_offset_msg_id
from core_broker.message.model import Message, MessageExt
from core_broker.message.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_KEY,
)
from core_broker.message.record import decode_record
from core_broker.remoting.client import RpcHook
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import (
    CheckTransactionStateRequestHeader,
    EndTransactionRequestHeader,
)
from core_broker.remoting.tls_client import ClientTls

log = logging.getLogger(__name__)

#: Maximum concurrent checks. Further checks are dropped: the broker checks again.
CHECKS_MAX: Final = 2_000


class LocalTransactionState(StrEnum):
    """The state of a local transaction."""

    COMMIT_MESSAGE = "COMMIT_MESSAGE"
    ROLLBACK_MESSAGE = "ROLLBACK_MESSAGE"
    #: Undecided: the broker will check. The spelling is RocketMQ's.
    UNKNOW = "UNKNOW"


_FLAGS: Final = {
    LocalTransactionState.COMMIT_MESSAGE: sysflag.TRANSACTION_COMMIT,
    LocalTransactionState.ROLLBACK_MESSAGE: sysflag.TRANSACTION_ROLLBACK,
    LocalTransactionState.UNKNOW: sysflag.TRANSACTION_NONE,
}

State = LocalTransactionState
Execute = Callable[[Message, Any], State | Awaitable[State]]
Check = Callable[[MessageExt], State | Awaitable[State]]


@dataclass(frozen=True, slots=True)
class TransactionSendResult(SendResult):
    """The send result of the half message, and the state of the local transaction."""

    transaction_id: str = ""
    local_state: LocalTransactionState = LocalTransactionState.UNKNOW
    #: The exception of `execute`; the state is then UNKNOW, and the broker will check.
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class _EndTransaction:
    """The end of one transaction: broker address and request fields."""

    addr: str
    message: Message | MessageExt
    msg_id: str
    transaction_id: str | None
    queue_offset: int
    offset_physical: int
    broker_name: str | None
    is_from_check: bool


class _TransactionEnder:
    """Sends END_TRANSACTION (37) to brokers."""

    def __init__(self, instance: ClientInstance, group: str, hooks: HookChain) -> None:
        self.group = group
        self._instance = instance
        self._hooks = hooks

    async def end(
        self, ending: _EndTransaction, state: LocalTransactionState, error: Exception | None
    ) -> None:
        """Send the state of the transaction. Failures are logged: the broker will check."""
        header = EndTransactionRequestHeader(
            producer_group=self.group,
            tran_state_table_offset=ending.queue_offset,
            commit_log_offset=ending.offset_physical,
            commit_or_rollback=_FLAGS[state],
            msg_id=ending.msg_id,
            from_transaction_check=ending.is_from_check,
            transaction_id=ending.transaction_id,
            broker_name=ending.broker_name,
        )
        command = RemotingCommand.request(RequestCode.END_TRANSACTION, header)
        if error is not None:
            command.remark = f"{type(error).__name__}: {error}"
        try:
            await self._instance.remoting.oneway(ending.addr, command)
        except GantryError as failure:
            log.warning("%s of a transaction was not sent to %s: %s", state, ending.addr, failure)
        self._hooks.end_transaction(
            EndTransactionContext(
                self.group,
                ending.message,
                ending.msg_id,
                ending.transaction_id or ending.msg_id,
                ending.addr,
                state.value,
                ending.is_from_check,
                now_ms(),
            )
        )


class _Checks:
    """Handles the transaction checks (39) of brokers."""

    def __init__(self, check: Check, ender: _TransactionEnder) -> None:
        self._check = check
        self._ender = ender
        self._running: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def on_check(self, connection: Connection, request: RemotingCommand) -> None:
        """Start a check for CHECK_TRANSACTION_STATE (39); the answer is a separate request (37)."""
        peer = connection.peer
        header = request.header(CheckTransactionStateRequestHeader)
        try:
            message = decode_record(request.body)
        except ProtocolError as error:
            log.warning("The half message in a check of %s cannot be decoded: %s", peer, error)
            return
        if message.properties.get(PROPERTY_PRODUCER_GROUP) != self._ender.group:
            log.warning("A check of %s is for a different producer group", peer)
        elif len(self._running) >= CHECKS_MAX:
            log.warning("%d checks are running; a check of %s was dropped", CHECKS_MAX, peer)
        else:
            task = asyncio.create_task(self._answer(peer, header, message))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _answer(
        self, addr: str, header: CheckTransactionStateRequestHeader, message: MessageExt
    ) -> None:
        if message.sys_flag & sysflag.COMPRESSED:
            try:
                message.body = message.decompressed_body()
            except ProtocolError as error:
                log.warning("The body of %s cannot be decompressed: %s", message.msg_id, error)
        state, failure = await _state(self._check, message)
        ending = _EndTransaction(
            addr=addr,
            message=message,
            msg_id=message.msg_id,
            transaction_id=header.transaction_id,
            queue_offset=header.tran_state_table_offset,
            offset_physical=header.commit_log_offset,
            broker_name=None,
            is_from_check=True,
        )
        await self._ender.end(ending, state, failure)


class TransactionProducer(Producer):
    """Sends messages with local transactions.

    `execute(message, arg)` runs the local transaction after the half message is stored, and
    returns the state of the transaction. `check(message)` returns the state later, when a broker
    checks a half message, possibly of another producer of the group; `message.msg_id` is equal in
    `execute` and `check`. Both may be coroutine functions; a plain function runs in a thread. An
    exception, or a return value other than a state, counts as UNKNOW.
    """

    def __init__(
        self,
        group: str,
        namesrv_addr: str,
        hooks: Sequence[ClientHook] = (),
        *,
        execute: Execute,
        check: Check,
        namespace: str = "",
        settings: ProducerSettings | None = None,
        rpc_hooks: Sequence[RpcHook] = (),
        tls: ClientTls | None = None,
    ) -> None:
        super().__init__(
            group,
            namesrv_addr,
            hooks,
            namespace=namespace,
            settings=settings,
            rpc_hooks=rpc_hooks,
            tls=tls,
        )
        self._execute = execute
        self._ender = _TransactionEnder(self._instance, self.group, self._hooks)
        self._checks = _Checks(check, self._ender)
        self._handlers[RequestCode.CHECK_TRANSACTION_STATE] = self._checks.on_check

    async def stop(self) -> None:
        """Cancel running checks and stop; the broker will check at another producer."""
        await self._checks.stop()
        await super().stop()

    async def send_in_transaction(
        self, message: Message, arg: Any = None, *, timeout_ms: int | None = None
    ) -> TransactionSendResult:
        """Send a half message, run the local transaction, and send the state to the broker.

        Raises the errors of `send`; after an error the transaction was not run.
        """
        if PROPERTY_DELAY_TIME_LEVEL in message.properties:
            raise ClientError("A message in a transaction cannot be delayed.")
        half = Message(message.topic, message.body, flag=message.flag)
        half.properties = message.properties | {
            PROPERTY_TRANSACTION_PREPARED: "true",
            PROPERTY_PRODUCER_GROUP: self.group,
        }
        half.properties.setdefault(PROPERTY_UNIQ_KEY, new_uniq_key())
        outgoing = self._prepare(half)
        outgoing = replace(outgoing, sys_flag=outgoing.sys_flag | sysflag.TRANSACTION_PREPARED)
        state, error = LocalTransactionState.ROLLBACK_MESSAGE, None
        async with self._in_flight.track():
            sent = await self._sender.send(outgoing, timeout_ms)
            if sent.status is SendStatus.SEND_OK:
                state, error = await _state(self._execute, half, arg)
            await self._ender.end(self._ending(half, sent), state, error)
        send_fields = {field.name: getattr(sent, field.name) for field in fields(SendResult)}
        return TransactionSendResult(
            **send_fields, transaction_id=sent.msg_id, local_state=state, error=error
        )

    def _ending(self, half: Message, sent: SendResult) -> _EndTransaction:
        return _EndTransaction(
            addr=self._instance.routes.master_addr(sent.queue.broker_name) or "",
            message=half,
            msg_id=sent.msg_id,
            transaction_id=None,
            queue_offset=sent.queue_offset,
            offset_physical=parse_offset_msg_id(sent.offset_msg_id)[2],
            broker_name=sent.queue.broker_name,
            is_from_check=False,
        )


async def _state(
    callback: Callable[..., State | Awaitable[State]], *args: Any
) -> tuple[LocalTransactionState, Exception | None]:
    """Call the application's `execute` or `check`; return the state, and the exception if any."""
    try:
        if inspect.iscoroutinefunction(callback):
            state = await callback(*args)
        else:
            state = await asyncio.to_thread(callback, *args)
            if inspect.isawaitable(state):
                state = await state
    except Exception as error:
        # The boundary around the application's code: the broker checks again.
        log.exception("A local transaction raised an exception; the state is UNKNOW")
        return LocalTransactionState.UNKNOW, error
    if not isinstance(state, LocalTransactionState):
        log.warning("A local transaction returned %r, not a LocalTransactionState", state)
        return LocalTransactionState.UNKNOW, None
    return state, None
