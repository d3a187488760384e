"""A snapshot of a cluster becomes samples: values by metric and name. Pure.

A value that is not known, and a value of a broker that does not answer, is left out: a gap.
"""

from collections.abc import Callable, Iterable
from math import isfinite
from typing import Final

from console.gateway.brokers.listing import BrokerRow
from console.gateway.metrics import sum_known
from console.gateway.overview import load_of
from console.gateway.snapshot import Snapshot
from console.services.history.metrics import (
    BY_NAME,
    INTERVAL_MS,
    Scope,
    broker_name,
)

Table = dict[str, float | None]
#: Values by number of the metric and by name.
Samples = dict[int, Table]

#: Name of the only series of the scope `cluster`.
CLUSTER_NAME: Final = ""
#: Largest value of a sample; larger ones are faults of a broker.
VALUE_MAX: Final = 2.0**53


def samples_of(found: Snapshot) -> Samples:
    """Return the samples of a snapshot."""
    up = [row for row in found.brokers if not row.down]
    samples: Samples = {}

    def put(scope: Scope, name: str, values: Iterable[tuple[str, float | None]]) -> None:
        number = BY_NAME[scope, name].number
        samples[number] = {key: value for key, value in values if _is_valid(value)}

    def of_cluster(name: str, value: float | None) -> None:
        put("cluster", name, [(CLUSTER_NAME, value)])

    load = load_of(up)
    of_cluster("produce_rate", load.in_rate)
    of_cluster("consume_rate", load.out_rate)
    of_cluster("disk_ratio", load.disk_ratio)
    lags = sum_known(each.lag for each in found.groups.values())
    of_cluster("lag", lags if found.has_all_groups else None)
    of_cluster("dead_letters", found.dead_letters)

    topics, groups = found.topics.items(), found.groups.items()
    put("topic", "produce_rate", ((name, each.in_rate) for name, each in topics))
    put("topic", "consume_rate", ((name, each.out_rate) for name, each in topics))
    put("topic", "lag", ((name, each.worst_lag) for name, each in topics))
    put("group", "consume_rate", ((name, each.rate) for name, each in groups))
    put("group", "lag", ((name, each.lag) for name, each in groups))
    put("group", "lag_s", ((name, each.lag_seconds(found.taken_ms)) for name, each in groups))
    put("group", "dead_letters", ((name, each.dead_letters) for name, each in groups))
    put("group", "clients", ((name, each.clients) for name, each in groups))

    def of_brokers(name: str, value: Callable[[BrokerRow], float | None]) -> None:
        put("broker", name, ((broker_name(row.ref.name, row.ref.id), value(row)) for row in up))

    of_brokers("produce_rate", lambda row: row.in_rate)
    of_brokers("consume_rate", lambda row: row.out_rate)
    of_brokers("disk_ratio", lambda row: row.disk_ratio)
    of_brokers("connections", lambda row: found.connections.get(row.ref))
    of_brokers("send_p99_ms", lambda row: row.send_p99_ms)
    replicas = [] if found.replica_sets is None else found.replica_sets.replicas
    put(
        "broker",
        "replica_lag",
        ((broker_name(each.ref.name, each.ref.id), each.lag_bytes) for each in replicas),
    )
    return samples


def paces_of(found: Snapshot) -> dict[Scope, int]:
    """Return the interval between two samples of a name, ms."""
    every_ms = found.every * INTERVAL_MS
    return {"topic": every_ms, "group": every_ms}


def _is_valid(value: float | None) -> bool:
    return value is not None and isfinite(value) and 0 <= value <= VALUE_MAX
