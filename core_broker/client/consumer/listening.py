"""Calls of the application's listener, with time-out, hooks and statistics.

    concurrent listener   ConsumeStatus, or ReconsumeLater to choose the delay
    orderly listener      ConsumeOrderlyStatus, or SuspendQueue to choose the pause

None and any exception mean "not consumed". Compatible with RocketMQ's ConsumeReturnType.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from core_broker.client.consumer.stats import ConsumerStats
from core_broker.client.hooks import ConsumeContext, HookChain
from core_broker.client.identity import new_uniq_key, now_ms
from core_broker.client.namespaces import without_namespace
from core_broker.client.results import (
    ConsumeOrderlyStatus,
    ConsumeStatus,
    ReconsumeLater,
    SuspendQueue,
)
from core_broker.errors import ProtocolError
from core_broker.message import sysflag
from core_broker.message.model import MessageExt
from core_broker.message.properties import PROPERTY_RETRY_TOPIC
from core_broker.message.topics import retry_topic
from core_broker.remoting.bodies import MessageQueue

log = logging.getLogger(__name__)

ListenerAnswer = ConsumeStatus | ReconsumeLater | ConsumeOrderlyStatus | SuspendQueue | None

Listener = Callable[[list[MessageExt]], Awaitable[ConsumeStatus | ReconsumeLater | None]]
OrderlyListener = Callable[
    [list[MessageExt]], Awaitable[ConsumeOrderlyStatus | SuspendQueue | None]
]
AnyListener = Callable[[list[MessageExt]], Awaitable[ListenerAnswer]]


class ReturnType(IntEnum):
    """RocketMQ's ConsumeReturnType."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    RETURN_NULL = 3
    FAILED = 4


@dataclass(frozen=True, slots=True)
class ListenerOutcome:
    """The outcome of a listener call."""

    return_type: ReturnType
    elapsed_ms: int
    error: Exception | None = None
    #: Delay level of ReconsumeLater.
    delay_level: int = 0
    #: Pause of SuspendQueue, ms.
    suspend_ms: int | None = None

    @property
    def success(self) -> bool:
        return self.return_type is ReturnType.SUCCESS


class ListenerCalls:
    """The listener of one consumer."""

    def __init__(
        self,
        group: str,
        listener: AnyListener,
        timeout_ms: int,
        hooks: HookChain,
        stats: Callable[[str], ConsumerStats],
    ) -> None:
        self._group = group
        self._listener = listener
        self._timeout_ms = timeout_ms
        self._hooks = hooks
        self._stats = stats

    async def consume(self, queue: MessageQueue, messages: list[MessageExt]) -> ListenerOutcome:
        """Call the listener for messages of a queue, with hooks and statistics."""
        context = self._before(queue, messages)
        outcome = await self.call(messages)
        self._after(context, outcome)
        self._stats(queue.topic).consumed(
            now_ms(), len(messages), outcome.elapsed_ms, success=outcome.success
        )
        return outcome

    async def call(self, messages: list[MessageExt]) -> ListenerOutcome:
        """Call the listener without hooks and statistics; cancel the call after the time-out."""
        started_ms = now_ms()
        try:
            async with asyncio.timeout(self._timeout_ms / 1000) as limit:
                answer = await self._listener(messages)
            return _outcome(answer, now_ms() - started_ms)
        except Exception as failure:
            # The boundary around the listener: any exception means "not consumed".
            kind = ReturnType.TIME_OUT if limit.expired() else ReturnType.EXCEPTION
            ids = ", ".join(message.msg_id for message in messages)
            log.warning("The listener of %s failed for %s", self._group, ids, exc_info=failure)
            return ListenerOutcome(kind, now_ms() - started_ms, failure)

    def _before(self, queue: MessageQueue, messages: Sequence[MessageExt]) -> ConsumeContext | None:
        if not self._hooks:
            return None
        context = ConsumeContext(self._group, queue, messages, new_uniq_key(), now_ms())
        self._hooks.before_consume(context)
        return context

    def _after(self, context: ConsumeContext | None, outcome: ListenerOutcome) -> None:
        if context is not None:
            context.cost_ms = outcome.elapsed_ms
            context.success = outcome.success
            context.return_type = outcome.return_type
            self._hooks.after_consume(context)


_RETURN_TYPES: Final[dict[ListenerAnswer, ReturnType]] = {
    ConsumeStatus.CONSUME_SUCCESS: ReturnType.SUCCESS,
    ConsumeStatus.RECONSUME_LATER: ReturnType.FAILED,
    ConsumeOrderlyStatus.SUCCESS: ReturnType.SUCCESS,
    ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT: ReturnType.FAILED,
}


def _outcome(answer: ListenerAnswer, elapsed_ms: int) -> ListenerOutcome:
    if isinstance(answer, ReconsumeLater):
        return ListenerOutcome(ReturnType.FAILED, elapsed_ms, delay_level=answer.delay_level)
    if isinstance(answer, SuspendQueue):
        return ListenerOutcome(ReturnType.FAILED, elapsed_ms, suspend_ms=answer.milliseconds)
    return ListenerOutcome(_RETURN_TYPES.get(answer, ReturnType.RETURN_NULL), elapsed_ms)


def for_listener(message: MessageExt, group: str, namespace: str = "") -> MessageExt:
    """Restore a message as sent by the application: original topic, decompressed body.

    A corrupt compressed body stays compressed; ``decompressed_body`` raises the reason.
    """
    if message.topic == retry_topic(group):
        message.topic = message.properties.get(PROPERTY_RETRY_TOPIC, message.topic)
    message.topic = without_namespace(namespace, message.topic)
    if message.sys_flag & sysflag.COMPRESSED:
        try:
            message.body = message.decompressed_body()
        except ProtocolError as error:
            log.warning("The body of %s cannot be decompressed: %s", message.msg_id, error)
        else:
            message.sys_flag &= ~(sysflag.COMPRESSED | sysflag.COMPRESSION_MASK)
    return message
