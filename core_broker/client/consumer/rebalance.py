"""The queues this member of a group has, and starting and stopping their consuming.

Compatible with RocketMQ's RebalanceImpl and RebalancePushImpl. Every member computes the same
allocation from the same lists; a queue that moves on is committed first, so that its new owner goes
on where this one stopped. Where order matters, a queue is locked before it is read and given up
only when no listener works on it any more: there are never two owners at a time.
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

#: After a rebalance that could not ask everybody, or an offset that was outside of its queue.
PAUSE_WHEN_INCOMPLETE_S: Final = 1.0


class Rebalancer:
    """Owner of the table of process queues of one consumer."""

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
        """Have the group go on elsewhere in queues that are held; done by the next rebalance."""
        for queue, offset in offsets.items():
            if queue in self._pullers:
                self._drop(queue)
                self._resets.add(queue)
                # A rebalance under way may give the queue up: then this is what it commits.
                self._context.offsets.update(queue, offset, force=True)

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Have this member go on elsewhere; what the group has committed stays as it is."""
        if queue in self._pullers:
            self._drop(queue)
            self._abandoned.add(queue)
        self._seeks[queue] = offset

    def drop_lost(self, queues: Iterable[MessageQueue]) -> None:
        """Let go of queues whose locks somebody else may have; nothing of them is committed."""
        for queue in queues:
            if queue in self._pullers:
                log.warning("Consumer %s lost its lock on %s", self._context.group, queue)
                self._drop(queue)
                self._abandoned.add(queue)

    def _drop(self, queue: MessageQueue) -> None:
        """Let go at once: what is being consumed no longer counts."""
        puller = self._pullers[queue]
        puller.process_queue.dropped = True
        puller.stop()

    async def run_once(self) -> float | None:
        """Bring what is consumed in line with the group. When that was not possible everywhere,
        the answer is after how many seconds to try again."""
        complete = await self._apply_resets()
        topics = set(self._topics())
        unwanted = {queue for queue in self._pullers if queue.topic not in topics}
        complete &= await self._give_up(unwanted)
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
        """Pull no more. What was pulled stays, so that running listeners can still finish it."""
        for puller in self._pullers.values():
            puller.stop()
        await asyncio.gather(*(puller.ended() for puller in self._pullers.values()))

    async def persist(self) -> None:
        """Commit what is consumed; where order matters, only while the queue is locked."""
        held = [queue for queue in self._pullers if self._is_ours(queue)]
        await self._context.offsets.persist(held)

    async def unlock_all(self) -> None:
        if self._locks:
            await self._locks.unlock(self._locks.all)

    def _is_ours(self, queue: MessageQueue) -> bool:
        return self._locks is None or self._locks.holds(queue)

    async def _apply_resets(self) -> bool:
        resets, self._resets = self._resets, set()
        abandoned, self._abandoned = self._abandoned, set()
        for queue in abandoned - resets:
            self._context.offsets.forget(queue)
        return await self._release((resets | abandoned) & set(self._pullers))

    async def _rebalance(self, topic: str) -> bool:
        wanted = set(await self._allocated(topic))
        held = {queue for queue in self._pullers if queue.topic == topic}
        dead = {queue for queue in held if not self._pullers[queue].is_running}
        gone = (held - wanted) | dead
        complete = await self._give_up(gone)
        # A queue whose reset came in meanwhile waits until that is applied.
        new = sorted(wanted - set(self._pullers) - self._resets)
        failure: GantryError | None = None
        for queue in new:
            try:
                complete &= await self._begin(queue)
            except GantryError as error:
                # Its broker is away; the queues of the other brokers must not wait for it.
                failure = error
        if gone or new:
            log.info(
                "Consumer %s has %d queues of %s (%d new, %d given up)",
                self._context.group,
                len(wanted),
                topic,
                len(new),
                len(gone),
            )
        if failure:
            raise failure
        return complete

    async def _begin(self, queue: MessageQueue) -> bool:
        """Start to pull; False when another member has the queue's lock still."""
        if self._locks and not await self._locks.lock(queue):
            return False
        # Asked only now: who had the lock committed before giving it back.
        offset = self._seeks.pop(queue, None)
        if offset is None:
            offset = self._seeks.pop(queue, await self._start_offset(queue))
        puller = Puller(self._context, ProcessQueue(queue, now_ms()), offset)
        self._pullers[queue] = puller
        puller.start()
        return True

    async def _give_up(self, queues: Iterable[MessageQueue]) -> bool:
        queues = set(queues)
        for queue in queues:
            self._drop(queue)
        return await self._release(queues)

    async def _release(self, queues: Iterable[MessageQueue]) -> bool:
        """Commit dropped queues and forget them. False when a listener still works on one: it
        stays in the table, locked, until that has ended."""
        queues = list(queues)
        released = await asyncio.gather(
            *(self._context.delivery.let_go(self._pullers[queue].process_queue) for queue in queues)
        )
        free = [queue for queue, is_free in zip(queues, released, strict=True) if is_free]
        await self._context.offsets.persist([queue for queue in free if self._is_ours(queue)])
        for queue in free:
            self._context.offsets.forget(queue)
            self._pullers.pop(queue, None)
        if self._locks:
            await self._locks.unlock(free)
        return len(free) == len(queues)
