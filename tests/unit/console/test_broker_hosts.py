"""Brokers by host: one machine may run one broker per core."""

from console.gateway.brokers.listing import BrokerRow, State, broker_row
from console.gateway.engine.known_brokers import BrokerRef
from console.services.clusters.hosts import are_shared, by_host


def row(name: str, addr: str, rate: str, number: int = 0, state: State = "up") -> BrokerRow:
    return broker_row(
        BrokerRef(name, number, addr), "C1", {"putTps": f"{rate} 0.0 0.0"}, state=state
    )


def test_brokers_of_a_machine_are_together() -> None:
    rows = [
        row("a", "10.0.0.1:10911", "10"),
        row("b", "10.0.0.2:10911", "20"),
        row("c", "10.0.0.1:10921", "5"),
        row("c", "10.0.0.1:10931", "5", number=1),
    ]
    first, second = by_host(rows)
    assert [each.ref.addr for each in first.brokers] == [
        "10.0.0.1:10911",
        "10.0.0.1:10921",
        "10.0.0.1:10931",
    ]
    assert (first.name, first.load.in_rate) == ("10.0.0.1", 15), "a slave copies its master"
    assert (second.name, second.load.in_rate) == ("10.0.0.2", 20)
    assert are_shared([first, second])
    assert not are_shared([second])
    assert by_host([]) == ()


def test_a_sum_has_no_rate_of_a_broker_that_is_down() -> None:
    (host,) = by_host([row("a", "[::1]:1", "10"), row("b", "[::1]:2", "7", state="down")])
    assert (host.name, host.load.in_rate) == ("[::1]", 10)
    (unknown,) = by_host([row("a", "[::1]:1", "10", state="down")])
    assert unknown.load.in_rate is None
