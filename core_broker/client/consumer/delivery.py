"""Concurrent delivery: pulled messages to the listener, consumed messages to the offset store.

Compatible with RocketMQ's ConsumeMessageConcurrentlyService. Listener calls run concurrently; a
queue's offset is the offset of the oldest unfinished message.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from core_broker.client.consumer.listening import AnyListener, ListenerCalls, ListenerOutcome
from core_broker.client.consumer.offset_stores import OffsetStore
from core_broker.client.consumer.process_queue import ProcessQueue
from core_broker.client.consumer.settings import ConsumerSettings
from core_broker.client.consumer.stats import ConsumerStats
from core_broker.client.hooks import HookChain
from core_broker.client.identity import now_ms
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import MessageModel

log = logging.getLogger(__name__)

#: Maximum batches queued for the listener; pulling waits while the queue is full.
BATCHES_QUEUED_MAX: Final = 10_000
#: Delay before a retry in the client, s, for failed messages not stored by any broker.
LOCAL_RETRY_DELAY_S: Final = 5.0


class SendMessageBack(Protocol):
    """Send a failed message back to the cluster; False when no broker stored the message."""

    async def __call__(self, message: MessageExt, delay_level: int = 0, /) -> bool: ...


class Destination(Protocol):
    """The receiver of pulled messages: concurrent delivery, orderly delivery, or ``poll``."""

    async def submit(self, process_queue: ProcessQueue, messages: Sequence[MessageExt]) -> None:
        """Queue messages for consuming; waits while too many messages are queued."""

    async def release(self, process_queue: ProcessQueue) -> bool:
        """Stop consuming from a queue before the queue moves to another member. False when an
        orderly listener call is still running after a short wait: the queue must stay locked."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages of one queue for one call of the listener."""

    process_queue: ProcessQueue
    messages: list[MessageExt]


class Delivery:
    """Workers that call the listener of one consumer."""

    def __init__(
        self,
        group: str,
        listener: AnyListener,
        settings: ConsumerSettings,
        *,
        offsets: OffsetStore,
        send_back: SendMessageBack,
        hooks: HookChain,
        stats: Callable[[str], ConsumerStats],
    ) -> None:
        self._group = group
        self._calls = ListenerCalls(group, listener, settings.consume_timeout_ms, hooks, stats)
        self._settings = settings
        self._offsets = offsets
        self._send_back = send_back
        self._batches: asyncio.Queue[Batch] = asyncio.Queue(BATCHES_QUEUED_MAX)
        self._workers: list[asyncio.Task[None]] = []
        self._retry_timers: set[asyncio.TimerHandle] = set()
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
        """Begin no further calls, wait for running calls, cancel them after the drain timeout."""
        self._draining = True
        for timer in self._retry_timers:
            timer.cancel()
        try:
            async with asyncio.timeout(self._settings.drain_timeout_s):
                await self._idle.wait()
        except TimeoutError:
            log.warning(
                "Consumer %s: %d listener calls were cancelled after drain_timeout_s",
                self._group,
                self._busy,
            )
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    async def submit(self, process_queue: ProcessQueue, messages: Sequence[MessageExt]) -> None:
        """Queue messages for the listener; waits while BATCHES_QUEUED_MAX batches are queued."""
        size = self._settings.batch_max
        for start in range(0, len(messages), size):
            batch = Batch(process_queue, list(messages[start : start + size]))
            await self._batches.put(batch)

    async def release(self, process_queue: ProcessQueue) -> bool:
        """Running calls continue, and their outcome is ignored: delivery is unordered."""
        return True

    async def call(self, messages: list[MessageExt]) -> ListenerOutcome:
        """Call the listener for a direct consumption (309), independent of queues."""
        return await self._calls.call(messages)

    async def _work(self) -> None:
        while True:
            batch = await self._batches.get()
            if batch.process_queue.dropped or self._draining:
                continue
            self._busy += 1
            self._idle.clear()
            try:
                await self._consume(batch)
            except Exception:
                # The boundary of the worker task: a bug must not stop all consuming.
                log.exception("Consuming from %s failed", batch.process_queue.queue)
            finally:
                self._busy -= 1
                if not self._busy:
                    self._idle.set()

    async def _consume(self, batch: Batch) -> None:
        queue = batch.process_queue.queue
        outcome = await self._calls.consume(queue, batch.messages)
        if batch.process_queue.dropped:
            # The queue moved to another member; the new owner consumes the messages again.
            return
        done = batch.messages if outcome.success else await self._send_back_failed(batch, outcome)
        offset = batch.process_queue.finish(done, now_ms())
        if offset is not None and not batch.process_queue.dropped:
            self._offsets.update(queue, offset)

    async def _send_back_failed(self, batch: Batch, outcome: ListenerOutcome) -> list[MessageExt]:
        """Send failed messages back; returns the messages stored by a broker. The remaining
        messages are retried in the client."""
        if self._settings.model is MessageModel.BROADCASTING:
            ids = ", ".join(message.msg_id for message in batch.messages)
            log.warning("Broadcast messages are not retried: %s skipped %s", self._group, ids)
            return batch.messages
        level = outcome.delay_level
        outcomes = await asyncio.gather(*(self._send_back(m, level) for m in batch.messages))
        stored, unstored = [], []
        for message, is_stored in zip(batch.messages, outcomes, strict=True):
            if is_stored:
                stored.append(message)
            else:
                message.reconsume_times += 1
                unstored.append(message)
        if unstored:
            self._retry_locally(replace(batch, messages=unstored))
        return stored

    def _retry_locally(self, batch: Batch) -> None:
        """Queue a batch again after a delay; the cache limits of process queues bound the number
        of delayed batches."""

        def requeue() -> None:
            self._retry_timers.discard(timer)
            try:
                self._batches.put_nowait(batch)
            except asyncio.QueueFull:
                self._retry_locally(batch)

        timer = asyncio.get_running_loop().call_later(LOCAL_RETRY_DELAY_S, requeue)
        self._retry_timers.add(timer)
