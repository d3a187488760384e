"""Hooks around sending and consuming, for tracing, metrics and tests.

Compatible in meaning with RocketMQ's SendMessageHook, ConsumeMessageHook and EndTransactionHook.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from core_broker.client.results import SendResult
from core_broker.client.sending import Outgoing
from core_broker.message.model import Message, MessageExt
from core_broker.remoting.bodies import MessageQueue

log = logging.getLogger(__name__)

C = TypeVar("C")

Role = Literal["PRODUCE", "CONSUME"]


@dataclass(slots=True)
class SendContext:
    """One attempt to send. After the attempt ``result`` or ``error`` is set; a one-way send sets
    neither."""

    group: str
    outgoing: Outgoing
    queue: MessageQueue
    broker_addr: str
    started_ms: int
    cost_ms: int = 0
    result: SendResult | None = None
    error: Exception | None = None


@dataclass(slots=True)
class ConsumeContext:
    """One call of a listener."""

    group: str
    queue: MessageQueue
    messages: Sequence[MessageExt]
    #: Unique id of the call, in the form of a unique key.
    call_id: str
    started_ms: int
    cost_ms: int = 0
    success: bool = False
    #: RocketMQ's ConsumeReturnType: 0 success, 1 time-out, 2 exception, 3 null, 4 failed.
    return_type: int = 0


@dataclass(slots=True)
class EndTransactionContext:
    """The state of a local transaction, as a producer reported the state to a broker."""

    group: str
    message: Message | MessageExt
    msg_id: str
    transaction_id: str
    broker_addr: str
    #: The name of a LocalTransactionState.
    state: str
    #: True when the producer answered a check (code 39) of the broker.
    is_from_check: bool
    ended_ms: int


class ClientHook(Protocol):
    """Methods are called on the client's event loop and must return quickly. An exception of a
    hook is logged once and never reaches the send or the listener."""

    async def start(self, namesrv_addr: str, group: str, role: Role) -> None:
        """Called once when the client starts, before the first request."""

    async def stop(self) -> None:
        """Called once when the client stops, after the last send and the last listener call."""

    def before_send(self, context: SendContext) -> None: ...
    def after_send(self, context: SendContext) -> None: ...
    def before_consume(self, context: ConsumeContext) -> None: ...
    def after_consume(self, context: ConsumeContext) -> None: ...
    def end_transaction(self, context: EndTransactionContext) -> None: ...


class HookChain:
    """The hooks of one client. Exceptions of a hook do not reach the client."""

    def __init__(self, hooks: Iterable[ClientHook]) -> None:
        self._hooks = tuple(hooks)
        self._failed: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._hooks)

    async def start(self, namesrv_addr: str, group: str, role: Role) -> None:
        for hook in self._hooks:
            await hook.start(namesrv_addr, group, role)

    async def stop(self) -> None:
        for hook in self._hooks:
            await hook.stop()

    def before_send(self, context: SendContext) -> None:
        for hook in self._hooks:
            self._call(hook, hook.before_send, context)

    def after_send(self, context: SendContext) -> None:
        for hook in self._hooks:
            self._call(hook, hook.after_send, context)

    def before_consume(self, context: ConsumeContext) -> None:
        for hook in self._hooks:
            self._call(hook, hook.before_consume, context)

    def after_consume(self, context: ConsumeContext) -> None:
        for hook in self._hooks:
            self._call(hook, hook.after_consume, context)

    def end_transaction(self, context: EndTransactionContext) -> None:
        for hook in self._hooks:
            self._call(hook, hook.end_transaction, context)

    def _call(self, hook: ClientHook, method: Callable[[C], None], context: C) -> None:
        try:
            method(context)
        except Exception:
            # The boundary around foreign code: a failing hook must not break a send or a listener.
            if id(hook) not in self._failed:
                self._failed.add(id(hook))
                log.exception("The hook %r failed; its further failures are not logged", hook)
