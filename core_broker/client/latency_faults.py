"""Which brokers were slow or failed lately, and for how long producers avoid them. Pure.

    latency of a send, ms   50   100   550   1000   2000    3000    15000
    avoided for, ms          0     0   30000  60000  120000  180000  600000

A send that failed counts as one of 30 s. Compatible with RocketMQ's MQFaultStrategy and
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
    """How long a broker is avoided after a send that took so long."""
    step = bisect_right(LATENCY_MAX_MS, latency_ms)
    return NOT_AVAILABLE_DURATION_MS[step - 1] if step else 0


class LatencyFaults:
    """What one producer learnt about its brokers."""

    def __init__(self) -> None:
        self._faults: dict[str, _Fault] = {}
        self._turn = 0

    def sent(self, broker_name: str, latency_ms: int, now_ms: int) -> None:
        """A send came back after this time."""
        if broker_name not in self._faults and len(self._faults) >= BROKERS_REMEMBERED_MAX:
            del self._faults[next(iter(self._faults))]
        until = now_ms + not_available_ms(latency_ms)
        self._faults[broker_name] = _Fault(latency_ms, until)

    def failed(self, broker_name: str, now_ms: int) -> None:
        """A send was refused or got no answer."""
        self.sent(broker_name, FAILURE_LATENCY_MS, now_ms)

    def is_available(self, broker_name: str, now_ms: int) -> bool:
        """Whether messages may go there without a bad conscience."""
        fault = self._faults.get(broker_name)
        return fault is None or now_ms >= fault.available_from_ms

    def not_best(self, now_ms: int) -> str | None:
        """When all are avoided: one of the better half, in turns; None when none is known."""
        items = list(self._faults.items())
        random.shuffle(items)

        def badness(item: tuple[str, _Fault]) -> tuple[bool, int, int]:
            fault = item[1]
            is_away = now_ms < fault.available_from_ms
            return is_away, fault.latency_ms, fault.available_from_ms

        items.sort(key=badness)
        if not items:
            return None
        self._turn += 1
        return items[self._turn % max(len(items) // 2, 1)][0]

    def forget(self, broker_name: str) -> None:
        """The broker has no queues for us any more."""
        self._faults.pop(broker_name, None)
