"""The brokers of a cluster by host: one machine may run one broker per core."""

from collections.abc import Iterable
from dataclasses import dataclass

from console.gateway.brokers.listing import BrokerRow
from console.gateway.overview import Load, load_of


@dataclass(frozen=True, slots=True)
class Host:
    """The brokers whose addresses have the same host; `load` has the sums over their masters."""

    name: str
    brokers: tuple[BrokerRow, ...]
    load: Load


def by_host(rows: Iterable[BrokerRow]) -> tuple[Host, ...]:
    """Return the hosts in order of their first broker; the brokers keep their order."""
    found: dict[str, list[BrokerRow]] = {}
    for row in rows:
        found.setdefault(row.ref.host, []).append(row)
    return tuple(Host(name, tuple(brokers), load_of(brokers)) for name, brokers in found.items())


def are_shared(hosts: Iterable[Host]) -> bool:
    """Return True when a host has more than one broker, so that a list has to show the hosts."""
    return any(len(host.brokers) > 1 for host in hosts)
