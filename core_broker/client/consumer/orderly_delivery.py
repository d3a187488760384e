"""From pulled messages to the listener, one queue's messages one after the other.

Each queue has one flow: a task that gives the listener the oldest messages, and goes on only when
they are consumed. In a clustering group it does so only while it holds the queue's lock.
Compatible with RocketMQ's ConsumeMessageOrderlyService.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from core_broker.client.consumer.delivery import GiveBack
from core_broker.client.consumer.listening import AnyListener, ListenerCalls, Verdict
from core_broker.client.consumer.offset_stores import OffsetStore
from core_broker.client.consumer.process_queue import ProcessQueue
from core_broker.client.consumer.stats import ConsumerStats
from core_broker.client.hooks import HookChain
from core_broker.client.identity import now_ms
from core_broker.client.settings import ConsumerSettings
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import MessageQueue

log = logging.getLogger(__name__)

#: How long a queue that moves on waits for the call that runs, before it tries again later.
LET_GO_WAIT_S: Final = 1.0
UNLOCKED_PAUSE_S: Final = 0.1
SUSPEND_MS_MIN: Final = 10
SUSPEND_MS_MAX: Final = 30_000
#: What maxReconsumeTimes -1 means when order matters: a message never passes by.
ENDLESS_RETRIES: Final = 2**31 - 1


class _Flow:
    """The task of one queue; it may be cancelled whenever it is not calling."""

    def __init__(self, process_queue: ProcessQueue) -> None:
        self.process_queue = process_queue
        self.is_calling = False
        self.task: asyncio.Task[None]


class OrderlyDelivery:
    """Calls the listener of one consumer, in the order of each queue."""

    def __init__(
        self,
        group: str,
        listener: AnyListener,
        settings: ConsumerSettings,
        *,
        offsets: OffsetStore,
        to_dead_letters: GiveBack,
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
        tries = settings.max_reconsume_times
        self._retries_max = ENDLESS_RETRIES if tries < 0 else tries
        self._flows: dict[ProcessQueue, _Flow] = {}
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._draining = False

    def start(self) -> None:
        """Nothing to begin: a flow begins with the first messages of its queue."""

    async def stop(self) -> None:
        """Begin no more calls, wait for those that run, cancel those that do not end in time."""
        self._draining = True
        calling = []
        for flow in list(self._flows.values()):
            if flow.is_calling:
                calling.append(flow.task)
            else:
                flow.task.cancel()
        if calling:
            _, late = await asyncio.wait(calling, timeout=self._settings.drain_timeout_s)
            if late:
                log.warning("Consumer %s: %d listeners did not end in time", self._group, len(late))
        tasks = [flow.task for flow in self._flows.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def submit(self, process_queue: ProcessQueue, messages: Sequence[MessageExt]) -> None:
        """The process queue has the messages already; see that its flow runs."""
        if messages and process_queue not in self._flows and not self._draining:
            flow = _Flow(process_queue)
            name = f"consumer {self._group} {process_queue.queue}"
            flow.task = asyncio.create_task(self._run(flow), name=name)
            self._flows[process_queue] = flow
            flow.task.add_done_callback(lambda _: self._ended(flow))

    async def let_go(self, process_queue: ProcessQueue) -> bool:
        """Wait a moment for the call that runs; until it has ended nobody else may have the
        queue."""
        flow = self._flows.get(process_queue)
        if flow is None:
            return True
        if not flow.is_calling:
            flow.task.cancel()
        done, _ = await asyncio.wait([flow.task], timeout=LET_GO_WAIT_S)
        return bool(done)

    async def call(self, messages: list[MessageExt]) -> Verdict:
        """Call the listener for a tool, outside of any queue."""
        return await self._calls.call(messages)

    def _ended(self, flow: _Flow) -> None:
        if self._flows.get(flow.process_queue) is flow:
            del self._flows[flow.process_queue]

    async def _run(self, flow: _Flow) -> None:
        await self._follow(flow)
        # Without a turn of the loop in between, or messages that come in it would find no flow.
        self._ended(flow)

    async def _follow(self, flow: _Flow) -> None:
        process_queue = flow.process_queue
        while process_queue.count and not process_queue.dropped:
            pause_s = UNLOCKED_PAUSE_S
            async with self._slots:
                if self._may_consume(process_queue):
                    flow.is_calling = True
                    try:
                        pause_s = await self._consume(process_queue)
                    except Exception:
                        # The shell of the flow: its own slip must not stop the queue for good.
                        log.exception("Consuming from %s failed", process_queue.queue)
                        pause_s = self._settings.suspend_current_queue_ms / 1000
                    finally:
                        flow.is_calling = False
            if self._draining:
                return
            if pause_s:
                await asyncio.sleep(pause_s)

    def _may_consume(self, process_queue: ProcessQueue) -> bool:
        return not process_queue.dropped and not self._draining and self._holds(process_queue.queue)

    async def _consume(self, process_queue: ProcessQueue) -> float:
        """One call; the answer is how many seconds the queue has to pause."""
        messages = process_queue.first(self._settings.batch_max)
        verdict = await self._calls.consume(process_queue.queue, messages)
        if process_queue.dropped:
            # The group goes on at another offset, or with another member: this does not count.
            return 0.0
        done = messages if verdict.success else await self._given_up(messages)
        offset = process_queue.finish(done, now_ms())
        if offset is not None and not process_queue.dropped:
            self._offsets.update(process_queue.queue, offset)
        return 0.0 if len(done) == len(messages) else self._suspend_s(verdict)

    async def _given_up(self, messages: list[MessageExt]) -> list[MessageExt]:
        """The messages that were tried often enough and are dead letters now."""
        done: list[MessageExt] = []
        for message in messages:
            message.reconsume_times += 1
            is_last_try = message.reconsume_times > self._retries_max
            if is_last_try and await self._to_dead_letters(message):
                done.append(message)
        return done

    def _suspend_s(self, verdict: Verdict) -> float:
        wanted = (
            self._settings.suspend_current_queue_ms
            if verdict.suspend_ms is None
            else verdict.suspend_ms
        )
        return min(max(wanted, SUSPEND_MS_MIN), SUSPEND_MS_MAX) / 1000
