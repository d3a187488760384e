"""Queue locks of orderly consumers.

A lock belongs to one client of one group and expires LOCK_LIVE_MS after its last renewal. Locks are
kept in memory only. Compatible with RocketMQ's RebalanceLockManager.
"""

from collections.abc import Iterable
from typing import NamedTuple

from core_broker.remoting.bodies import MessageQueue

#: Lifetime of a lock without renewal, ms: rocketmq.broker.rebalance.lockMaxLiveTime.
LOCK_LIVE_MS = 60_000
#: Maximum locks, so that forged requests cannot exhaust the memory.
LOCKS_MAX = 100_000


class _Lock(NamedTuple):
    client_id: str
    renewed_ms: int

    def held_against(self, client_id: str, now_ms: int) -> bool:
        return self.client_id != client_id and now_ms - self.renewed_ms <= LOCK_LIVE_MS


class QueueLocks:
    """The locks of all groups: one client per group and queue."""

    def __init__(self) -> None:
        self._locks: dict[tuple[str, MessageQueue], _Lock] = {}

    def __len__(self) -> int:
        return len(self._locks)

    def lock(
        self, group: str, client_id: str, queues: Iterable[MessageQueue], now_ms: int
    ) -> list[MessageQueue]:
        """Lock queues that are free, expired or held by the client; returns the granted queues."""
        granted = []
        for queue in queues:
            held = self._locks.get((group, queue))
            if held is None and len(self._locks) >= LOCKS_MAX:
                self.expire(now_ms)
                if len(self._locks) >= LOCKS_MAX:
                    break
            if held is None or not held.held_against(client_id, now_ms):
                self._locks[group, queue] = _Lock(client_id, now_ms)
                granted.append(queue)
        return granted

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Release queues; locks of other clients stay."""
        for queue in queues:
            held = self._locks.get((group, queue))
            if held is not None and held.client_id == client_id:
                del self._locks[group, queue]

    def clear(self) -> None:
        """Remove all locks: another broker grants them now."""
        self._locks.clear()

    def expire(self, now_ms: int) -> None:
        """Remove expired locks."""
        dead = [key for key, lock in self._locks.items() if now_ms - lock.renewed_ms > LOCK_LIVE_MS]
        for key in dead:
            del self._locks[key]
