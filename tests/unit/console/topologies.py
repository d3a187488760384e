"""Sources and topologies for the tests of the topology."""

from collections.abc import Iterable, Mapping
from typing import Any

from console.gateway.brokers.listing import BrokerRow, State, broker_row
from console.gateway.clients import AllClients, ConnectedClient
from console.gateway.engine.session import BrokerRef
from console.gateway.groups.listing import GroupRow
from console.gateway.groups.metrics import GroupMetrics
from console.gateway.topics.listing import Kind, TopicRow
from console.gateway.topology.building import (
    GroupMeasures,
    Registered,
    Sources,
    TopicMeasures,
    topology_of,
)
from console.gateway.topology.model import Topology

#: Time of the metrics, milliseconds since the epoch.
AT_MS = 1_700_000_000_000


def broker(name: str, broker_id: int = 0, state: State = "up", rate: str = "7.5") -> BrokerRow:
    table = {"putTps": f"{rate} 1 1", "getTransferedTps": "2 1 1"}
    ref = BrokerRef(name, broker_id, f"{name}.{broker_id}:10911")
    return broker_row(ref, "c", table, state=state)


def topic(name: str, *brokers: str, kind: Kind = "normal") -> TopicRow:
    return TopicRow(name, kind, 6, 4, 4, brokers or ("a",), False, False, 0)


def group(name: str, *brokers: str, system: bool = False) -> GroupRow:
    return GroupRow(name, system, True, 16, brokers or ("a",), False)


def client(
    client_id: str,
    groups: Mapping[str, tuple[str, ...]],
    producers: Iterable[str] = (),
    brokers: tuple[str, ...] = ("a",),
) -> ConnectedClient:
    return ConnectedClient(
        client_id, "10.0.0.1:1", "remoting", "JAVA", "4.9.8", groups, tuple(producers), brokers, 1
    )


def metrics(lag: int | None, *topics: str, **more: Any) -> GroupMetrics:
    values = {"retry_lag": 0, "pending_since_ms": None, "rate": 1.0, "clients": 1, **more}
    return GroupMetrics(lag=lag, topics=topics, dead_letters=0, **values)


def shop(**more: Any) -> Sources:
    """Two brokers, orders and payments, billing with lag, an offline group, a DLQ."""
    values: dict[str, Any] = {
        "name_servers": (Registered("ns:9876", ("a", "b"), down=False),),
        "brokers": (broker("a"), broker("b")),
        "topics": (
            topic("orders", "a", "b"),
            topic("payments", "a"),
            topic("%RETRY%billing", kind="retry"),
            topic("%DLQ%billing", kind="dlq"),
            topic("TBW102", kind="system"),
        ),
        "groups": (group("billing", "a", "b"), group("idle"), group("TOOLS", system=True)),
        "clients": AllClients(
            (
                client("c1", {"billing": ("orders", "%RETRY%billing")}),
                client("p1", {}, ("shop", "CLIENT_INNER_PRODUCER"), ("a", "b")),
            ),
            0,
        ),
        "of_topics": TopicMeasures(
            {"orders": {"a": 3.0, "b": 1.5}, "payments": {"a": None}},
            {"orders": 4.0},
            {"billing": {"orders": 40}, "idle": {"payments": 5}},
        ),
        "of_groups": GroupMeasures(
            {
                "billing": metrics(40, "orders", pending_since_ms=AT_MS - 60_000),
                "idle": metrics(5, "payments", clients=0, pending_since_ms=AT_MS - 1_000),
            },
            at_ms=AT_MS,
        ),
        "dead_letters": {"billing": 9},
        **more,
    }
    return Sources(**values)


def wide(topics: int) -> Topology:
    """Many topics, each with a group, on three brokers; lag grows with the number."""
    names = ("a", "b", "c")
    sources = Sources(
        name_servers=(Registered("ns:9876", names, down=False),),
        brokers=tuple(broker(name) for name in names),
        topics=tuple(topic(f"t{number:05d}", *names) for number in range(topics)),
        groups=tuple(group(f"g{number:05d}", *names) for number in range(topics)),
        of_topics=TopicMeasures(
            {f"t{number:05d}": {"a": 1.0, "b": 1.0, "c": 1.0} for number in range(topics)},
            {},
            {f"g{number:05d}": {f"t{number:05d}": number} for number in range(topics)},
        ),
        of_groups=GroupMeasures(
            {f"g{number:05d}": metrics(number) for number in range(topics)}, at_ms=AT_MS
        ),
        dead_letters={},
    )
    return topology_of(sources)
