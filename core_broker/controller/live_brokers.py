"""Which brokers live: the heartbeats that this controller has received.

Not replicated: brokers send heartbeats to every controller. Pure; time comes in as `now_ms`.
Compatible with RocketMQ 5.3.3's DefaultBrokerHeartbeatManager. Different: a heartbeat replaces
epoch and offset also by smaller ones, because a broker may have lost the end of its log, and it
replaces the connection, so that the close of an old connection is no death.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from core_broker.controller.model import BrokerSet, Candidate

#: Time without a heartbeat until a broker is dead, for brokers that send no time of their own.
HEARTBEAT_TIMEOUT_MS = 10_000
#: Limits of the time that a broker may send.
HEARTBEAT_TIMEOUT_MS_MIN = 100
HEARTBEAT_TIMEOUT_MS_MAX = 600_000


class Closable(Protocol):
    """The connection of a broker."""

    def close(self, reason: str) -> None:
        """Close the connection."""


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """The last heartbeat of a broker."""

    name: str
    candidate: Candidate
    connection: Closable
    timeout_ms: int
    last_ms: int

    @property
    def broker_id(self) -> int:
        """Id of the broker in its set."""
        return self.candidate.broker_id

    def is_alive(self, now_ms: int) -> bool:
        """Whether the heartbeat is recent."""
        return now_ms - self.last_ms <= self.timeout_ms


class LiveBrokers:
    """The table of heartbeats. The caller admits registered brokers only, which bounds it.

    Until `HEARTBEAT_TIMEOUT_MS` after the start, a master that was never heard counts as living:
    its heartbeat may still be on the way, and an election would depose it for nothing.
    """

    def __init__(self, started_ms: int) -> None:
        self._by_id: dict[tuple[str, int], LiveBroker] = {}
        self._grace_end_ms = started_ms + HEARTBEAT_TIMEOUT_MS
        #: Brokers that were heard in the time of grace.
        self._heard: set[tuple[str, int]] = set()

    def __len__(self) -> int:
        return len(self._by_id)

    def heartbeat(
        self,
        name: str,
        candidate: Candidate,
        connection: Closable,
        timeout_ms: int | None,
        now_ms: int,
    ) -> bool:
        """Record a heartbeat; return whether the broker was unknown before."""
        key = (name, candidate.broker_id)
        is_new = key not in self._by_id
        if timeout_ms is None:
            timeout_ms = HEARTBEAT_TIMEOUT_MS
        timeout_ms = min(max(timeout_ms, HEARTBEAT_TIMEOUT_MS_MIN), HEARTBEAT_TIMEOUT_MS_MAX)
        self._by_id[key] = LiveBroker(name, candidate, connection, timeout_ms, now_ms)
        if now_ms < self._grace_end_ms:
            self._heard.add(key)
        return is_new

    def is_alive(self, broker_set: BrokerSet, broker_id: int, now_ms: int) -> bool:
        """Return whether a broker lives, or is the master and may still be heard."""
        live = self._by_id.get((broker_set.name, broker_id))
        if live is not None:
            return live.is_alive(now_ms)
        return (
            broker_id == broker_set.master_id
            and now_ms < self._grace_end_ms
            and (broker_set.name, broker_id) not in self._heard
        )

    def candidates(self, broker_set: BrokerSet, now_ms: int) -> tuple[Candidate, ...]:
        """Return the living brokers of a set with what they said about their logs."""
        candidates = []
        for broker_id in broker_set.replicas:
            if self.is_alive(broker_set, broker_id, now_ms):
                live = self._by_id.get((broker_set.name, broker_id))
                candidates.append(Candidate(broker_id) if live is None else live.candidate)
        return tuple(candidates)

    def expire(self, now_ms: int) -> list[LiveBroker]:
        """Remove and return the brokers without a recent heartbeat."""
        return self._remove(live for live in self._by_id.values() if not live.is_alive(now_ms))

    def connection_lost(self, connection: Closable) -> list[LiveBroker]:
        """Remove and return the brokers whose last heartbeat came over a closed connection."""
        return self._remove(live for live in self._by_id.values() if live.connection is connection)

    def _remove(self, gone: Iterable[LiveBroker]) -> list[LiveBroker]:
        removed = list(gone)
        for live in removed:
            del self._by_id[live.name, live.broker_id]
        return removed
