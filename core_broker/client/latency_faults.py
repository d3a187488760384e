"""Latency fault tolerance: for how long producers avoid slow and failing brokers. Pure.

    latency of a send, ms   50   100   550   1000   2000    3000    15000
    avoided for, ms          0     0   30000  60000  120000  180000  600000

A failed send counts as a latency of 30 s. Compatible with RocketMQ's MQFaultStrategy and
LatencyFaultToleranceImpl.
"""

import random
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

LATENCY_MAX_MS: Final = (50, 100, 550, 1000, 2000, 3000, 15000)
NOT_AVAILABLE_DURATION_MS: Final = (0, 0, 30000, 60000, 120000, 180000, 600000)
FAILURE_LATENCY_MS: Final = 30_000
BROKERS_REMEMBERED_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class _Fault:
    latency_ms: int
    available_from_ms: int


def not_available_ms(latency_ms: int) -> int:
    """Duration of avoiding a broker after a send with the given latency, ms."""
    step = bisect_right(LATENCY_MAX_MS, latency_ms)
    return NOT_AVAILABLE_DURATION_MS[step - 1] if step else 0


class LatencyFaults:
    """The fault items of one producer, by broker name."""

    def __init__(self) -> None:
        self._faults: dict[str, _Fault] = {}
        self._picks = 0

    def record_latency(self, broker_name: str, latency_ms: int, now_ms: int) -> None:
        """Record the latency of an answered send."""
        if broker_name not in self._faults and len(self._faults) >= BROKERS_REMEMBERED_MAX:
            del self._faults[next(iter(self._faults))]
        until = now_ms + not_available_ms(latency_ms)
        self._faults[broker_name] = _Fault(latency_ms, until)

    def record_failure(self, broker_name: str, now_ms: int) -> None:
        """Record a refused or unanswered send."""
        self.record_latency(broker_name, FAILURE_LATENCY_MS, now_ms)

    def is_available(self, broker_name: str, now_ms: int) -> bool:
        """True when the broker is not being avoided."""
        fault = self._faults.get(broker_name)
        return fault is None or now_ms >= fault.available_from_ms

    def pick_one_at_least(self, now_ms: int) -> str | None:
        """When all brokers are avoided: a broker of the better half, round robin; None without
        any fault item."""
        items = list(self._faults.items())
        random.shuffle(items)

        def sort_key(item: tuple[str, _Fault]) -> tuple[bool, int, int]:
            fault = item[1]
            is_avoided = now_ms < fault.available_from_ms
            return is_avoided, fault.latency_ms, fault.available_from_ms

        items.sort(key=sort_key)
        if not items:
            return None
        self._picks += 1
        return items[self._picks % max(len(items) // 2, 1)][0]

    def remove(self, broker_name: str) -> None:
        """Remove the fault item of a broker without queues."""
        self._faults.pop(broker_name, None)
