"""The producer: sends messages, to another queue when one fails, within one time budget.

Compatible with RocketMQ's DefaultMQProducer.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from core_broker.client.deadline import Deadline
from core_broker.client.hooks import ClientHook, HookChain, SendContext
from core_broker.client.identity import new_uniq_key, now_ms
from core_broker.client.instance import ClientInstance
from core_broker.client.queue_choice import QueueChooser
from core_broker.client.results import SendResult, SendStatus
from core_broker.client.sending import (
    COMPRESS_OVER_BYTES,
    DEFAULT_TOPIC_QUEUE_NUMS,
    MESSAGE_BYTES_MAX,
    Outgoing,
    check_message,
    prepare,
    prepare_batch,
    read_send_answer,
)
from core_broker.errors import ClientError, ConnectFailed, RequestRefused, TransportError
from core_broker.message.model import Message
from core_broker.message.topics import validate_group
from core_broker.remoting.bodies import HeartbeatData, MessageQueue, ProducerData
from core_broker.remoting.client import RpcHook
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand

RETRY_CODES: Final = frozenset(
    {
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.NO_PERMISSION,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
    }
)
"""Refusals after which RocketMQ 4.9 tries another queue; SYSTEM_BUSY is not one of them."""


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """RocketMQ's defaults."""

    send_timeout_ms: int = 3000
    """For all tries of one message together."""
    retry_times: int = 2
    """Tries after the first one."""
    retry_codes: frozenset[int] = RETRY_CODES
    retry_when_not_stored_ok: bool = False
    """Also try another broker when a flush or replica did not confirm; this makes duplicates."""
    compress_over_bytes: int = COMPRESS_OVER_BYTES
    message_bytes_max: int = MESSAGE_BYTES_MAX
    new_topic_queue_nums: int = DEFAULT_TOPIC_QUEUE_NUMS
    """Queues to ask for when the first message creates its topic."""


