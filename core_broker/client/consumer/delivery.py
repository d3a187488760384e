"""From pulled messages to the listener and back to offsets.

Compatible with RocketMQ's ConsumeMessageConcurrentlyService. Calls of the listener run beside each
other; a queue's offset follows its slowest message.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from core_broker.client.consumer.listening import AnyListener, ListenerCalls, Verdict
from core_broker.client.consumer.offset_stores import OffsetStore
from core_broker.client.consumer.process_queue import ProcessQueue
from core_broker.client.consumer.stats import ConsumerStats
from core_broker.client.hooks import HookChain
from core_broker.client.identity import now_ms
from core_broker.client.settings import ConsumerSettings
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import MessageModel

log = logging.getLogger(__name__)

#: Batches that wait for a free call of the listener; pulling pauses when there are more.
BATCHES_WAITING_MAX: Final = 10_000
#: When no broker took a failed message back, the client consumes it again after this time.
LOCAL_RETRY_DELAY_S: Final = 5.0


class GiveBack(Protocol):
    """Return a message that was not consumed; False when nobody took it."""

    async def __call__(self, message: MessageExt, delay_level: int = 0, /) -> bool: ...


class Destination(Protocol):
    """Where pulled messages go: to a listener beside each other or in order, or to ``poll``."""

    async def submit(self, process_queue: ProcessQueue, messages: Sequence[MessageExt]) -> None:
        """Take messages over; waits while too many are waiting already."""

    async def let_go(self, process_queue: ProcessQueue) -> bool:
        """The queue moves on. True when nobody works on its messages in order any more, so that
        another member may have it; False when a call has not ended in a moment."""


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
        give_back: GiveBack,
        hooks: HookChain,
        stats: Callable[[str], ConsumerStats],
    ) -> None:
        self._group = group
        self._calls = ListenerCalls(group, listener, settings.consume_timeout_ms, hooks, stats)
        self._settings = settings
        self._offsets = offsets
        self._give_back = give_back
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

    async def let_go(self, process_queue: ProcessQueue) -> bool:
        """Calls that run go on, but they no longer count: order was never promised."""
        return True

    async def call(self, messages: list[MessageExt]) -> Verdict:
        """Call the listener for a tool, outside of any queue."""
        return await self._calls.call(messages)

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
        queue = batch.process_queue.queue
        verdict = await self._calls.consume(queue, batch.messages)
        if batch.process_queue.dropped:
            # Another member has the queue by now and will see these messages too.
            return
        done = batch.messages if verdict.success else await self._not_consumed(batch, verdict)
        offset = batch.process_queue.finish(done, now_ms())
        if offset is not None and not batch.process_queue.dropped:
            self._offsets.update(queue, offset)

    async def _not_consumed(self, batch: Batch, verdict: Verdict) -> list[MessageExt]:
        """Give messages back; the answer is those that this client is done with."""
        if self._settings.model is MessageModel.BROADCASTING:
            ids = ", ".join(message.msg_id for message in batch.messages)
            log.warning("Broadcast messages are not retried: %s gave up %s", self._group, ids)
            return batch.messages
        level = verdict.delay_level
        taken = await asyncio.gather(*(self._give_back(m, level) for m in batch.messages))
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
