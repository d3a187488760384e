"""Rebalancing: start pulling from newly allocated queues, and release queues of other members.

Compatible with RocketMQ's RebalanceImpl and RebalancePushImpl. Every member computes an equal
allocation from equal lists. The offset of a released queue is committed first: the new owner
continues at the committed offset. With orderly consuming a queue is locked before the first pull
and released after the last listener call, so a queue never has two owners.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from core_broker.client.consumer.process_queue import ProcessQueue
from core_broker.client.consumer.puller import PullContext, Puller
from core_broker.client.consumer.queue_locks import QueueLocks
from core_broker.client.identity import now_ms
from core_broker.errors import GantryError
from core_broker.remoting.bodies import MessageQueue

log = logging.getLogger(__name__)

#: Pause before the next rebalance, s, after an incomplete rebalance or an illegal offset.
PAUSE_WHEN_INCOMPLETE_S: Final = 1.0


class Rebalancer:
    """Owns the process queues and pullers of one consumer."""

    def __init__(
        self,
        context: PullContext,
        *,
        topics: Callable[[], Iterable[str]],
        allocated: Callable[[str], Awaitable[list[MessageQueue]]],
        start_offset: Callable[[MessageQueue], Awaitable[int]],
        locks: QueueLocks | None = None,
    ) -> None:
        self._context = context
        self._topics = topics
        self._allocated = allocated
        self._start_offset = start_offset
        self._locks = locks
        self._incomplete_runs = 0
        self._pullers: dict[MessageQueue, Puller] = {}
        self._resets: set[MessageQueue] = set()
        self._seeks: dict[MessageQueue, int] = {}
        self._abandoned: set[MessageQueue] = set()

    @property
    def process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        return {queue: puller.process_queue for queue, puller in self._pullers.items()}

    def reset(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Reset the group's offsets of allocated queues; the next rebalance restarts the queues."""
        for queue, offset in offsets.items():
            if queue in self._pullers:
                self._drop(queue)
                self._resets.add(queue)
                # A running rebalance may release the queue, and must commit the new offset.
                self._context.offsets.update(queue, offset, force=True)

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue at an offset in the member only; the committed offset stays unchanged."""
        if queue in self._pullers:
            self._drop(queue)
            self._abandoned.add(queue)
        self._seeks[queue] = offset

    def drop_lost(self, queues: Iterable[MessageQueue]) -> None:
        """Drop queues with lost locks, without commits: another member may hold the locks."""
        for queue in queues:
            if queue in self._pullers:
                log.warning("Consumer %s lost its lock on %s", self._context.group, queue)
                self._drop(queue)
                self._abandoned.add(queue)

    def _drop(self, queue: MessageQueue) -> None:
        """Stop pulling now; outcomes of running listener calls are ignored."""
        puller = self._pullers[queue]
        puller.process_queue.dropped = True
        puller.stop()

    async def run_once(self) -> float | None:
        """Rebalance all topics once. Returns the pause before the next rebalance in seconds after
        an incomplete rebalance, else None."""
        complete = await self._apply_resets()
        topics = set(self._topics())
        unsubscribed = {queue for queue in self._pullers if queue.topic not in topics}
        complete &= await self._drop_and_release(unsubscribed)
        for topic in sorted(topics):
            try:
                complete &= await self._rebalance(topic)
            except GantryError as error:
                complete = False
                log.info("Consumer %s, topic %s: %s", self._context.group, topic, error)
        self._incomplete_runs = 0 if complete else self._incomplete_runs + 1
        if complete:
            return None
        pause_s: float = PAUSE_WHEN_INCOMPLETE_S * 2 ** min(self._incomplete_runs - 1, 16)
        return min(pause_s, self._context.settings.rebalance_interval_s)

    async def stop_pulling(self) -> None:
        """Stop all pullers. Process queues stay, so running listeners can finish messages."""
        for puller in self._pullers.values():
            puller.stop()
        await asyncio.gather(*(puller.ended() for puller in self._pullers.values()))

    async def persist(self) -> None:
        """Commit the consumed offsets; with orderly consuming only for locked queues."""
        owned = [queue for queue in self._pullers if self._is_owned(queue)]
        await self._context.offsets.persist(owned)

    async def unlock_all(self) -> None:
        if self._locks:
            await self._locks.unlock(self._locks.all)

    def _is_owned(self, queue: MessageQueue) -> bool:
        return self._locks is None or self._locks.holds(queue)

    async def _apply_resets(self) -> bool:
        resets, self._resets = self._resets, set()
        abandoned, self._abandoned = self._abandoned, set()
        for queue in abandoned - resets:
            self._context.offsets.forget(queue)
        return await self._release((resets | abandoned) & set(self._pullers))

    async def _rebalance(self, topic: str) -> bool:
        allocated = set(await self._allocated(topic))
        current = {queue for queue in self._pullers if queue.topic == topic}
        stopped = {queue for queue in current if not self._pullers[queue].is_running}
        released = (current - allocated) | stopped
        complete = await self._drop_and_release(released)
        # A queue with a reset since the last _apply_resets starts in the next rebalance.
        new = sorted(allocated - set(self._pullers) - self._resets)
        failure: GantryError | None = None
        for queue in new:
            try:
                complete &= await self._begin(queue)
            except GantryError as error:
                # An unreachable broker must not delay the queues on reachable brokers.
                failure = error
        if released or new:
            log.info(
                "Consumer %s has %d queues of %s (%d new, %d released)",
                self._context.group,
                len(allocated),
                topic,
                len(new),
                len(released),
            )
        if failure:
            raise failure
        return complete

    async def _begin(self, queue: MessageQueue) -> bool:
        """Start pulling; False while another member holds the queue's lock."""
        if self._locks and not await self._locks.lock(queue):
            return False
        # Read the offset after locking: the previous owner commits before unlocking.
        offset = self._seeks.pop(queue, None)
        if offset is None:
            offset = self._seeks.pop(queue, await self._start_offset(queue))
        puller = Puller(self._context, ProcessQueue(queue, now_ms()), offset)
        self._pullers[queue] = puller
        puller.start()
        return True

    async def _drop_and_release(self, queues: Iterable[MessageQueue]) -> bool:
        queues = set(queues)
        for queue in queues:
            self._drop(queue)
        return await self._release(queues)

    async def _release(self, queues: Iterable[MessageQueue]) -> bool:
        """Commit, remove and unlock dropped queues. Returns False when an orderly listener call is
        still running: the queue stays in the table, locked, until the end of the call."""
        queues = list(queues)
        outcomes = await asyncio.gather(
            *(
                self._context.delivery.release(self._pullers[queue].process_queue)
                for queue in queues
            )
        )
        released = [queue for queue, is_done in zip(queues, outcomes, strict=True) if is_done]
        await self._context.offsets.persist([it for it in released if self._is_owned(it)])
        for queue in released:
            self._context.offsets.forget(queue)
            self._pullers.pop(queue, None)
        if self._locks:
            await self._locks.unlock(released)
        return len(released) == len(queues)
