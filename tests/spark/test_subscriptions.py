"""Subscriptions and committed offsets of a real cluster, kept in a lake."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core_broker.client.subscription import build_subscription
from core_broker.message.model import Message
from core_broker.remoting.bodies import ConsumerData, HeartbeatData
from spark_jobs.jobs.subscriptions import ASKED_EVERY_MS, subscriptions_of, with_subscriptions
from spark_jobs.sources.connection import Connection
from spark_jobs.spark.lake_writer import LakeWriter, delete_unreferenced, exclusive_writer
from tests.api.stored import routed_topic, store
from tests.api.traffic import Traffic
from tests.support.cluster import Cluster
from trace.lake import Lake, Snapshot
from trace.subscriptions import Subscription

NOW_MS = 2_000_000_000_000
NOWHERE = "127.0.0.1:1"


@pytest.fixture
def traffic(shared_cluster: Cluster) -> Iterator[Traffic]:
    found = Traffic(shared_cluster.namesrv_addr, shared_cluster.broker_addr)
    yield found
    found.close()


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LakeWriter]:
    lake = Lake(tmp_path)
    with exclusive_writer(lake) as found:
        lake.commit(Snapshot(topic="T", run=7))
        yield found


def rows_of(lake: Lake, group: str) -> list[Subscription]:
    rows = subscriptions_of(lake, lake.snapshot())
    return [row for row in rows if row.consumer_group == group]


def test_the_answer_of_the_cluster_is_kept_and_replaced(
    writer: LakeWriter, traffic: Traffic
) -> None:
    lake, topic = writer.lake, routed_topic(traffic, "subscribed")
    group, silent = traffic.group("picky"), traffic.group("silent")
    store(traffic, *(Message(topic, b"1") for _ in range(3)))
    traffic.commit(group, topic, 0, 2)
    wanted = build_subscription(topic, "paid || open", version=1)
    consumer = ConsumerData(group_name=group, subscription_data_set=[wanted])
    with traffic.foreign_client(HeartbeatData(client_id="picky", consumer_data_set=[consumer])):
        first = with_subscriptions(
            writer, lake.snapshot(), Connection(namesrv=traffic.namesrv_addr), NOW_MS
        )
    assert (first.run, first.subscriptions_run, first.subscriptions_ms) == (8, 8, NOW_MS)
    [row] = rows_of(lake, group)
    assert (row.topic, row.accepted_tags, row.until_ms) == (topic, ["open", "paid"], None)
    assert row.consumed_until_ms is not None
    assert row.consumed_until_ms < NOW_MS, "one message is not consumed"
    assert rows_of(lake, silent) == []

    early = with_subscriptions(
        writer, first, Connection(namesrv=traffic.namesrv_addr), NOW_MS + ASKED_EVERY_MS - 1
    )
    assert early is first
    traffic.commit(group, topic, 0, 3)
    later_ms = NOW_MS + ASKED_EVERY_MS
    second = with_subscriptions(writer, first, Connection(namesrv=traffic.namesrv_addr), later_ms)
    [row] = rows_of(lake, group)
    assert (row.accepted_tags, row.consumed_until_ms) == (["open", "paid"], later_ms)
    assert second.subscriptions_run == 9
    replaced = delete_unreferenced(lake, second, among=())
    assert replaced == {lake.subscriptions_file(8)}
    assert delete_unreferenced(lake, second, among=replaced) == set()
    assert not lake.subscriptions_file(8).exists()
    assert rows_of(lake, group) == [row]


@pytest.mark.parametrize("connection", [None, Connection(namesrv=NOWHERE)])
def test_without_a_cluster_the_lake_stays_as_it_was(
    writer: LakeWriter, connection: Connection | None
) -> None:
    snapshot = writer.lake.snapshot()
    assert with_subscriptions(writer, snapshot, connection, NOW_MS) is snapshot


def test_an_empty_lake_asks_for_nothing(tmp_path: Path, traffic: Traffic) -> None:
    with exclusive_writer(Lake(tmp_path)) as writer:
        with_subscriptions(
            writer, writer.lake.snapshot(), Connection(namesrv=traffic.namesrv_addr), NOW_MS
        )
    assert Lake(tmp_path).snapshot() == Snapshot()