class Producer:
    """Sends messages of one producer group: ``async with Producer("group", "host:9876") as p``.

    Belongs to the event loop it was started on. Many sends may run at once. Raises ClientError for
    what cannot be right, RequestRefused when a broker said no, and TransportError when the outcome
    is unknown: the broker may have stored the message although no answer came.
    """

    def __init__(
        self,
        group: str,
        namesrv_addr: str,
        hooks: Sequence[ClientHook] = (),
        *,
        settings: ProducerSettings | None = None,
        rpc_hooks: Sequence[RpcHook] = (),
    ) -> None:
        validate_group(group)
        self.group = group
        self._settings = settings or ProducerSettings()
        self._hooks = HookChain(hooks)
        self._chooser = QueueChooser()
        self._running = False

        def heartbeat(client_id: str) -> HeartbeatData:
            return HeartbeatData(
                client_id=client_id, producer_data_set=[ProducerData(group_name=group)]
            )

        self._instance = ClientInstance(
            namesrv_addr, name=f"producer {group}", heartbeat=heartbeat, rpc_hooks=rpc_hooks
        )

    @property
    def client_id(self) -> str:
        return self._instance.client_id

    async def start(self) -> None:
        """Begin; no server needs to be there yet."""
        self._running = True
        self._instance.start()
        await self._hooks.start(self._instance.namesrv_addr, self.group)

    async def stop(self) -> None:
        """Take leave of the brokers and close all connections; may be called twice."""
        if self._running:
            self._running = False
            await self._hooks.stop()
            await self._instance.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    def __del__(self) -> None:
        if getattr(self, "_running", False):
            warnings.warn(f"{self!r} was dropped without stop()", ResourceWarning, stacklevel=2)

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The queues that messages of a topic may go to."""
        route = await self._instance.routes.route(topic)
        return list(route.publish_queues)

    async def send(self, message: Message, *, timeout_ms: int | None = None) -> SendResult:
        """Send one message and wait until a broker has stored it."""
        return await self._send_to_any(self._prepare(message), timeout_ms)

    async def send_batch(
        self, messages: Sequence[Message], *, timeout_ms: int | None = None
    ) -> SendResult:
        """Send messages of one topic in one request: all are stored, or none."""
        keys = [new_uniq_key() for _ in messages]
        outgoing = prepare_batch(messages, keys, self._settings.message_bytes_max)
        return await self._send_to_any(outgoing, timeout_ms)

    async def send_to(
        self, message: Message, queue: MessageQueue, *, timeout_ms: int | None = None
    ) -> SendResult:
        """Send to a chosen queue, once: another queue would break the order the caller wants."""
        if queue.topic != message.topic:
            raise ClientError(f"The queue {queue} is not of the message's topic {message.topic}.")
        outgoing = self._prepare(message)
        await self._instance.routes.route(message.topic)
        deadline = Deadline(timeout_ms or self._settings.send_timeout_ms)
        return await self._try(outgoing, queue, deadline)

    async def send_oneway(self, message: Message) -> None:
        """Send and forget: nobody will know whether a broker stored it."""
        outgoing = self._prepare(message)
        queues = await self._writable_queues(outgoing.topic)
        queue = self._chooser.choose(outgoing.topic, queues)
        context, command = self._begin(outgoing, queue)
        try:
            await self._instance.remoting.oneway(context.broker_addr, command)
        except TransportError as error:
            context.error = error
            raise
        finally:
            self._end(context)

    def _prepare(self, message: Message) -> Outgoing:
        check_message(message, self._settings.message_bytes_max)
        return prepare(message, new_uniq_key(), self._settings.compress_over_bytes)

    async def _writable_queues(self, topic: str) -> Sequence[MessageQueue]:
        if not self._running:
            raise ClientError(f"The producer {self.group} is not running; call start() first.")
        nums = self._settings.new_topic_queue_nums
        route = await self._instance.routes.publish_route(topic, nums)
        if not route.publish_queues:
            raise ClientError(f"The topic {topic} has no queue that may be written to.")
        return route.publish_queues

    async def _send_to_any(self, outgoing: Outgoing, timeout_ms: int | None) -> SendResult:
        deadline = Deadline(timeout_ms or self._settings.send_timeout_ms)
        queues = await self._writable_queues(outgoing.topic)
        outcome: SendResult | TransportError | RequestRefused | None = None
        tried: list[str] = []
        while len(tried) <= self._settings.retry_times and (deadline.left_ms() or not tried):
            queue = self._chooser.choose(outgoing.topic, queues, tried[-1] if tried else None)
            tried.append(queue.broker_name)
            try:
                outcome = await self._try(outgoing, queue, deadline)
            except TransportError as error:
                outcome = error
            except RequestRefused as error:
                outcome = error
                if error.code not in self._settings.retry_codes:
                    break
            else:
                stored_ok = outcome.status is SendStatus.SEND_OK
                if stored_ok or not self._settings.retry_when_not_stored_ok:
                    break
        if isinstance(outcome, SendResult):
            return outcome
        assert outcome is not None
        outcome.add_note(f"Tried {len(tried)} times, at: {', '.join(tried)}.")
        raise outcome

    async def _try(self, outgoing: Outgoing, queue: MessageQueue, deadline: Deadline) -> SendResult:
        context, command = self._begin(outgoing, queue)
        addr = context.broker_addr
        try:
            answer = await self._instance.remoting.invoke(addr, command, deadline.left_ms())
            context.result = read_send_answer(answer, addr, outgoing, queue)
        except (TransportError, RequestRefused) as error:
            context.error = error
            if isinstance(error, ConnectFailed) or getattr(error, "route_stale", False):
                self._instance.routes.mark_stale(outgoing.topic)
            raise
        finally:
            self._end(context)
        return context.result

    def _begin(
        self, outgoing: Outgoing, queue: MessageQueue
    ) -> tuple[SendContext, RemotingCommand]:
        addr = self._instance.routes.master_addr(queue.broker_name)
        if addr is None:
            raise ClientError(f"The broker {queue.broker_name} has no master at the moment.")
        context = SendContext(self.group, outgoing, queue, addr, now_ms())
        command = outgoing.request(
            queue,
            group=self.group,
            now_ms=context.started_ms,
            default_topic_queue_nums=self._settings.new_topic_queue_nums,
        )
        self._hooks.before_send(context)
        return context, command

    def _end(self, context: SendContext) -> None:
        if self._hooks:
            context.cost_ms = now_ms() - context.started_ms
            self._hooks.after_send(context)
