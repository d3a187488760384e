"""state/queue_locks.py: owners and lifetime of queue locks."""

import pytest

from core_broker.remoting.bodies import MessageQueue
from core_broker.state import queue_locks
from core_broker.state.queue_locks import LOCK_LIVE_MS, QueueLocks

Q0, Q1 = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)


def test_only_free_queues_are_granted() -> None:
    locks = QueueLocks()
    assert locks.lock("G", "c1", [Q0], 0) == [Q0]
    assert locks.lock("G", "c2", [Q0, Q1], 1) == [Q1]
    assert locks.lock("G", "c1", [Q0, Q1], 2) == [Q0]


def test_locks_of_groups_are_independent() -> None:
    locks = QueueLocks()
    assert locks.lock("G1", "c1", [Q0], 0) == [Q0]
    assert locks.lock("G2", "c2", [Q0], 0) == [Q0]


def test_an_expired_lock_is_granted_to_the_next_client() -> None:
    locks = QueueLocks()
    locks.lock("G", "c1", [Q0, Q1], 0)
    locks.lock("G", "c1", [Q1], LOCK_LIVE_MS)
    assert locks.lock("G", "c2", [Q0, Q1], LOCK_LIVE_MS) == []
    assert locks.lock("G", "c2", [Q0, Q1], LOCK_LIVE_MS + 1) == [Q0]


def test_only_the_holder_can_unlock() -> None:
    locks = QueueLocks()
    locks.lock("G", "c1", [Q0], 0)
    locks.unlock("G", "c2", [Q0])
    assert locks.lock("G", "c2", [Q0], 1) == []
    locks.unlock("G", "c1", [Q0])
    assert locks.lock("G", "c2", [Q0], 1) == [Q0]


def test_expired_locks_are_forgotten() -> None:
    locks = QueueLocks()
    locks.lock("G", "c1", [Q0], 0)
    locks.lock("G", "c1", [Q1], 10)
    locks.expire(LOCK_LIVE_MS + 5)
    assert len(locks) == 1


def test_a_full_table_grants_no_lock_before_locks_expire(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_locks, "LOCKS_MAX", 1)
    locks = QueueLocks()
    assert locks.lock("G", "c1", [Q0, Q1], 0) == [Q0]
    assert locks.lock("G", "c1", [Q0], 1) == [Q0], "a renewal needs no room"
    assert locks.lock("G", "c1", [Q1], LOCK_LIVE_MS + 2) == [Q1]
