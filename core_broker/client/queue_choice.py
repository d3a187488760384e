"""Choice of the queue for the next message. Pure except for a random start.

Compatible with RocketMQ's TopicPublishInfo and MQFaultStrategy: round robin by topic; a retry
avoids the failed broker while the topic has queues on another broker; with latency fault tolerance,
slow and failing brokers are avoided for a while.
"""

import random
from collections.abc import Sequence
from typing import Final

from core_broker.client.latency_faults import LatencyFaults
from core_broker.remoting.bodies import MessageQueue

TOPICS_REMEMBERED_MAX: Final = 4096


class QueueChooser:
    """Holds a round-robin position per topic."""

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
        """The next queue; ``queues`` must not be empty."""
        begin = self._advance(topic)
        candidates = [queues[(begin + step) % len(queues)] for step in range(len(queues))]
        if self._faults is not None:
            return self._fault_tolerant(self._faults, candidates, begin, now_ms)
        for queue in candidates:
            if queue.broker_name != avoid_broker:
                return queue
        return candidates[0]

    def _fault_tolerant(
        self, faults: LatencyFaults, candidates: Sequence[MessageQueue], begin: int, now_ms: int
    ) -> MessageQueue:
        for queue in candidates:
            if faults.is_available(queue.broker_name, now_ms):
                return queue
        broker_name = faults.pick_one_at_least(now_ms)
        broker_queues = [queue for queue in candidates if queue.broker_name == broker_name]
        if broker_queues:
            return broker_queues[begin % len(broker_queues)]
        if broker_name is not None:
            faults.remove(broker_name)
        return candidates[0]

    def _advance(self, topic: str) -> int:
        index = self._next.get(topic)
        if index is None:
            # A random start: producers started together do not all begin with queue 0.
            index = random.randrange(1 << 16)
            if len(self._next) >= TOPICS_REMEMBERED_MAX:
                self._next.clear()
        self._next[topic] = index + 1
        return index
