"""The brokers that the console has seen in a cluster, also those that left the name server.

A broker enters the table when a name server lists the broker, and stays until an operator forgets
the broker. Name and broker id identify a broker; the address follows the name server. A
BrokerMemory keeps the table over restarts of the console; the table works without one.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Protocol

log = logging.getLogger(__name__)

#: Maximum number of remembered brokers of one cluster; the longest without contact is dropped.
KNOWN_BROKERS_MAX = 1_000
#: Interval at which other processes' changes are read, milliseconds.
LOAD_EVERY_MS = 10_000
#: Interval at which the time of the last contact is saved, milliseconds.
SAVE_CONTACT_EVERY_MS = 30_000


@dataclass(frozen=True, slots=True, order=True)
class BrokerRef:
    """A broker process: name, id (0 is the master) and address, `host:port`."""

    name: str
    id: int
    addr: str

    @property
    def is_master(self) -> bool:
        return self.id == 0

    @property
    def host(self) -> str:
        """Host of the address, the same for all brokers of a machine; IPv6 in brackets."""
        return self.addr.rpartition(":")[0]


@dataclass(frozen=True, slots=True)
class KnownBroker:
    """A broker that was listed by a name server.

    `contact_ms` is the time of the last answer; None before the first answer. `registered`: the
    name server listed the broker in its latest answer.
    """

    ref: BrokerRef
    cluster_name: str
    seen_ms: int
    contact_ms: int | None = None
    registered: bool = False


class BrokerMemory(Protocol):
    """Storage of the table, shared by the processes of the console."""

    def load(self, cluster: str) -> list[KnownBroker] | None: ...

    def save(self, cluster: str, brokers: Iterable[KnownBroker]) -> None: ...

    def forget(self, cluster: str, ref: BrokerRef) -> None: ...


Key = tuple[str, int]


class KnownBrokers:
    """The table of one cluster. Thread-safe: views load and save, the gateway's loop updates."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._brokers: dict[Key, KnownBroker] = {}
        #: The state last saved, by key.
        self._saved: dict[Key, KnownBroker] = {}
        self._load_at_ms = 0
        self._listed = False

    def all(self) -> tuple[KnownBroker, ...]:
        """Return all brokers in order of name and id."""
        with self._lock:
            return tuple(self._brokers[key] for key in sorted(self._brokers))

    def get(self, name: str, broker_id: int) -> KnownBroker | None:
        with self._lock:
            return self._brokers.get((name, broker_id))

    def listed(self, listed: Iterable[tuple[BrokerRef, str]], now_ms: int) -> bool:
        """Take over the name server's list of brokers and their `brokerClusterName`.

        Returns True when a broker appeared, moved or left since the list before.
        """
        current = {(ref.name, ref.id): (ref, cluster) for ref, cluster in listed}
        with self._lock:
            before = {key: broker.ref for key, broker in self._brokers.items() if broker.registered}
            for key, broker in self._brokers.items():
                if key not in current and broker.registered:
                    self._brokers[key] = replace(broker, registered=False)
            for key, (ref, cluster) in current.items():
                known = self._brokers.get(key)
                contact_ms = known.contact_ms if known is not None else None
                seen_ms = known.seen_ms if known is not None else now_ms
                self._brokers[key] = KnownBroker(ref, cluster, seen_ms, contact_ms, True)
            places = self._places()
            # A failover changes the ids of replicas: the same process is not down under its old id.
            for key in [each for each in self._brokers if each not in current]:
                if (key[0], self._brokers[key].ref.addr) in places:
                    del self._brokers[key]
            self._bound()
            first, self._listed = not self._listed, True
        return not first and before != {key: ref for key, (ref, _cluster) in current.items()}

    def _places(self) -> set[tuple[str, str]]:
        """Return names and addresses of the listed brokers."""
        return {(one.ref.name, one.ref.addr) for one in self._brokers.values() if one.registered}

    def contacted(self, ref: BrokerRef, at_ms: int) -> None:
        """Record an answer of a broker."""
        with self._lock:
            broker = self._brokers.get((ref.name, ref.id))
            if broker is not None and broker.ref == ref:
                self._brokers[ref.name, ref.id] = replace(broker, contact_ms=at_ms)

    def forget(self, ref: BrokerRef) -> None:
        with self._lock:
            self._brokers.pop((ref.name, ref.id), None)
            self._saved.pop((ref.name, ref.id), None)

    def load_due(self, now_ms: int) -> bool:
        return now_ms >= self._load_at_ms

    def load(self, memory: BrokerMemory, cluster: str, now_ms: int) -> None:
        """Read the memory when due: brokers of earlier runs, and brokers forgotten elsewhere."""
        with self._lock:
            if not self.load_due(now_ms):
                return
            self._load_at_ms = now_ms + LOAD_EVERY_MS
        read = memory.load(cluster)
        if read is None:
            return
        loaded = {(each.ref.name, each.ref.id): replace(each, registered=False) for each in read}
        with self._lock:
            for key in [key for key in self._saved if key not in loaded]:
                del self._saved[key]
                known = self._brokers.get(key)
                if known is not None and not known.registered:
                    del self._brokers[key]
            places = self._places()
            for key, broker in loaded.items():
                known = self._brokers.get(key)
                if known is None:
                    if (broker.ref.name, broker.ref.addr) not in places:
                        self._brokers[key] = broker
                elif (broker.contact_ms or 0) > (known.contact_ms or 0):
                    self._brokers[key] = replace(known, contact_ms=broker.contact_ms)
                self._saved[key] = broker
            self._bound()

    def unsaved(self) -> bool:
        with self._lock:
            return any(self._unsaved(key, one) for key, one in self._brokers.items())

    def save(self, memory: BrokerMemory, cluster: str) -> None:
        """Write new and moved brokers, and contacts older than SAVE_CONTACT_EVERY_MS."""
        with self._lock:
            due = {key: one for key, one in self._brokers.items() if self._unsaved(key, one)}
            self._saved.update(due)
        if due:
            memory.save(cluster, due.values())

    def _unsaved(self, key: Key, broker: KnownBroker) -> bool:
        saved = self._saved.get(key)
        if saved is None or (saved.ref, saved.cluster_name) != (broker.ref, broker.cluster_name):
            return True
        return (broker.contact_ms or 0) - (saved.contact_ms or 0) >= SAVE_CONTACT_EVERY_MS

    def _bound(self) -> None:
        """Drop unregistered brokers beyond KNOWN_BROKERS_MAX, the oldest contact first."""
        excess = len(self._brokers) - KNOWN_BROKERS_MAX
        if excess <= 0:
            return
        gone = [(one.contact_ms or 0, key) for key, one in self._brokers.items()]
        gone = [pair for pair in sorted(gone) if not self._brokers[pair[1]].registered]
        for _contact_ms, key in gone[:excess]:
            del self._brokers[key]
            self._saved.pop(key, None)
            log.warning("dropped broker %s:%d: over %d are known", *key, KNOWN_BROKERS_MAX)
