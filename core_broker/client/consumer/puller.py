"""The pull loop of one queue: ask, hand over, ask again, and pause when there is too much.

Compatible with RocketMQ's DefaultMQPushConsumerImpl.pullMessage and its pauses.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from core_broker.client.consumer.delivery import Destination
from core_broker.client.consumer.listening import for_listener
from core_broker.client.consumer.offset_stores import OffsetStore
from core_broker.client.consumer.process_queue import Hold, ProcessQueue
from core_broker.client.consumer.stats import ConsumerStats
from core_broker.client.identity import now_ms
from core_broker.client.instance import ClientInstance
from core_broker.client.pulling import Pull, decode_pull, read_raw_pull
from core_broker.client.results import PullResult, PullStatus
from core_broker.client.settings import GroupSettings
from core_broker.errors import GantryError, RequestRefused, TransportError
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import MASTER_ID, MessageModel, MessageQueue, SubscriptionData
from core_broker.remoting.codes import ResponseCode

log = logging.getLogger(__name__)

#: How long the broker may hold a pull that finds nothing.
SUSPEND_MS: Final = 15_000
PULL_TIMEOUT_MS: Final = 30_000
PAUSE_AFTER_ERROR_S: Final = 1.0
PAUSE_WHEN_FULL_S: Final = 0.05
PAUSE_WHEN_TOLD_S: Final = 0.02

_UNANNOUNCED: Final = frozenset(
    {ResponseCode.SUBSCRIPTION_NOT_EXIST, ResponseCode.SUBSCRIPTION_NOT_LATEST}
)


@dataclass(frozen=True, slots=True)
class PullContext:
    """What all queues of one consumer share."""

    instance: ClientInstance
    group: str
    settings: GroupSettings
    #: By topic; the application may change them while the consumer runs.
    subscriptions: Mapping[str, SubscriptionData]
    offsets: OffsetStore
    delivery: Destination
    stats: Callable[[str], ConsumerStats]
    #: A broker does not know our subscription: send a heartbeat soon.
    announce: Callable[[], None]
    #: The offset is outside of the queue: drop it and begin at another one.
    moved: Callable[[ProcessQueue, int], None]
    #: Nothing before this offset is unfinished: what was filtered out counts as consumed.
    passed: Callable[[MessageQueue, int], None]
    is_paused: Callable[[MessageQueue], bool] = lambda _: False
    #: A consumer that the application polls: it tells its subscription with every pull.
    lite: bool = False
    namespace: str = ""


class Puller:
    """Runs as one task until it is cancelled or its process queue is dropped."""

    def __init__(self, context: PullContext, process_queue: ProcessQueue, offset: int) -> None:
        self.process_queue = process_queue
        self._context = context
        self._queue = process_queue.queue
        self._offset = offset
        self._broker_id = MASTER_ID
        self._last_hold: Hold | None = None
        self._last_failure = ""
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"pull {self._queue}")

    def stop(self) -> None:
        """Pull no more; the task ends in the next turn."""
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
                # The shell of this task: one strange answer must not end the queue's consuming.
                log.exception("Pulling from %s failed", self._queue)
                pause_s = PAUSE_AFTER_ERROR_S
            if pause_s:
                await asyncio.sleep(pause_s)

    async def _step(self) -> float:
        """One pull; the answer is how many seconds to wait before the next."""
        if self._is_held():
            return PAUSE_WHEN_FULL_S
        started_ms = now_ms()
        self.process_queue.last_pull_ms = started_ms
        try:
            result = await self._pull()
        except RequestRefused as refused:
            return self._refused(refused)
        except GantryError as error:
            if isinstance(error, TransportError):
                self._context.instance.routes.mark_stale(self._queue.topic)
            self._report(str(error))
            return PAUSE_AFTER_ERROR_S
        self._last_failure = ""
        self._broker_id = result.suggested_broker_id
        if not self.process_queue.dropped:
            await self._take(result, now_ms() - started_ms)
        return 0.0

    async def _pull(self) -> PullResult:
        context = self._context
        subscription = context.subscriptions[self._queue.topic]
        clustering = context.settings.model is MessageModel.CLUSTERING
        # The commit on the way is meant for the master.
        commits = clustering and not context.lite and self._broker_id == MASTER_ID
        committed = context.offsets.remembered(self._queue) if commits else None
        pull = Pull(
            queue=self._queue,
            group=context.group,
            offset=self._offset,
            count=context.settings.pull_count,
            subscription=subscription.sub_string if context.lite else None,
            sub_version=subscription.sub_version,
            expression_type=subscription.expression_type,
            commit_offset=committed or 0,
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
                "The offset %d of %s is outside of %d to %d, going on at %d",
                self._offset,
                self._queue,
                result.min_offset,
                result.max_offset,
                result.next_offset,
            )
            self._context.moved(self.process_queue, result.next_offset)
            return
        self._offset = result.next_offset
        fresh = self.process_queue.put(result.messages, result.next_offset)
        if fresh:
            self._context.stats(self._queue.topic).pulled(now_ms(), len(fresh), elapsed_ms)
            await self._context.delivery.submit(self.process_queue, self._shown(fresh))
        elif not self.process_queue.count:
            # Nothing here is ours: let the committed offset keep up with what was filtered out.
            self._context.passed(self._queue, result.next_offset)

    def _shown(self, messages: Sequence[MessageExt]) -> list[MessageExt]:
        group, namespace = self._context.group, self._context.namespace
        return [for_listener(message, group, namespace) for message in messages]

    def _refused(self, refused: RequestRefused) -> float:
        if refused.code == ResponseCode.FLOW_CONTROL:
            return PAUSE_WHEN_TOLD_S
        if refused.code in _UNANNOUNCED:
            self._context.announce()
        elif refused.route_stale:
            self._context.instance.routes.mark_stale(self._queue.topic)
        self._report(str(refused))
        return PAUSE_AFTER_ERROR_S

    def _is_held(self) -> bool:
        if self._context.is_paused(self._queue) or self._is_unsubscribed:
            return True
        hold = self.process_queue.hold(self._context.settings.cache)
        if hold is not self._last_hold and hold is not None:
            log.warning("Pulling from %s pauses: %s", self._queue, hold)
        self._last_hold = hold
        return hold is not None

    @property
    def _is_unsubscribed(self) -> bool:
        """The next rebalance gives the queue up."""
        return self._queue.topic not in self._context.subscriptions

    def _report(self, failure: str) -> None:
        if failure != self._last_failure:
            log.warning("Pulling from %s: %s", self._queue, failure)
        self._last_failure = failure
