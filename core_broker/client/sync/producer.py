"""The producers without ``await``."""

import concurrent.futures
import threading
from collections.abc import Sequence
from typing import Any

from core_broker.client import producer as asyncio_producer
from core_broker.client import transactions
from core_broker.client.producer_settings import ProducerSettings
from core_broker.client.results import SendResult
from core_broker.client.selectors import QueueSelector
from core_broker.client.sync.background import SyncClient
from core_broker.errors import ClientError
from core_broker.message.model import Message, MessageExt
from core_broker.remoting.bodies import MessageQueue


class Producer(SyncClient):
    """`core_broker.client.Producer` for threads; takes the same options."""

    def __init__(self, group: str, namesrv_addr: str = "", **options: Any) -> None:
        super().__init__()
        settings = options.get("settings") or ProducerSettings()
        self._slots = threading.BoundedSemaphore(settings.in_flight_max)
        self._in_flight_max = settings.in_flight_max

        self._producer = self._run(self._make(group, namesrv_addr, options))

    async def _make(
        self, group: str, namesrv_addr: str, options: dict[str, Any]
    ) -> asyncio_producer.Producer:
        return asyncio_producer.Producer(group, namesrv_addr, **options)

    @property
    def group(self) -> str:
        return self._producer.group

    @property
    def client_id(self) -> str:
        return self._producer.client_id

    def queues(self, topic: str) -> list[MessageQueue]:
        """The writable queues of a topic."""
        return self._run(self._producer.queues(topic))

    def send(self, message: Message, *, timeout_ms: int | None = None) -> SendResult:
        """Send one message and wait until a broker has stored it."""
        return self._run(self._producer.send(message, timeout_ms=timeout_ms))

    def submit(
        self, message: Message, *, timeout_ms: int | None = None
    ) -> "concurrent.futures.Future[SendResult]":
        """Send in the background; returns a future of `concurrent.futures`. Raises ClientError
        immediately when ``in_flight_max`` messages are in flight."""
        self._check()
        if not self._slots.acquire(blocking=False):
            raise ClientError(
                f"{self._in_flight_max} messages are in flight already; raise in_flight_max."
            )
        future = self._background.submit(self._producer.send(message, timeout_ms=timeout_ms))
        future.add_done_callback(lambda _: self._slots.release())
        return future

    def send_batch(
        self, messages: Sequence[Message], *, timeout_ms: int | None = None
    ) -> SendResult:
        """Send messages of one topic in one request; the broker stores all or none."""
        return self._run(self._producer.send_batch(messages, timeout_ms=timeout_ms))

    def send_batch_to(
        self, messages: Sequence[Message], queue: MessageQueue, *, timeout_ms: int | None = None
    ) -> SendResult:
        """Send messages of one topic to the given queue in one request, without a retry."""
        return self._run(self._producer.send_batch_to(messages, queue, timeout_ms=timeout_ms))

    def send_batches(
        self, messages: Sequence[Message], *, timeout_ms: int | None = None
    ) -> list[SendResult]:
        """Send any number of messages of one topic, split into batches by size."""
        return self._run(self._producer.send_batches(messages, timeout_ms=timeout_ms))

    def send_to(
        self, message: Message, queue: MessageQueue, *, timeout_ms: int | None = None
    ) -> SendResult:
        """Send to the given queue, without a retry."""
        return self._run(self._producer.send_to(message, queue, timeout_ms=timeout_ms))

    def send_selected(
        self,
        message: Message,
        selector: QueueSelector,
        argument: object,
        *,
        timeout_ms: int | None = None,
    ) -> SendResult:
        """Send to the queue chosen by a selector, without a retry."""
        send = self._producer.send_selected
        return self._run(send(message, selector, argument, timeout_ms=timeout_ms))

    def send_ordered(
        self, message: Message, sharding_key: str | int, *, timeout_ms: int | None = None
    ) -> SendResult:
        """Send to the queue of a sharding key."""
        send = self._producer.send_ordered
        return self._run(send(message, sharding_key, timeout_ms=timeout_ms))

    def send_oneway(self, message: Message) -> None:
        """Send without waiting for an answer."""
        self._run(self._producer.send_oneway(message))

    def request(
        self, message: Message, *, timeout_ms: int = asyncio_producer.REQUEST_TIMEOUT_MS
    ) -> MessageExt:
        """Send a message and wait for the reply of the consumer."""
        return self._run(self._producer.request(message, timeout_ms=timeout_ms))

    def reply(
        self, request: MessageExt, body: bytes, *, timeout_ms: int | None = None
    ) -> SendResult:
        """Reply to a request received by a consumer."""
        return self._run(self._producer.reply(request, body, timeout_ms=timeout_ms))

    async def _start(self) -> None:
        await self._producer.start()

    async def _stop(self) -> None:
        await self._producer.stop()


class TransactionProducer(Producer):
    """`core_broker.client.TransactionProducer` for threads; takes the same options.

    `execute` and `check` are plain functions, each called on a thread.
    """

    async def _make(
        self, group: str, namesrv_addr: str, options: dict[str, Any]
    ) -> asyncio_producer.Producer:
        self._transactions = transactions.TransactionProducer(group, namesrv_addr, **options)
        return self._transactions

    def send_in_transaction(
        self, message: Message, arg: Any = None, *, timeout_ms: int | None = None
    ) -> transactions.TransactionSendResult:
        """Send a half message, run the local transaction, and send the state to the broker."""
        send = self._transactions.send_in_transaction
        return self._run(send(message, arg, timeout_ms=timeout_ms))
