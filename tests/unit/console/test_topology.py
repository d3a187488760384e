"""The topology: nodes and edges from answers of brokers."""

from dataclasses import replace

from console.areas.topology.asking import as_measured
from console.gateway.clients import AllClients
from console.gateway.engine.answers import Answer
from console.gateway.topology.building import GroupMeasures, Registered, TopicMeasures, topology_of
from console.gateway.topology.model import Edge, Node, Topology
from tests.unit.console.topologies import AT_MS, broker, client, group, metrics, shop, topic


def node(topology: Topology, key: str) -> Node:
    return next(node for node in topology.nodes if node.key == key)


def edge(topology: Topology, source: str, target: str) -> Edge:
    return next(edge for edge in topology.edges if edge.ends == (source, target))


def test_every_object_is_a_node_and_every_connection_an_edge() -> None:
    found = topology_of(shop())
    assert {node.key for node in found.nodes} == {
        "namesrv:ns:9876",
        *("broker:a", "broker:b", "producer:shop", "producer:CLIENT_INNER_PRODUCER"),
        *("topic:orders", "topic:payments", "topic:TBW102"),
        *("topic:%RETRY%billing", "topic:%DLQ%billing"),
        *("group:billing", "group:idle", "group:TOOLS"),
    }
    assert {(edge.kind, *edge.ends) for edge in found.edges} == {
        ("registration", "namesrv:ns:9876", "broker:a"),
        ("registration", "namesrv:ns:9876", "broker:b"),
        ("connection", "producer:shop", "broker:a"),
        ("connection", "producer:shop", "broker:b"),
        ("connection", "producer:CLIENT_INNER_PRODUCER", "broker:a"),
        ("connection", "producer:CLIENT_INNER_PRODUCER", "broker:b"),
        ("storage", "broker:a", "topic:orders"),
        ("storage", "broker:b", "topic:orders"),
        ("storage", "broker:a", "topic:payments"),
        ("storage", "broker:a", "topic:%RETRY%billing"),
        ("storage", "broker:a", "topic:%DLQ%billing"),
        ("storage", "broker:a", "topic:TBW102"),
        ("consumption", "topic:orders", "group:billing"),
        ("consumption", "topic:%RETRY%billing", "group:billing"),
        ("consumption", "topic:payments", "group:idle"),
        ("dead_letters", "group:billing", "topic:%DLQ%billing"),
    }


def test_rates_and_lags_are_those_of_the_brokers_and_unknown_values_are_none() -> None:
    found = topology_of(shop())
    assert edge(found, "broker:b", "topic:orders").rate == 1.5
    assert edge(found, "broker:a", "topic:payments").rate is None
    assert edge(found, "topic:orders", "group:billing").lag == 40
    assert edge(found, "topic:%RETRY%billing", "group:billing").lag is None
    assert edge(found, "producer:shop", "broker:a").clients == 1
    assert edge(found, "group:billing", "topic:%DLQ%billing").count == 9
    assert (node(found, "topic:orders").in_rate, node(found, "topic:orders").lag) == (4.5, 40)
    assert node(found, "topic:payments").in_rate is None
    assert node(found, "broker:a").in_rate == 7.5
    assert node(found, "group:billing").dead_letters == 9
    assert node(found, "group:idle").dead_letters == 0
    assert node(found, "producer:shop").clients == 1, "one client with two connections"
    assert node(topology_of(shop(dead_letters=None)), "group:idle").dead_letters is None


def test_consume_rates_come_from_all_brokers_of_a_topic() -> None:
    def rates(**of_brokers: dict[str, dict[str, float]]) -> list[float | None]:
        measures = replace(shop().of_groups, rates=of_brokers)
        found = topology_of(shop(of_groups=measures))
        pairs = (("orders", "billing"), ("payments", "idle"))
        return [edge(found, f"topic:{one}", f"group:{other}").rate for one, other in pairs]

    assert rates() == [None, None], "no broker reports rates of topics"
    one = {"billing": {"orders": 3.0, "%RETRY%billing": 1.0}}
    assert rates(a=one) == [None, 0.0], "the other broker of orders reports none"
    assert rates(a=one, b={"billing": {"orders": 0.5}}) == [3.5, 0.0]
    assert rates(a=one, b={}) == [3.0, 0.0]


def test_the_consume_rate_of_a_broker_that_is_down_is_unknown() -> None:
    of_groups = replace(shop().of_groups, rates={"a": {"billing": {"orders": 3.0}}, "b": {}})
    rows = (broker("a"), broker("b", state="down"))
    found = topology_of(shop(of_groups=of_groups, brokers=rows, lost=frozenset({"b"})))
    assert edge(found, "topic:orders", "group:billing").rate is None
    assert edge(found, "topic:payments", "group:idle").rate == 0.0


def test_the_time_of_a_topology_is_that_of_its_oldest_metrics() -> None:
    of_topics = replace(shop().of_topics, at_ms=AT_MS + 5)
    assert topology_of(shop(of_topics=of_topics)).measured_ms == AT_MS
    assert topology_of(shop()).measured_ms == AT_MS, "the topics have no time"
    unmeasured = topology_of(shop(of_groups=GroupMeasures()))
    assert unmeasured.measured_ms is None
    for found, asked_at_ms, shown_ms in (
        (topology_of(shop()), AT_MS + 9, AT_MS),
        (topology_of(shop()), AT_MS - 9, AT_MS - 9),
        (unmeasured, AT_MS + 9, AT_MS + 9),
    ):
        assert as_measured(Answer(found, (), asked_at_ms)).asked_at_ms == shown_ms


