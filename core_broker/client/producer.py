"""The producer: sends messages, to another queue when one fails, within one time budget.

Compatible with RocketMQ's DefaultMQProducer.
"""

import warnings
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from core_broker.client.hooks import ClientHook, HookChain
from core_broker.client.identity import new_uniq_key
from core_broker.client.instance import ClientInstance
from core_broker.client.results import SendResult
from core_broker.client.sender import Sender
from core_broker.client.sending import Outgoing, check_message, prepare, prepare_batch
from core_broker.client.settings import ProducerSettings
from core_broker.errors import ClientError
from core_broker.message.model import Message
from core_broker.message.topics import validate_group
from core_broker.remoting.bodies import HeartbeatData, MessageQueue, ProducerData
from core_broker.remoting.client import RpcHook


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
        self._started = False
        self._running = False

        def heartbeat(client_id: str) -> HeartbeatData:
            return HeartbeatData(
                client_id=client_id, producer_data_set=[ProducerData(group_name=group)]
            )

        self._instance = ClientInstance(
            namesrv_addr, name=f"producer {group}", heartbeat=heartbeat, rpc_hooks=rpc_hooks
        )
        self._sender = Sender(self._instance, group, self._settings, self._hooks)

    @property
    def client_id(self) -> str:
        return self._instance.client_id

    async def start(self) -> None:
        """Begin; no server needs to be there yet. A producer starts once."""
        if self._started:
            raise ClientError(f"The producer {self.group} was started before; make a new one.")
        await self._hooks.start(self._instance.namesrv_addr, self.group, "PRODUCE")
        self._started = self._running = True
        self._instance.start()

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
        self._check_running()
        route = await self._instance.routes.route(topic)
        return list(route.publish_queues)

    async def send(self, message: Message, *, timeout_ms: int | None = None) -> SendResult:
        """Send one message and wait until a broker has stored it."""
        return await self._sender.send(self._prepare(message), timeout_ms)

    async def send_batch(
        self, messages: Sequence[Message], *, timeout_ms: int | None = None
    ) -> SendResult:
        """Send messages of one topic in one request: all are stored, or none."""
        self._check_running()
        keys = [new_uniq_key() for _ in messages]
        outgoing = prepare_batch(messages, keys, self._settings.message_bytes_max)
        return await self._sender.send(outgoing, timeout_ms)

    async def send_to(
        self, message: Message, queue: MessageQueue, *, timeout_ms: int | None = None
    ) -> SendResult:
        """Send to a chosen queue, once: another queue would break the order the caller wants."""
        if queue.topic != message.topic:
            raise ClientError(f"The queue {queue} is not of the message's topic {message.topic}.")
        return await self._sender.send_to(self._prepare(message), queue, timeout_ms)

    async def send_oneway(self, message: Message) -> None:
        """Send and forget: nobody will know whether a broker stored it."""
        await self._sender.send_oneway(self._prepare(message))

    def _prepare(self, message: Message) -> Outgoing:
        self._check_running()
        check_message(message, self._settings.message_bytes_max)
        return prepare(message, new_uniq_key(), self._settings.compress_over_bytes)

    def _check_running(self) -> None:
        if not self._running:
            raise ClientError(f"The producer {self.group} is not running; call start() first.")
