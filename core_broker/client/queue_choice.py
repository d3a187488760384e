"""Which queue the next message goes to. Pure but for where it begins.

Compatible with RocketMQ's TopicPublishInfo: round robin by topic; a retry avoids the broker that
just failed as long as there is another one.
"""

import random
from collections.abc import Sequence
from typing import Final

from core_broker.remoting.bodies import MessageQueue

TOPICS_REMEMBERED_MAX: Final = 4096


class QueueChooser:
    """Remembers for each topic where it stands."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def choose(
        self, topic: str, queues: Sequence[MessageQueue], avoid_broker: str | None = None
    ) -> MessageQueue:
        """The next queue; there must be one."""
        begin = self._advance(topic)
        for step in range(len(queues)):
            queue = queues[(begin + step) % len(queues)]
            if queue.broker_name != avoid_broker:
                return queue
        return queues[begin % len(queues)]

    def _advance(self, topic: str) -> int:
        index = self._next.get(topic)
        if index is None:
            # Producers that start together do not all begin with the same queue.
            index = random.randrange(1 << 16)
            if len(self._next) >= TOPICS_REMEMBERED_MAX:
                self._next.clear()
        self._next[topic] = index + 1
        return index
