"""state/queue_locks.py: owners and lifetime of queue locks."""

import pytest

from core_broker.remoting.bodies import MessageQueue
from core_broker.state import queue_locks
from core_broker.state.queue_locks import LOCK_LIVE_MS, QueueLocks

Q0, Q1 = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)


def test_a_free_queue_is_granted_and_another_clients_is_not() -> None:
    locks = QueueLocks()
    assert locks.lock("G", "c1", [Q0], 0) == [Q0]
    assert locks.lock("G", "c2", [Q0, Q1], 1) == [Q1]
    assert locks.lock("G", "c1", [Q0, Q1], 2) == [Q0]


def test_groups_do_not_see_each_others_locks() -> None:
    locks = QueueLocks()
    assert locks.lock("G1", "c1", [Q0], 0) == [Q0]
    assert locks.lock("G2", "c2", [Q0], 0) == [Q0]


def test_a_lock_that_is_not_renewed_falls_to_the_next() -> None:
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


def test_a_full_table_grants_nothing_new_until_locks_expire(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_locks, "LOCKS_MAX", 1)
    locks = QueueLocks()
    assert locks.lock("G", "c1", [Q0, Q1], 0) == [Q0]
    assert locks.lock("G", "c1", [Q0], 1) == [Q0], "a renewal needs no room"
    assert locks.lock("G", "c1", [Q1], LOCK_LIVE_MS + 2) == [Q1]
