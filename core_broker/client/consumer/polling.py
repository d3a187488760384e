"""Messages that were pulled and wait for the application to poll them.

Compatible with the request cache of RocketMQ's DefaultLitePullConsumerImpl.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Final

from core_broker.client.consumer.process_queue import ProcessQueue
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import MessageQueue

#: Messages of all queues together that wait for a poll; pulling pauses when there are more.
MESSAGES_WAITING_MAX: Final = 10_000


class PolledMessages:
    """Queues take turns; a queue's messages keep their order."""

    def __init__(self, on_let_go: Callable[[MessageQueue], None]) -> None:
        self._on_let_go = on_let_go
        self._waiting: OrderedDict[ProcessQueue, deque[MessageExt]] = OrderedDict()
        self._count = 0
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self.closed = False

    async def submit(self, process_queue: ProcessQueue, messages: Sequence[MessageExt]) -> None:
        """Take pulled messages over; waits while too many are waiting already."""
        while self._count >= MESSAGES_WAITING_MAX:
            self._room.clear()
            await self._room.wait()
        if messages and not process_queue.dropped:
            self._waiting.setdefault(process_queue, deque()).extend(messages)
            self._count += len(messages)
            self._arrived.set()

    async def let_go(self, process_queue: ProcessQueue) -> bool:
        """What waits of the queue is for its next owner."""
        self._remove(process_queue)
        self._on_let_go(process_queue.queue)
        return True

    def take(
        self, count: int, is_paused: Callable[[MessageQueue], bool]
    ) -> tuple[ProcessQueue, list[MessageExt]] | None:
        """Up to ``count`` messages of the queue whose turn it is; None when there are none."""
        for process_queue in list(self._waiting):
            if process_queue.dropped:
                self._remove(process_queue)
            elif not is_paused(process_queue.queue):
                return process_queue, self._take_from(process_queue, count)
        return None

    async def arrival(self, timeout_s: float) -> bool:
        """Wait until there may be something to take; False when the time is over."""
        self._arrived.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._arrived.wait()
        except TimeoutError:
            return False
        return True

    def wake(self) -> None:
        """Have whoever waits look again."""
        self._arrived.set()

    def close(self) -> None:
        """Nothing more will come; whoever waits learns it."""
        self.closed = True
        self.wake()

    def _take_from(self, process_queue: ProcessQueue, count: int) -> list[MessageExt]:
        waiting = self._waiting.pop(process_queue)
        taken = [waiting.popleft() for _ in range(min(count, len(waiting)))]
        if waiting:
            self._waiting[process_queue] = waiting
        self._made_room(len(taken))
        return taken

    def _remove(self, process_queue: ProcessQueue) -> None:
        self._made_room(len(self._waiting.pop(process_queue, ())))

    def _made_room(self, count: int) -> None:
        self._count -= count
        self._room.set()
