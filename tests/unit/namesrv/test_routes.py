"""The route table alone: time is a number, a connection is any object."""

from dataclasses import dataclass
from typing import Any

import pytest

from core_broker.remoting.bodies import DataVersion, TopicConfig
from namesrv.routes import BROKER_EXPIRY_MS, BrokerIdentity, LiveBroker, MasterOfSlave, RouteTable


@dataclass(frozen=True)
class Link:
    """A connection; the table only compares connections."""

    name: str

    def close(self, reason: str) -> None: ...


OLD, NEW = Link("old"), Link("new")


def identity(
    name: str = "b", broker_id: int = 0, addr: str = "1:1", cluster: str = "c"
) -> BrokerIdentity:
    return BrokerIdentity(cluster, name, broker_id, addr)


def register(
    table: RouteTable,
    who: BrokerIdentity,
    *topics: str,
    version: int = 1,
    connection: Link = OLD,
    now_ms: int = 0,
    **config: Any,
) -> MasterOfSlave:
    live = LiveBroker(who.name, connection, now_ms, DataVersion(version, 0), "ha:" + who.addr, [])
    return table.register(who, live, [TopicConfig(topic_name=topic, **config) for topic in topics])


def queues(table: RouteTable, topic: str) -> dict[str, tuple[int, int, int]]:
    route = table.route(topic)
    assert route is not None
    return {
        each.broker_name: (each.read_queue_nums, each.write_queue_nums, each.perm)
        for each in route.queue_datas
    }


@pytest.fixture
def table() -> RouteTable:
    return RouteTable()


def test_a_master_registers_its_topics(table: RouteTable) -> None:
    assert register(table, identity(), "T1", read_queue_nums=2) == MasterOfSlave()
    route = table.route("T1")
    assert route is not None
    assert [each.broker_name for each in route.queue_datas] == ["b"]
    assert [each.broker_addrs for each in route.broker_datas] == [{0: "1:1"}]
    assert route.filter_server_table == {}
    assert table.route("T2") is None
    assert table.clusters == {"c": {"b"}}


def test_two_brokers_serve_one_topic(table: RouteTable) -> None:
    register(table, identity("a", addr="1:1"), "T", write_queue_nums=4)
    register(table, identity("b", addr="2:1"), "T", write_queue_nums=8)
    assert queues(table, "T") == {"a": (16, 4, 6), "b": (16, 8, 6)}


def test_topics_count_only_with_a_new_data_version(table: RouteTable) -> None:
    register(table, identity(), "T", perm=6, version=1)
    assert table.take_changed() == {"T"}
    register(table, identity(), "T", "T2", perm=4, version=1)
    assert queues(table, "T")["b"][2] == 6
    assert table.route("T2") is None
    assert table.take_changed() == set()
    register(table, identity(), "T", perm=4, version=2)
    assert queues(table, "T")["b"][2] == 4
    assert table.take_changed() == {"T"}


def test_a_change_marks_only_the_affected_topics(table: RouteTable) -> None:
    register(table, identity("a", addr="1:1"), "T", "A")
    register(table, identity("b", addr="2:1"), "T", "B")
    table.take_changed()
    register(table, identity("b", addr="3:1"))
    assert table.take_changed() == {"T", "B"}
    table.wipe_write_perm("a")
    assert table.take_changed() == {"T", "A"}
    table.delete_topic("A")
    assert table.take_changed() == {"A"}
    table.expire(BROKER_EXPIRY_MS + 1)
    assert table.take_changed() == {"T", "B"}
    register(table, identity("a"), "C")
    table.invalidate()
    assert table.take_changed() == {"C"}


def test_an_absent_topic_stays(table: RouteTable) -> None:
    register(table, identity(), "T1", "T2", version=1)
    register(table, identity(), "T3", version=2)
    assert set(table.topics) == {"T1", "T2", "T3"}


def test_a_slave_gets_its_master_and_registers_no_topics(table: RouteTable) -> None:
    slave = identity(broker_id=1, addr="2:1")
    assert register(table, slave, "T") == MasterOfSlave(None, None)
    assert table.route("T") is None
    register(table, identity(), "T")
    assert register(table, slave) == MasterOfSlave("1:1", "ha:1:1")
    route = table.route("T")
    assert route is not None
    assert route.broker_datas[0].broker_addrs == {0: "1:1", 1: "2:1"}


def test_a_slave_that_becomes_master_keeps_one_entry(table: RouteTable) -> None:
    register(table, identity(broker_id=1, addr="2:1"))
    register(table, identity(broker_id=0, addr="2:1"), "T")
    assert table.brokers["b"].broker_addrs == {0: "2:1"}
    assert "T" in table.topics


def test_a_replaced_master_does_not_come_back(table: RouteTable) -> None:
    """Controllers have elected another master; the old one does not know it yet."""

    def master(addr: str, epoch: int) -> None:
        who = identity(addr=addr)
        version = DataVersion(epoch, 0, epoch)
        live = LiveBroker(who.name, OLD, 0, version, "ha:" + addr, [])
        table.register(who, live, [TopicConfig(topic_name="T")])

    master("1:1", 5)
    master("2:1", 6)
    assert table.brokers["b"].broker_addrs == {0: "2:1"}
    master("1:1", 5)
    assert table.brokers["b"].broker_addrs == {0: "2:1"}
    assert "1:1" not in table.live
    master("1:1", 7)
    assert table.brokers["b"].broker_addrs == {0: "1:1"}


