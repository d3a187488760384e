"""The pull loop of one queue: pull, submit to delivery, pause at cache limits and after errors.

Compatible with RocketMQ's DefaultMQPushConsumerImpl.pullMessage, including the pause times.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from core_broker.client.consumer.delivery import Destination
from core_broker.client.consumer.listening import for_listener
from core_broker.client.consumer.offset_stores import OffsetStore
from core_broker.client.consumer.process_queue import PauseReason, ProcessQueue
from core_broker.client.consumer.settings import GroupSettings
from core_broker.client.consumer.stats import ConsumerStats
from core_broker.client.failure_log import FailureLog
from core_broker.client.identity import now_ms
from core_broker.client.instance import ClientInstance
from core_broker.client.pulling import Pull, decode_pull, read_raw_pull
from core_broker.client.results import PullResult, PullStatus
from core_broker.errors import GantryError, RequestRefused
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import MASTER_ID, MessageModel, MessageQueue, SubscriptionData
from core_broker.remoting.codes import ResponseCode

log = logging.getLogger(__name__)

#: Maximum wait of a pull at the broker without new messages, ms.
SUSPEND_MS: Final = 15_000
PULL_TIMEOUT_MS: Final = 30_000
PAUSE_AFTER_ERROR_S: Final = 1.0
PAUSE_WHEN_FULL_S: Final = 0.05
PAUSE_AFTER_FLOW_CONTROL_S: Final = 0.02

#: Refusals of brokers without the current subscription of the group.
_SUBSCRIPTION_UNKNOWN: Final = frozenset(
    {ResponseCode.SUBSCRIPTION_NOT_EXIST, ResponseCode.SUBSCRIPTION_NOT_LATEST}
)


@dataclass(frozen=True, slots=True)
class PullContext:
    """The parts shared by the pullers of one consumer."""

    instance: ClientInstance
    group: str
    settings: GroupSettings
    #: Subscriptions by topic; the application may change the subscriptions of a running consumer.
    subscriptions: Mapping[str, SubscriptionData]
    offsets: OffsetStore
    delivery: Destination
    stats: Callable[[str], ConsumerStats]
    #: Sends heartbeats soon, for a broker without the current subscription.
    announce: Callable[[], None]
    #: Drops a process queue whose offset is outside of the queue, and restarts at a new offset.
    correct_offset: Callable[[ProcessQueue, int], None]
    #: Advances a queue's consumed offset past messages filtered out by the broker.
    advance_offset: Callable[[MessageQueue, int], None]
    is_paused: Callable[[MessageQueue], bool] = lambda _: False
    #: True for a lite pull consumer: every pull contains the subscription.
    lite: bool = False
    namespace: str = ""


class Puller:
    """The pull task of one queue; runs until cancelled, or until the process queue is dropped."""

    def __init__(self, context: PullContext, process_queue: ProcessQueue, offset: int) -> None:
        self.process_queue = process_queue
        self._context = context
        self._queue = process_queue.queue
        self._offset = offset
        self._broker_id = MASTER_ID
        self._last_pause_reason: PauseReason | None = None
        self._failures = FailureLog(log, f"Pulling from {self._queue}")
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"pull {self._queue}")

    def stop(self) -> None:
        """Cancel the pull task; the task ends in the next event-loop iteration."""
        if self._task is not None:
            self._task.cancel()

    async def ended(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while not self.process_queue.dropped:
            try:
                pause_s = await self._step()
            except Exception:
                # The boundary of the task: one malformed answer must not stop the queue.
                log.exception("Pulling from %s failed", self._queue)
                pause_s = PAUSE_AFTER_ERROR_S
            if pause_s:
                await asyncio.sleep(pause_s)

    async def _step(self) -> float:
        """Pull once; returns the pause before the next pull in seconds."""
        if self._must_pause():
            return PAUSE_WHEN_FULL_S
        started_ms = now_ms()
        self.process_queue.last_pull_ms = started_ms
        try:
            result = await self._pull()
        except GantryError as error:
            return await self._failed(error)
        self._failures.succeeded()
        self._broker_id = result.suggested_broker_id
        if not self.process_queue.dropped:
            await self._take(result, now_ms() - started_ms)
        return 0.0

    async def _pull(self) -> PullResult:
        context = self._context
        subscription = context.subscriptions[self._queue.topic]
        clustering = context.settings.model is MessageModel.CLUSTERING
        # A pull commits the offset only at the master.
        commits = clustering and not context.lite and self._broker_id == MASTER_ID
        commit_offset = context.offsets.cached(self._queue) if commits else None
        pull = Pull(
            queue=self._queue,
            group=context.group,
            offset=self._offset,
            count=context.settings.pull_count,
            subscription=subscription.sub_string if context.lite else None,
            sub_version=subscription.sub_version,
            expression_type=subscription.expression_type,
            commit_offset=commit_offset or 0,
            suspend_ms=SUSPEND_MS,
            lite=context.lite,
        )
        addr = context.instance.routes.addr(self._queue.broker_name, self._broker_id)
        answer = await context.instance.pull(addr, pull, PULL_TIMEOUT_MS)
        raw = read_raw_pull(answer, addr)
        return decode_pull(raw, self._queue.broker_name, subscription)

    async def _take(self, result: PullResult, elapsed_ms: int) -> None:
        if result.status is PullStatus.OFFSET_ILLEGAL:
            log.warning(
                "The offset %d of %s is outside of %d to %d; pulling continues at %d",
                self._offset,
                self._queue,
                result.min_offset,
                result.max_offset,
                result.next_offset,
            )
            self._context.correct_offset(self.process_queue, result.next_offset)
            return
        self._offset = result.next_offset
        messages = self.process_queue.put(result.messages, result.next_offset)
        if messages:
            self._context.stats(self._queue.topic).pulled(now_ms(), len(messages), elapsed_ms)
            await self._context.delivery.submit(self.process_queue, self._restored(messages))
        elif not self.process_queue.count:
            # All messages were filtered out and no message is unfinished: advance the offset.
            self._context.advance_offset(self._queue, result.next_offset)

    def _restored(self, messages: Sequence[MessageExt]) -> list[MessageExt]:
        group, namespace = self._context.group, self._context.namespace
        return [for_listener(message, group, namespace) for message in messages]

    async def _failed(self, error: GantryError) -> float:
        code = error.code if isinstance(error, RequestRefused) else None
        if code == ResponseCode.FLOW_CONTROL:
            return PAUSE_AFTER_FLOW_CONTROL_S
        if code in _SUBSCRIPTION_UNKNOWN:
            self._context.announce()
        self._failures.failed(str(error))
        routes, topic = self._context.instance.routes, self._queue.topic
        routes.note_failure(topic, error)
        with suppress(GantryError):
            await routes.route(topic)  # another replica may be the master now
        return PAUSE_AFTER_ERROR_S

    def _must_pause(self) -> bool:
        if self._context.is_paused(self._queue) or self._is_unsubscribed:
            return True
        reason = self.process_queue.pause_reason(self._context.settings.cache)
        if reason is not self._last_pause_reason and reason is not None:
            log.warning("Pulling from %s pauses: %s", self._queue, reason)
        self._last_pause_reason = reason
        return reason is not None

    @property
    def _is_unsubscribed(self) -> bool:
        """True without a subscription of the topic; the next rebalance releases the queue."""
        return self._queue.topic not in self._context.subscriptions