def test_a_group_is_behind_only_with_lag_older_than_a_commit_interval() -> None:
    found = topology_of(shop())
    assert node(found, "group:billing").behind
    assert edge(found, "topic:orders", "group:billing").behind
    assert not node(found, "group:idle").behind
    assert node(found, "group:idle").state == "offline"


def test_a_broadcasting_group_has_no_lag() -> None:
    measures = GroupMeasures({"billing": metrics(40, "orders", broadcasting=True)})
    found = topology_of(shop(of_groups=measures))
    assert node(found, "group:billing").lag is None
    assert edge(found, "topic:orders", "group:billing").lag is None


def test_values_of_a_broker_that_is_down_are_stale_and_its_rates_unknown() -> None:
    rows = (broker("a"), broker("b", state="down"))
    found = topology_of(shop(brokers=rows, lost=frozenset({"b"})))
    assert node(found, "broker:b").state == "down"
    assert node(found, "broker:b").in_rate is None
    stored = edge(found, "broker:b", "topic:orders")
    assert (stored.rate, stored.down, stored.stale) == (None, True, True)
    assert edge(found, "namesrv:ns:9876", "broker:b").down
    orders = node(found, "topic:orders")
    assert (orders.stale, orders.in_rate, orders.out_rate) == (True, 3.0, None)
    assert edge(found, "topic:orders", "group:billing").stale
    assert edge(found, "topic:orders", "group:billing").lag == 40, "the last known lag remains"
    assert not node(found, "topic:payments").stale


def test_a_broker_with_a_dead_slave_is_partly_down() -> None:
    rows = (broker("a"), broker("a", 1, "down"), broker("b", 1, "unregistered"))
    found = topology_of(shop(brokers=rows))
    assert node(found, "broker:a").state == "partly"
    assert node(found, "broker:a").in_rate == 7.5
    assert node(found, "broker:b").state == "partly"
    assert node(found, "broker:b").in_rate is None, "a slave's rates are copies"


def test_what_a_name_server_does_not_list_has_no_registration() -> None:
    servers = (
        Registered("one:1", ("a",), down=False),
        Registered("two:1", None, down=True),
        Registered("three:1", ("b", "elsewhere"), down=True),
    )
    found = topology_of(shop(name_servers=servers))
    pairs = {edge.ends for edge in found.edges if edge.kind == "registration"}
    assert pairs == {("namesrv:one:1", "broker:a"), ("namesrv:three:1", "broker:b")}
    assert node(found, "namesrv:two:1").state == "down"
    assert edge(found, "namesrv:three:1", "broker:b").stale


def test_objects_that_only_clients_name_are_missing_or_unknown_in_an_outage() -> None:
    clients = AllClients((client("c", {"ghosts": ("nowhere", "a:b/ü")}),), 0)
    found = topology_of(shop(clients=clients))
    for key in ("group:ghosts", "topic:nowhere", "topic:a:b/ü"):
        assert (node(found, key).state, node(found, key).has_page) == ("missing", False)
    assert edge(found, "topic:nowhere", "group:ghosts").down
    outage = topology_of(shop(clients=clients, lost=frozenset({"b"})))
    assert node(outage, "topic:nowhere").state == "unknown"
    older = topology_of(shop(clients=clients, current=False))
    assert node(older, "topic:nowhere").state == "unknown", "the topic may be new"
    assert not edge(older, "topic:nowhere", "group:ghosts").down


def test_a_retry_topic_that_only_clients_name_is_a_retry_topic() -> None:
    clients = AllClients((client("c", {"ghosts": ("%RETRY%ghosts",)}),), 0)
    assert node(topology_of(shop(clients=clients)), "topic:%RETRY%ghosts").is_retry


def test_clients_of_groups_that_were_not_asked_are_unknown() -> None:
    sources = shop(of_groups=GroupMeasures(), clients=AllClients((), 3))
    billing = node(topology_of(sources), "group:billing")
    assert (billing.clients, billing.state, billing.lag) == (None, "unknown", None)
    assert topology_of(sources).clients_left_out == 3


def test_unmeasured_topics_and_groups_are_counted() -> None:
    sources = shop(of_topics=TopicMeasures(left_out=7), of_groups=GroupMeasures(left_out=2))
    assert topology_of(sources).unmeasured == 9


def test_an_empty_or_silent_cluster_has_a_topology() -> None:
    silent = shop(topics=(), groups=(), clients=AllClients((), 0), complete=False)
    silent = replace(silent, of_topics=TopicMeasures(), of_groups=GroupMeasures())
    found = topology_of(silent)
    assert {node.kind for node in found.nodes} == {"namesrv", "broker"}
    assert not found.complete
    assert topology_of(replace(silent, name_servers=(), brokers=())).nodes == ()


def test_system_objects_are_marked() -> None:
    found = topology_of(shop(groups=(group("TOOLS", system=True),), topics=(topic("x"),)))
    assert node(found, "producer:CLIENT_INNER_PRODUCER").system
    assert node(found, "group:TOOLS").system
    assert not node(found, "topic:x").system