def test_a_lost_connection_removes_the_broker_at_once(table: RouteTable) -> None:
    register(table, identity("a", addr="1:1"), "T", connection=OLD)
    register(table, identity("b", addr="2:1"), "T", "U", connection=NEW)
    assert table.connection_lost(NEW) == ["2:1"]
    assert set(queues(table, "T")) == {"a"}
    assert table.route("U") is None
    assert table.clusters == {"c": {"a"}}
    assert table.connection_lost(NEW) == []
    table.connection_lost(OLD)
    assert (table.topics, table.brokers, table.clusters, table.live) == ({}, {}, {}, {})


def test_a_reconnected_broker_survives_the_close_of_its_old_connection(table: RouteTable) -> None:
    register(table, identity(), "T", connection=OLD)
    register(table, identity(), "T", connection=NEW)
    assert table.connection_lost(OLD) == []
    assert table.route("T") is not None


def test_a_renamed_broker_leaves_nothing_under_its_old_name(table: RouteTable) -> None:
    register(table, identity("a"), "T")
    register(table, identity("b", cluster="c2"), "T")
    assert set(queues(table, "T")) == {"b"}
    assert table.clusters == {"c2": {"b"}}
    register(table, identity("b", cluster="c3"), "T")
    assert table.clusters == {"c3": {"b"}}


def test_topics_stay_while_a_slave_lives(table: RouteTable) -> None:
    register(table, identity(), "T", connection=OLD)
    register(table, identity(broker_id=1, addr="2:1"), connection=NEW)
    table.connection_lost(OLD)
    route = table.route("T")
    assert route is not None
    assert route.broker_datas[0].broker_addrs == {1: "2:1"}


def test_a_broker_without_heartbeat_for_120_seconds_is_removed(table: RouteTable) -> None:
    register(table, identity("a", addr="1:1"), "T", now_ms=0)
    register(table, identity("b", addr="2:1"), "T", now_ms=0)
    table.refresh("2:1", 1)
    table.refresh("3:1", 1)
    assert table.expire(BROKER_EXPIRY_MS) == []
    assert [each.name for each in table.expire(BROKER_EXPIRY_MS + 1)] == ["a"]
    assert set(queues(table, "T")) == {"b"}


def test_unregister(table: RouteTable) -> None:
    register(table, identity(), "T")
    table.unregister(identity())
    assert table.route("T") is None
    table.unregister(identity())


def test_the_late_unregistration_of_a_replaced_process_is_ignored(table: RouteTable) -> None:
    register(table, identity(addr="1:1"), "T")
    register(table, identity(addr="9:1"), "T")
    table.unregister(identity(addr="1:1"))
    route = table.route("T")
    assert route is not None
    assert route.broker_datas[0].broker_addrs == {0: "9:1"}


def test_write_permission_is_wiped_until_the_topics_change(table: RouteTable) -> None:
    register(table, identity("a", addr="1:1"), "T", "U", perm=7)
    register(table, identity("b", addr="2:1"), "T")
    assert table.wipe_write_perm("a") == 2
    assert (queues(table, "T")["a"][2], queues(table, "T")["b"][2]) == (5, 6)
    register(table, identity("a", addr="1:1"), "T", "U", perm=7)
    assert queues(table, "T")["a"][2] == 5
    assert table.add_write_perm("a") == 2
    assert queues(table, "T")["a"][2] == 6
    assert table.wipe_write_perm("nobody") == 0


def test_lists_of_topics(table: RouteTable) -> None:
    register(table, identity("a", addr="1:1", cluster="c1"), "T", "U", topic_sys_flag=1)
    register(table, identity("b", addr="2:1", cluster="c2"), "V", topic_sys_flag=2)
    assert table.topics_of_cluster("c1") == ["T", "U"]
    assert table.topics_of_cluster("nowhere") == []
    assert table.topics_by_flag(lambda flag: flag == 2) == ["V"]
    assert table.system_topics() == (["c1", "a", "c2", "b"], "1:1")
    info = table.cluster_info()
    assert info.cluster_addr_table == {"c1": ["a"], "c2": ["b"]}
    assert info.broker_addr_table["b"].broker_addrs == {0: "2:1"}
    assert RouteTable().system_topics() == ([], None)


def test_deleting_a_topic_everywhere_or_in_one_cluster(table: RouteTable) -> None:
    register(table, identity("a", addr="1:1", cluster="c1"), "T", "U")
    register(table, identity("b", addr="2:1", cluster="c2"), "T", "U")
    table.delete_topic("T", "c1")
    assert set(queues(table, "T")) == {"b"}
    table.delete_topic("U")
    assert table.route("U") is None
    table.delete_topic("nothing")
    table.delete_topic("T", "nowhere")
    assert set(table.topics) == {"T"}
