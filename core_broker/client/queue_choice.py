"""Which queue the next message goes to. Pure but for where it begins.

Compatible with RocketMQ's TopicPublishInfo and MQFaultStrategy: round robin by topic; a retry
avoids the broker that just failed as long as there is another one; with latency fault tolerance,
brokers that were slow or failed lately are avoided for a while.
"""

import random
from collections.abc import Sequence
from typing import Final

from core_broker.client.latency_faults import LatencyFaults
from core_broker.remoting.bodies import MessageQueue

TOPICS_REMEMBERED_MAX: Final = 4096


class QueueChooser:
    """Remembers for each topic where it stands."""

    def __init__(self, faults: LatencyFaults | None = None) -> None:
        self._faults = faults
        self._next: dict[str, int] = {}

    def choose(
        self,
        topic: str,
        queues: Sequence[MessageQueue],
        avoid_broker: str | None = None,
        *,
        now_ms: int = 0,
    ) -> MessageQueue:
        """The next queue; there must be one."""
        begin = self._advance(topic)
        turns = [queues[(begin + step) % len(queues)] for step in range(len(queues))]
        if self._faults is not None:
            return self._tolerant(self._faults, turns, begin, now_ms)
        for queue in turns:
            if queue.broker_name != avoid_broker:
                return queue
        return turns[0]

    def _tolerant(
        self, faults: LatencyFaults, turns: Sequence[MessageQueue], begin: int, now_ms: int
    ) -> MessageQueue:
        for queue in turns:
            if faults.is_available(queue.broker_name, now_ms):
                return queue
        broker_name = faults.not_best(now_ms)
        its_queues = [queue for queue in turns if queue.broker_name == broker_name]
        if its_queues:
            return its_queues[begin % len(its_queues)]
        if broker_name is not None:
            faults.forget(broker_name)
        return turns[0]

    def _advance(self, topic: str) -> int:
        index = self._next.get(topic)
        if index is None:
            # Producers that start together do not all begin with the same queue.
            index = random.randrange(1 << 16)
            if len(self._next) >= TOPICS_REMEMBERED_MAX:
                self._next.clear()
        self._next[topic] = index + 1
        return index
