"""Producer and consumer for browser tests, in a thread with a separate event loop."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from core_broker.client import ConsumerSettings, ConsumeStatus, Producer, PushConsumer
from core_broker.message.model import Message, MessageExt
from core_broker.remoting.bodies import ConsumeFromWhere
from trace.hooks import TraceHook

T = TypeVar("T")

RETRIES_MAX = 1
CALL_TIMEOUT_S = 30


class Traffic:
    """A producer, and a consumer that rejects all messages until `accepting` is set."""

    def __init__(self, namesrv_addr: str, topic: str, group: str) -> None:
        self.topic, self.group = topic, group
        self.accepting = threading.Event()
        self.refused: list[str] = []
        self.accepted: list[MessageExt] = []
        self._namesrv_addr = namesrv_addr
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "Traffic":
        self._thread.start()
        self._call(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_TIMEOUT_S)
        self._loop.close()

    def send(self, body: bytes, key: str) -> str:
        """Send a message; returns the message id."""
        message = Message(self.topic, body, tags="test", keys=(key,))
        return self._call(self._producer.send(message)).msg_id

    async def _start(self) -> None:
        self._producer = Producer(f"{self.group}-producer", self._namesrv_addr, [TraceHook()])
        await self._producer.start()
        # The topic must exist before the consumer requests the route.
        await self._producer.send(Message(self.topic, b"first", keys=("first",)))
        settings = ConsumerSettings(
            max_reconsume_times=RETRIES_MAX,
            consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        self._consumer = PushConsumer(
            self.group, self._namesrv_addr, [TraceHook()], settings=settings
        )
        self._consumer.subscribe(self.topic)
        self._consumer.listener(self._consume)
        await self._consumer.start()

    async def _stop(self) -> None:
        await self._consumer.stop()
        await self._producer.stop()

    async def _consume(self, messages: list[MessageExt]) -> ConsumeStatus:
        if not self.accepting.is_set():
            self.refused += [each.msg_id for each in messages]
            return ConsumeStatus.RECONSUME_LATER
        self.accepted += messages
        return ConsumeStatus.CONSUME_SUCCESS

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        done: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result(CALL_TIMEOUT_S)
