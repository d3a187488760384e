"""Orderly delivery: the messages of a queue go to the listener sequentially.

Each queue has one task: the task calls the listener with the oldest messages, and continues after
the messages are consumed. In a clustering group the task needs the queue's lock. Compatible with
RocketMQ's ConsumeMessageOrderlyService.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from core_broker.client.consumer.delivery import SendMessageBack
from core_broker.client.consumer.listening import AnyListener, ListenerCalls, ListenerOutcome
from core_broker.client.consumer.offset_stores import OffsetStore
from core_broker.client.consumer.process_queue import ProcessQueue
from core_broker.client.consumer.settings import ConsumerSettings
from core_broker.client.consumer.stats import ConsumerStats
from core_broker.client.hooks import HookChain
from core_broker.client.identity import now_ms
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import MessageQueue

log = logging.getLogger(__name__)

#: Wait for a running listener call at the release of a queue, s; then the release is retried later.
RELEASE_WAIT_S: Final = 1.0
UNLOCKED_PAUSE_S: Final = 0.1
SUSPEND_MS_MIN: Final = 10
SUSPEND_MS_MAX: Final = 30_000
#: Retries for maxReconsumeTimes -1: an orderly listener never skips a message.
RETRIES_UNLIMITED: Final = 2**31 - 1


class _QueueTask:
    """The task of one queue; may be cancelled unless ``is_calling``."""

    def __init__(self, process_queue: ProcessQueue) -> None:
        self.process_queue = process_queue
        self.is_calling = False
        self.task: asyncio.Task[None]


class OrderlyDelivery:
    """Calls the listener of one consumer, in offset order within each queue."""

    def __init__(
        self,
        group: str,
        listener: AnyListener,
        settings: ConsumerSettings,
        *,
        offsets: OffsetStore,
        to_dead_letters: SendMessageBack,
        hooks: HookChain,
        stats: Callable[[str], ConsumerStats],
        holds: Callable[[MessageQueue], bool],
    ) -> None:
        self._group = group
        self._calls = ListenerCalls(group, listener, settings.consume_timeout_ms, hooks, stats)
        self._settings = settings
        self._offsets = offsets
        self._to_dead_letters: Callable[[MessageExt], Awaitable[bool]] = to_dead_letters
        self._holds = holds
        retries = settings.max_reconsume_times
        self._retries_max = RETRIES_UNLIMITED if retries < 0 else retries
        self._queue_tasks: dict[ProcessQueue, _QueueTask] = {}
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._draining = False

    def start(self) -> None:
        """Do nothing: the task of a queue starts with the first messages of the queue."""

    async def stop(self) -> None:
        """Begin no further calls, wait for running calls, cancel them after the drain timeout."""
        self._draining = True
        calling = []
        for queue_task in list(self._queue_tasks.values()):
            if queue_task.is_calling:
                calling.append(queue_task.task)
            else:
                queue_task.task.cancel()
        if calling:
            _, late = await asyncio.wait(calling, timeout=self._settings.drain_timeout_s)
            if late:
                log.warning(
                    "Consumer %s: %d listener calls were cancelled after drain_timeout_s",
                    self._group,
                    len(late),
                )
        tasks = [queue_task.task for queue_task in self._queue_tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def submit(self, process_queue: ProcessQueue, messages: Sequence[MessageExt]) -> None:
        """Start the task of the queue; the process queue already contains the messages."""
        if messages and process_queue not in self._queue_tasks and not self._draining:
            queue_task = _QueueTask(process_queue)
            name = f"consumer {self._group} {process_queue.queue}"
            queue_task.task = asyncio.create_task(self._run(queue_task), name=name)
            self._queue_tasks[process_queue] = queue_task
            queue_task.task.add_done_callback(lambda _: self._remove(queue_task))

    async def release(self, process_queue: ProcessQueue) -> bool:
        """Wait RELEASE_WAIT_S for a running listener call; False while the call is running: the
        queue must not move to another member."""
        queue_task = self._queue_tasks.get(process_queue)
        if queue_task is None:
            return True
        if not queue_task.is_calling:
            queue_task.task.cancel()
        done, _ = await asyncio.wait([queue_task.task], timeout=RELEASE_WAIT_S)
        return bool(done)

    async def call(self, messages: list[MessageExt]) -> ListenerOutcome:
        """Call the listener for a direct consumption (309), independent of queues."""
        return await self._calls.call(messages)

    def _remove(self, queue_task: _QueueTask) -> None:
        if self._queue_tasks.get(queue_task.process_queue) is queue_task:
            del self._queue_tasks[queue_task.process_queue]

    async def _run(self, queue_task: _QueueTask) -> None:
        await self._consume_all(queue_task)
        # Remove the task in the same event-loop iteration: ``submit`` would not start a new task
        # for messages arriving before the done callback.
        self._remove(queue_task)

    async def _consume_all(self, queue_task: _QueueTask) -> None:
        process_queue = queue_task.process_queue
        while process_queue.count and not process_queue.dropped:
            pause_s = UNLOCKED_PAUSE_S
            async with self._slots:
                if self._may_consume(process_queue):
                    queue_task.is_calling = True
                    try:
                        pause_s = await self._consume(process_queue)
                    except Exception:
                        # The boundary of the task: a bug must not stop the queue for good.
                        log.exception("Consuming from %s failed", process_queue.queue)
                        pause_s = self._settings.suspend_current_queue_ms / 1000
                    finally:
                        queue_task.is_calling = False
            if self._draining:
                return
            if pause_s:
                await asyncio.sleep(pause_s)

    def _may_consume(self, process_queue: ProcessQueue) -> bool:
        return not process_queue.dropped and not self._draining and self._holds(process_queue.queue)

    async def _consume(self, process_queue: ProcessQueue) -> float:
        """Call the listener once; returns the pause of the queue in seconds."""
        messages = process_queue.first(self._settings.batch_max)
        outcome = await self._calls.consume(process_queue.queue, messages)
        if process_queue.dropped:
            # The offset was reset, or the queue moved to another member: ignore the outcome.
            return 0.0
        done = messages if outcome.success else await self._dead_lettered(messages)
        offset = process_queue.finish(done, now_ms())
        if offset is not None and not process_queue.dropped:
            self._offsets.update(process_queue.queue, offset)
        return 0.0 if len(done) == len(messages) else self._suspend_s(outcome)

    async def _dead_lettered(self, messages: list[MessageExt]) -> list[MessageExt]:
        """Count a retry of each message; move messages without retries left to the dead-letter
        queue, and return the moved messages."""
        done: list[MessageExt] = []
        for message in messages:
            message.reconsume_times += 1
            is_last_try = message.reconsume_times > self._retries_max
            if is_last_try and await self._to_dead_letters(message):
                done.append(message)
        return done

    def _suspend_s(self, outcome: ListenerOutcome) -> float:
        suspend_ms = (
            self._settings.suspend_current_queue_ms
            if outcome.suspend_ms is None
            else outcome.suspend_ms
        )
        return min(max(suspend_ms, SUSPEND_MS_MIN), SUSPEND_MS_MAX) / 1000
