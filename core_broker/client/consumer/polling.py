"""Pulled messages waiting for a poll of the application.

Compatible with the request cache of RocketMQ's DefaultLitePullConsumerImpl.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Final

from core_broker.client.consumer.process_queue import ProcessQueue
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import MessageQueue

#: Maximum messages of all queues waiting for a poll; above the limit pulling waits.
MESSAGES_WAITING_MAX: Final = 10_000


class PolledMessages:
    """A round robin over queues; the messages of a queue stay in order."""

    def __init__(self, on_release: Callable[[MessageQueue], None]) -> None:
        self._on_release = on_release
        self._waiting: OrderedDict[ProcessQueue, deque[MessageExt]] = OrderedDict()
        self._count = 0
        self._arrived = asyncio.Event()
        self._not_full = asyncio.Event()
        self._not_full.set()
        self.closed = False

    async def submit(self, process_queue: ProcessQueue, messages: Sequence[MessageExt]) -> None:
        """Add pulled messages; waits while MESSAGES_WAITING_MAX messages are waiting."""
        while self._count >= MESSAGES_WAITING_MAX:
            self._not_full.clear()
            await self._not_full.wait()
        if messages and not process_queue.dropped:
            self._waiting.setdefault(process_queue, deque()).extend(messages)
            self._count += len(messages)
            self._arrived.set()

    async def release(self, process_queue: ProcessQueue) -> bool:
        """Drop the waiting messages of the queue; the next owner pulls the messages again."""
        self._remove(process_queue)
        self._on_release(process_queue.queue)
        return True

    def take(
        self, count: int, is_paused: Callable[[MessageQueue], bool]
    ) -> tuple[ProcessQueue, list[MessageExt]] | None:
        """Up to ``count`` messages of the next queue; None without waiting messages."""
        for process_queue in list(self._waiting):
            if process_queue.dropped:
                self._remove(process_queue)
            elif not is_paused(process_queue.queue):
                return process_queue, self._take_from(process_queue, count)
        return None

    async def arrival(self, timeout_s: float) -> bool:
        """Wait for messages; False after the timeout."""
        self._arrived.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._arrived.wait()
        except TimeoutError:
            return False
        return True

    def wake(self) -> None:
        """Wake a waiting poll to check for messages again."""
        self._arrived.set()

    def close(self) -> None:
        """Mark the end of messages, and wake a waiting poll."""
        self.closed = True
        self.wake()

    def _take_from(self, process_queue: ProcessQueue, count: int) -> list[MessageExt]:
        waiting = self._waiting.pop(process_queue)
        messages = [waiting.popleft() for _ in range(min(count, len(waiting)))]
        if waiting:
            self._waiting[process_queue] = waiting
        self._subtract(len(messages))
        return messages

    def _remove(self, process_queue: ProcessQueue) -> None:
        self._subtract(len(self._waiting.pop(process_queue, ())))

    def _subtract(self, count: int) -> None:
        self._count -= count
        self._not_full.set()
