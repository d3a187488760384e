"""The producer: sends messages, with retries at other queues within one time budget.

Compatible with RocketMQ's DefaultMQProducer.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Final

from core_broker.client.deadline import Deadline
from core_broker.client.hooks import ClientHook, HookChain
from core_broker.client.identity import new_uniq_key
from core_broker.client.in_flight import InFlight
from core_broker.client.instance import ClientInstance
from core_broker.client.namespaces import with_namespace
from core_broker.client.producer_settings import ProducerSettings
from core_broker.client.request_reply import PendingRequests, as_request, reply_to
from core_broker.client.results import SendResult
from core_broker.client.selectors import QueueSelector, by_hash
from core_broker.client.sender import Sender
from core_broker.client.sending import (
    Outgoing,
    check_message,
    prepare,
    prepare_batch,
    split_batch,
)
from core_broker.client.service import Service
from core_broker.errors import ClientError, ReplyTimeout
from core_broker.message.compression import compress
from core_broker.message.model import Message, MessageExt
from core_broker.message.topics import validate_group
from core_broker.remoting.bodies import HeartbeatData, MessageQueue, ProducerData
from core_broker.remoting.client import RpcHook, refuse
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Dispatch
from core_broker.remoting.tls_client import ClientTls

#: Callback of ``submit``: called with the result, or with None and the error.
OnSent = Callable[[SendResult | None, Exception | None], None]
#: Timeout of a request, from the send to the reply.
REQUEST_TIMEOUT_MS: Final = 3_000


class Producer(Service):
    """Sends messages of one producer group: ``async with Producer("group", "host:9876") as p``.

    Belongs to the event loop of ``start``. Many sends may run concurrently. Raises ClientError for
    invalid arguments, RequestRefused for a refusal by a broker, and TransportError when the outcome
    is unknown: the broker may have stored the message without answering.

    With a ``namespace``, topics and the group have the prefix on the cluster and not in the
    application; queues keep the full topic names.
    """

    def __init__(
        self,
        group: str,
        namesrv_addr: str = "",
        hooks: Sequence[ClientHook] = (),
        *,
        namespace: str = "",
        settings: ProducerSettings | None = None,
        rpc_hooks: Sequence[RpcHook] = (),
        tls: ClientTls | None = None,
    ) -> None:
        self.group = group = with_namespace(namespace, group)
        validate_group(group)
        self._namespace = namespace
        self._settings = settings or ProducerSettings()
        # Raise for a missing compression library now, not at the first large message.
        compress(b"", self._settings.compress_type)
        self._hooks = HookChain(hooks)
        self._started = False
        self._running = False
        handlers: dict[int, Dispatch] = {}
        # Handlers of broker requests, by code. The instance references the table and not the
        # producer: a producer dropped without stop() is collected, and __del__ warns.
        self._handlers = handlers
        self._pending = PendingRequests()
        handlers[RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT] = self._pending.on_reply

        def heartbeat(client_id: str) -> HeartbeatData:
            return HeartbeatData(
                client_id=client_id, producer_data_set=[ProducerData(group_name=group)]
            )

        def dispatch(connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
            return handlers.get(request.code, refuse)(connection, request)

        self._instance = ClientInstance(
            namesrv_addr,
            name=f"producer {group}",
            heartbeat=heartbeat,
            dispatch=dispatch,
            rpc_hooks=rpc_hooks,
            tls=tls,
        )
        self._sender = Sender(self._instance, group, self._settings, self._hooks)
        self._in_flight = InFlight(self._settings.in_flight_max)

    @property
    def client_id(self) -> str:
        return self._instance.client_id

    async def start(self) -> None:
        """Start; works before any server is reachable. A producer starts only once."""
        if self._started:
            raise ClientError(
                f"The producer {self.group} was started before; create a new Producer."
            )
        await self._hooks.start(self._instance.namesrv_addr, self.group, "PRODUCE")
        self._started = self._running = True
        self._instance.start()

    async def stop(self) -> None:
        """Refuse new messages, wait for running sends, unregister from the brokers and close all
        connections; may be called twice."""
        if self._running:
            self._running = False
            self._pending.fail_all()
            await self._in_flight.drain(self._settings.drain_timeout_s)
            await self._hooks.stop()
            await self._instance.stop()

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The writable queues of a topic."""
        self._check_running()
        route = await self._instance.routes.route(with_namespace(self._namespace, topic))
        return list(route.publish_queues)

    async def send(self, message: Message, *, timeout_ms: int | None = None) -> SendResult:
        """Send one message and wait until a broker has stored it."""
        outgoing = self._prepare(message)
        async with self._in_flight.track():
            return await self._sender.send(outgoing, timeout_ms)

    def submit(
        self,
        message: Message,
        on_sent: OnSent | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> "asyncio.Task[SendResult]":
        """Send in the background: await the returned task, or get the outcome by ``on_sent``.
        Raises ClientError immediately when ``in_flight_max`` messages are in flight."""
        outgoing = self._prepare(message)
        return self._in_flight.submit(self._sender.send, outgoing, timeout_ms, on_sent)

    async def send_batch(
        self, messages: Sequence[Message], *, timeout_ms: int | None = None
    ) -> SendResult:
        """Send messages of one topic in one request; the broker stores all or none."""
        outgoing = self._prepare_batch(messages)
        async with self._in_flight.track():
            return await self._sender.send(outgoing, timeout_ms)

    async def send_batch_to(
        self, messages: Sequence[Message], queue: MessageQueue, *, timeout_ms: int | None = None
    ) -> SendResult:
        """Send messages of one topic to the given queue in one request, without a retry. The broker
        stores all or none, in order."""
        outgoing = self._prepare_batch(messages)
        _check_queue(outgoing, queue)
        async with self._in_flight.track():
            return await self._sender.send_to(outgoing, queue, timeout_ms)

    async def send_batches(
        self, messages: Sequence[Message], *, timeout_ms: int | None = None
    ) -> list[SendResult]:
        """Send any number of messages of one topic, split into batches by size. The batches are
        sent sequentially; after a failure the earlier batches are stored."""
        parts = split_batch(messages, self._settings.message_bytes_max)
        return [await self.send_batch(part, timeout_ms=timeout_ms) for part in parts]

    async def send_to(
        self, message: Message, queue: MessageQueue, *, timeout_ms: int | None = None
    ) -> SendResult:
        """Send to the given queue without a retry: a retry at another queue would break the
        order."""
        outgoing = self._prepare(message)
        _check_queue(outgoing, queue)
        async with self._in_flight.track():
            return await self._sender.send_to(outgoing, queue, timeout_ms)

    async def send_selected(
        self,
        message: Message,
        selector: QueueSelector,
        argument: object,
        *,
        timeout_ms: int | None = None,
    ) -> SendResult:
        """Send to the queue chosen by a selector, without a retry."""
        outgoing = self._prepare(message)
        queues = await self._sender.queues(outgoing.topic, timeout_ms)
        queue = selector(queues, message, argument)
        async with self._in_flight.track():
            return await self._sender.send_to(outgoing, queue, timeout_ms)

    async def send_ordered(
        self, message: Message, sharding_key: str | int, *, timeout_ms: int | None = None
    ) -> SendResult:
        """Send to the queue of a sharding key. Messages with an equal key stay in order as long as
        the number of queues does not change."""
        return await self.send_selected(message, by_hash, sharding_key, timeout_ms=timeout_ms)

    async def send_oneway(self, message: Message) -> None:
        """Send without waiting for an answer; the outcome stays unknown."""
        await self._sender.send_oneway(self._prepare(message))

    async def request(
        self, message: Message, *, timeout_ms: int = REQUEST_TIMEOUT_MS
    ) -> MessageExt:
        """Send a message and wait for the reply of the consumer.

        Raises the errors of `send`, and ReplyTimeout when the message was stored and no reply
        arrived in time.
        """
        request, correlation_id = as_request(message, self.client_id, timeout_ms)
        outgoing = self._prepare(request)
        deadline = Deadline(timeout_ms)
        with self._pending.expect(correlation_id) as reply:
            # The broker pushes the reply over a connection registered by a heartbeat.
            await self._sender.announce(outgoing.topic, deadline)
            async with self._in_flight.track():
                await self._sender.send(outgoing, deadline.left_ms() or 1)
            try:
                async with asyncio.timeout(deadline.left_ms() / 1000):
                    return await reply
            except TimeoutError:
                raise ReplyTimeout(message.topic, timeout_ms) from None

    async def reply(
        self, request: MessageExt, body: bytes, *, timeout_ms: int | None = None
    ) -> SendResult:
        """Reply to a request received by a consumer, without a retry.

        The reply goes to the broker of the request, because the requester is registered at this
        broker. Raises RequestRefused when the broker cannot reach the requester.
        """
        # The reply topic is a system topic of the cluster and has no namespace.
        outgoing = self._outgoing(reply_to(request, body))
        queues = await self._sender.queues(outgoing.topic, timeout_ms)
        same_broker = [queue for queue in queues if queue.broker_name == request.broker_name]
        queue = random.choice(same_broker or queues)
        async with self._in_flight.track():
            return await self._sender.send_to(outgoing, queue, timeout_ms)

    def _prepare(self, message: Message) -> Outgoing:
        return self._outgoing(self._with_full_topic(message))

    def _prepare_batch(self, messages: Sequence[Message]) -> Outgoing:
        self._check_running()
        keys = [message.msg_id or new_uniq_key() for message in messages]
        full_messages = [self._with_full_topic(message) for message in messages]
        return prepare_batch(full_messages, keys, self._settings.message_bytes_max)

    def _outgoing(self, message: Message) -> Outgoing:
        self._check_running()
        settings = self._settings
        check_message(message, settings.message_bytes_max)
        return prepare(
            message,
            new_uniq_key(),
            settings.compress_over_bytes,
            settings.compress_type,
            settings.compress_level,
        )

    def _with_full_topic(self, message: Message) -> Message:
        """The message with the full name of the topic."""
        topic = with_namespace(self._namespace, message.topic)
        if topic == message.topic:
            return message
        copy = Message(topic, message.body, flag=message.flag)
        copy.properties = message.properties
        return copy

    def _check_running(self) -> None:
        if not self._running:
            raise ClientError(f"The producer {self.group} is not running; call start() first.")


def _check_queue(outgoing: Outgoing, queue: MessageQueue) -> None:
    if queue.topic != outgoing.topic:
        raise ClientError(f"The queue {queue} is not a queue of the topic {outgoing.topic}.")
