"""Latency fault tolerance with RocketMQ's latency table."""

import pytest

from core_broker.client import latency_faults as module
from core_broker.client.latency_faults import LatencyFaults, not_available_ms
from core_broker.client.queue_choice import QueueChooser
from core_broker.remoting.bodies import MessageQueue

QUEUES = [MessageQueue("T", name, queue_id) for name in "abc" for queue_id in range(2)]


@pytest.mark.parametrize(
    ("latency", "avoided"),
    [
        (0, 0),
        (49, 0),
        (99, 0),
        (100, 0),
        (549, 0),
        (550, 30_000),
        (999, 30_000),
        (1000, 60_000),
        (2000, 120_000),
        (3000, 180_000),
        (14_999, 180_000),
        (15_000, 600_000),
        (30_000, 600_000),
        (10**9, 600_000),
    ],
)
def test_how_long_a_broker_is_avoided(latency: int, avoided: int) -> None:
    assert not_available_ms(latency) == avoided


def chosen(chooser: QueueChooser, now_ms: int, count: int = 12) -> set[str]:
    return {chooser.choose("T", QUEUES, now_ms=now_ms).broker_name for _ in range(count)}


def test_a_slow_broker_is_avoided_for_its_time() -> None:
    faults = LatencyFaults()
    chooser = QueueChooser(faults)
    assert chosen(chooser, 0) == {"a", "b", "c"}
    faults.record_latency("b", 600, now_ms=1000)
    faults.record_latency("c", 60, now_ms=1000)
    assert chosen(chooser, 30_999) == {"a", "c"}
    assert chosen(chooser, 31_000) == {"a", "b", "c"}


def test_a_failed_one_is_avoided_longest_until_it_succeeds() -> None:
    faults = LatencyFaults()
    faults.record_failure("a", now_ms=0)
    assert not faults.is_available("a", 599_999)
    assert faults.is_available("a", 600_000)
    faults.record_latency("a", 10, now_ms=5)
    assert faults.is_available("a", 5)


def test_when_all_are_avoided_the_better_half_takes_turns() -> None:
    faults = LatencyFaults()
    faults.record_latency("a", 20_000, now_ms=0)
    faults.record_latency("b", 600, now_ms=0)
    faults.record_latency("c", 3500, now_ms=0)
    # The better half of three brokers is one broker, with the lowest latency.
    assert chosen(QueueChooser(faults), 1) == {"b"}
    faults.record_latency("d", 700, now_ms=0)
    assert {faults.pick_one_at_least(1) for _ in range(9)} == {"b", "d"}


def test_a_broker_without_queues_is_forgotten() -> None:
    faults = LatencyFaults()
    for name in "abcd":
        faults.record_failure(name, now_ms=0)
    faults.record_latency("d", 600, now_ms=0)
    chooser = QueueChooser(faults)
    assert chosen(chooser, 1, count=40) <= {"a", "b", "c"}
    assert faults.is_available("d", 1), "it is no longer known"


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BROKERS_REMEMBERED_MAX", 3)
    faults = LatencyFaults()
    for number in range(10):
        faults.record_failure(f"b{number}", now_ms=0)
    assert len(faults._faults) == 3
    assert not faults.is_available("b9", 1)


def test_nothing_known_is_nothing_avoided() -> None:
    assert LatencyFaults().pick_one_at_least(0) is None
    assert chosen(QueueChooser(LatencyFaults()), 0) == {"a", "b", "c"}
