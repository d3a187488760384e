"""From pulled messages to the listener and back to offsets.

Compatible with RocketMQ's ConsumeMessageConcurrentlyService. Calls of the listener run beside each
other; a queue's offset follows its slowest message.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from core_broker.client.consumer.offset_stores import OffsetStore
from core_broker.client.consumer.process_queue import ProcessQueue
from core_broker.client.consumer.stats import ConsumerStats
from core_broker.client.hooks import ConsumeContext, HookChain
from core_broker.client.identity import new_uniq_key, now_ms
from core_broker.client.results import ConsumeStatus
from core_broker.client.settings import ConsumerSettings
from core_broker.errors import ProtocolError
from core_broker.message import sysflag
from core_broker.message.model import MessageExt
from core_broker.message.properties import PROPERTY_RETRY_TOPIC
from core_broker.message.topics import retry_topic
from core_broker.remoting.bodies import MessageModel

log = logging.getLogger(__name__)

Listener = Callable[[list[MessageExt]], Awaitable[ConsumeStatus | None]]

GiveBack = Callable[[MessageExt], Awaitable[bool]]
"""Return a message that was not consumed; False when nobody took it."""

BATCHES_WAITING_MAX: Final = 10_000
"""Batches that wait for a free call of the listener; pulling pauses when there are more."""
LOCAL_RETRY_DELAY_S: Final = 5.0
"""When no broker took a failed message back, the client consumes it again after this time."""


class ReturnType(IntEnum):
    """RocketMQ's ConsumeReturnType."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    RETURN_NULL = 3
    FAILED = 4


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages of one queue for one call of the listener."""

    process_queue: ProcessQueue
    messages: list[MessageExt]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a call of the listener ended."""

    return_type: ReturnType
    elapsed_ms: int
    error: Exception | None = None


