"""Broker lookups, and merged answers of several brokers."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from core_broker.client.admin import AdminClient
from core_broker.errors import RequestRefused
from core_broker.mqadmin.lookup import (
    broker_name_at,
    cluster_addrs,
    cluster_masters,
    group_connection,
    group_stats,
    running_info,
    topic_addrs,
    total_diff,
)
from core_broker.mqadmin.session import NotFound
from core_broker.remoting.bodies import (
    BrokerData,
    ClientConnection,
    ClusterInfo,
    ConsumerConnection,
    ConsumerRunningInfo,
    ConsumeStats,
    MessageQueue,
    OffsetWrapper,
    encode_body,
)
from core_broker.remoting.codes import RequestCode, ResponseCode
from tests.support.scripted_peer import Handler, ScriptedPeer, ok, refuse

GROUP = "G"


@dataclass
class Scene:
    """A name server and two brokers with the group's retry topic."""

    admin: AdminClient
    name_server: ScriptedPeer
    a: ScriptedPeer
    b: ScriptedPeer


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(ScriptedPeer()) for _ in range(3)]
        admin = await stack.enter_async_context(AdminClient(peers[0].addr))
        peers[0].serve_route(["%RETRY%G", "T"], {"a": peers[1].addr, "b": peers[2].addr})
        yield Scene(admin, *peers)


def stats(broker: str, broker_offset: int, consumer_offset: int) -> Handler:
    queue = MessageQueue(topic="T", broker_name=broker, queue_id=0)
    entry = OffsetWrapper(broker_offset=broker_offset, consumer_offset=consumer_offset)
    body = encode_body(ConsumeStats(offset_table={queue: entry}, consume_tps=1.5))
    return lambda _: ok(body=body)


def connected(client_ids: Iterable[str]) -> Handler:
    clients = [
        ClientConnection(client_id=each, client_addr="h:1", language="JAVA", version=409)
        for each in client_ids
    ]
    body = encode_body(ConsumerConnection(connection_set=clients))
    return lambda _: ok(body=body)


def offline(_request: object) -> RequestRefused:
    return RequestRefused(ResponseCode.CONSUMER_NOT_ONLINE, "nobody")


async def test_offsets_of_all_brokers_together(scene: Scene) -> None:
    scene.a.on(RequestCode.GET_CONSUME_STATS, stats("a", 10, 4))
    scene.b.on(RequestCode.GET_CONSUME_STATS, stats("b", 3, 3))
    merged = await group_stats(scene.admin, GROUP)
    assert len(merged.offset_table) == 2
    assert merged.consume_tps == 3.0
    assert total_diff(merged.offset_table) == 6


async def test_a_group_without_offsets(scene: Scene) -> None:
    empty = encode_body(ConsumeStats())
    for broker in (scene.a, scene.b):
        broker.on(RequestCode.GET_CONSUME_STATS, lambda _: ok(body=empty))
    with pytest.raises(NotFound, match="not consume any message"):
        await group_stats(scene.admin, GROUP)


async def test_the_next_broker_is_asked_for_members_after_a_refusal(scene: Scene) -> None:
    code = RequestCode.GET_CONSUMER_CONNECTION_LIST
    scene.a.on(code, offline)
    scene.b.on(code, connected(["c"]))
    connection = await group_connection(scene.admin, GROUP)
    assert [client.client_id for client in connection.connection_set] == ["c"]
    with pytest.raises(RequestRefused, match="nobody"):
        await group_connection(scene.admin, GROUP, scene.a.addr)
    scene.b.on(code, connected([]))
    with pytest.raises(RequestRefused) as caught:
        await group_connection(scene.admin, GROUP)
    assert caught.value.code == ResponseCode.CONSUMER_NOT_ONLINE


async def test_running_info_comes_through_the_member_s_broker(scene: Scene) -> None:
    code = RequestCode.GET_CONSUMER_RUNNING_INFO
    scene.a.on(code, lambda _: refuse(ResponseCode.SYSTEM_ERROR, "not here"))
    body = encode_body(ConsumerRunningInfo(properties={"k": "v"}))
    scene.b.on(code, lambda _: ok(body=body))
    assert (await running_info(scene.admin, GROUP, "c")).properties == {"k": "v"}


async def test_brokers_of_a_cluster(scene: Scene) -> None:
    info = ClusterInfo(
        broker_addr_table={
            "b": BrokerData(broker_name="b", broker_addrs={1: "slave:1", 0: "b:1"}, cluster="C"),
            "a": BrokerData(broker_name="a", broker_addrs={0: "a:1"}, cluster="C"),
            "lost": BrokerData(broker_name="lost", broker_addrs={1: "orphan:1"}, cluster="D"),
        },
        cluster_addr_table={"C": ["b", "a", "gone"], "D": ["lost"]},
    )
    scene.name_server.on(RequestCode.GET_BROKER_CLUSTER_INFO, lambda _: ok(body=encode_body(info)))
    assert await cluster_masters(scene.admin, "C") == ["a:1", "b:1"]
    assert await cluster_masters(scene.admin, "D") == []
    assert await cluster_addrs(scene.admin, "C") == ["a:1", "b:1", "slave:1"]
    assert await cluster_addrs(scene.admin) == ["a:1", "b:1", "slave:1", "orphan:1"]
    assert await broker_name_at(scene.admin, "slave:1") == "b"
    with pytest.raises(NotFound, match="knows no broker at x:1"):
        await broker_name_at(scene.admin, "x:1")
    with pytest.raises(NotFound, match="clusterName exists"):
        await cluster_masters(scene.admin, "E")


async def test_unknown_topics_and_groups(scene: Scene) -> None:
    with pytest.raises(RequestRefused) as caught:
        await topic_addrs(scene.admin, "nope")
    assert caught.value.code == ResponseCode.TOPIC_NOT_EXIST
    with pytest.raises(NotFound, match="The group nope has no retry topic"):
        await group_stats(scene.admin, "nope")