class Delivery:
    """Workers that call the listener of one consumer."""

    def __init__(
        self,
        group: str,
        listener: Listener,
        settings: ConsumerSettings,
        *,
        offsets: OffsetStore,
        give_back: GiveBack,
        hooks: HookChain,
        stats: Callable[[str], ConsumerStats],
    ) -> None:
        self._group = group
        self._listener = listener
        self._settings = settings
        self._offsets = offsets
        self._give_back = give_back
        self._hooks = hooks
        self._stats = stats
        self._waiting: asyncio.Queue[Batch] = asyncio.Queue(BATCHES_WAITING_MAX)
        self._workers: list[asyncio.Task[None]] = []
        self._later: set[asyncio.TimerHandle] = set()
        self._busy = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False

    def start(self) -> None:
        self._workers = [
            asyncio.create_task(self._work(), name=f"consumer {self._group} {number}")
            for number in range(self._settings.concurrency)
        ]

    async def stop(self) -> None:
        """Begin no more calls, wait for those that run, cancel those that do not end in time."""
        self._draining = True
        for timer in self._later:
            timer.cancel()
        try:
            async with asyncio.timeout(self._settings.drain_timeout_s):
                await self._idle.wait()
        except TimeoutError:
            log.warning("Consumer %s: %d listeners did not end in time", self._group, self._busy)
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    async def submit(self, process_queue: ProcessQueue, messages: Sequence[MessageExt]) -> None:
        """Queue messages up for the listener; waits while too many are waiting already."""
        size = self._settings.batch_max
        for start in range(0, len(messages), size):
            batch = Batch(process_queue, list(messages[start : start + size]))
            await self._waiting.put(batch)

    async def call(self, messages: list[MessageExt]) -> Verdict:
        """Call the listener, whatever it does."""
        started_ms = now_ms()
        error: Exception | None = None
        try:
            async with asyncio.timeout(self._settings.consume_timeout_ms / 1000) as limit:
                status = await self._listener(messages)
            kind = _RETURN_TYPES.get(status, ReturnType.RETURN_NULL)
        except Exception as failure:
            # The shell around the listener: whatever it raises means "not consumed".
            error = failure
            kind = ReturnType.TIME_OUT if limit.expired() else ReturnType.EXCEPTION
            ids = ", ".join(message.msg_id for message in messages)
            log.warning("The listener of %s failed for %s", self._group, ids, exc_info=failure)
        return Verdict(kind, now_ms() - started_ms, error)

    async def _work(self) -> None:
        while True:
            batch = await self._waiting.get()
            if batch.process_queue.dropped or self._draining:
                continue
            self._busy += 1
            self._idle.clear()
            try:
                await self._consume(batch)
            except Exception:
                # The shell of the worker: its own slip must not stop all consuming.
                log.exception("Consuming from %s failed", batch.process_queue.queue)
            finally:
                self._busy -= 1
                if not self._busy:
                    self._idle.set()

    async def _consume(self, batch: Batch) -> None:
        context = self._before(batch)
        verdict = await self.call(batch.messages)
        success = verdict.return_type is ReturnType.SUCCESS
        self._after(context, verdict)
        queue = batch.process_queue.queue
        self._stats(queue.topic).consumed(
            now_ms(), len(batch.messages), verdict.elapsed_ms, success=success
        )
        if batch.process_queue.dropped:
            # Another member has the queue by now and will see these messages too.
            return
        done = batch.messages if success else await self._not_consumed(batch)
        offset = batch.process_queue.finish(done, now_ms())
        if offset is not None and not batch.process_queue.dropped:
            self._offsets.update(queue, offset)

    async def _not_consumed(self, batch: Batch) -> list[MessageExt]:
        """Give messages back; the answer is those that this client is done with."""
        if self._settings.model is MessageModel.BROADCASTING:
            ids = ", ".join(message.msg_id for message in batch.messages)
            log.warning("Broadcast messages are not retried: %s gave up %s", self._group, ids)
            return batch.messages
        taken = await asyncio.gather(*map(self._give_back, batch.messages))
        left = []
        for message, was_taken in zip(batch.messages, taken, strict=True):
            if not was_taken:
                message.reconsume_times += 1
                left.append(message)
        if left:
            self._retry_here(replace(batch, messages=left))
        return [m for m, was_taken in zip(batch.messages, taken, strict=True) if was_taken]

    def _retry_here(self, batch: Batch) -> None:
        """At most as many as the process queues hold wait like this."""

        def again() -> None:
            self._later.discard(timer)
            try:
                self._waiting.put_nowait(batch)
            except asyncio.QueueFull:
                self._retry_here(batch)

        timer = asyncio.get_running_loop().call_later(LOCAL_RETRY_DELAY_S, again)
        self._later.add(timer)

    def _before(self, batch: Batch) -> ConsumeContext | None:
        if not self._hooks:
            return None
        queue = batch.process_queue.queue
        context = ConsumeContext(self._group, queue, batch.messages, new_uniq_key(), now_ms())
        self._hooks.before_consume(context)
        return context

    def _after(self, context: ConsumeContext | None, verdict: Verdict) -> None:
        if context is not None:
            context.cost_ms = verdict.elapsed_ms
            context.success = verdict.return_type is ReturnType.SUCCESS
            context.return_type = verdict.return_type
            self._hooks.after_consume(context)


_RETURN_TYPES: Final[dict[ConsumeStatus | None, ReturnType]] = {
    ConsumeStatus.CONSUME_SUCCESS: ReturnType.SUCCESS,
    ConsumeStatus.RECONSUME_LATER: ReturnType.FAILED,
    None: ReturnType.RETURN_NULL,
}


def for_listener(message: MessageExt, group: str) -> MessageExt:
    """Show a stored message as the application sent it: its own topic, its body unpacked.

    A body that does not unpack stays packed, and ``decompressed_body`` says why.
    """
    if message.topic == retry_topic(group):
        message.topic = message.properties.get(PROPERTY_RETRY_TOPIC, message.topic)
    if message.sys_flag & sysflag.COMPRESSED:
        try:
            message.body = message.decompressed_body()
        except ProtocolError as error:
            log.warning("The body of %s does not unpack: %s", message.msg_id, error)
        else:
            message.sys_flag &= ~(sysflag.COMPRESSED | sysflag.COMPRESSION_MASK)
    return message
