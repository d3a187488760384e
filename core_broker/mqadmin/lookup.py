"""Lookups: brokers of a cluster, brokers of a topic, offsets and connections of a group.

Compatible in outcome with RocketMQ's CommandUtil and DefaultMQAdminExtImpl.
"""

from collections.abc import Mapping

from core_broker.client.admin import AdminClient
from core_broker.client.routes import broker_addr
from core_broker.errors import RequestRefused
from core_broker.message.topics import RETRY_PREFIX, retry_topic
from core_broker.mqadmin.session import NotFound
from core_broker.remoting.bodies import (
    BrokerData,
    ClusterInfo,
    ConsumerConnection,
    ConsumerRunningInfo,
    ConsumeStats,
    MessageQueue,
    OffsetWrapper,
    TopicRouteData,
)
from core_broker.remoting.codes import ResponseCode

NO_SUCH_CLUSTER = (
    "Make sure the specified clusterName exists or the name server connected to is correct: {}."
)


def brokers_of_cluster(info: ClusterInfo, cluster: str) -> list[BrokerData]:
    """Return a cluster's broker sets, sorted by name; raise NotFound for an unknown cluster."""
    names = info.cluster_addr_table.get(cluster)
    if names is None:
        raise NotFound(NO_SUCH_CLUSTER.format(cluster))
    brokers = (info.broker_addr_table.get(name) for name in sorted(names))
    return [broker for broker in brokers if broker is not None]


async def cluster_masters(admin: AdminClient, cluster: str) -> list[str]:
    """Return the addresses of a cluster's masters."""
    brokers = brokers_of_cluster(await admin.cluster_info(), cluster)
    return [broker.master_addr for broker in brokers if broker.master_addr]


async def cluster_addrs(admin: AdminClient, cluster: str | None = None) -> list[str]:
    """Return the addresses of all masters and slaves, of one cluster or of all clusters."""
    info = await admin.cluster_info()
    clusters = sorted(info.cluster_addr_table) if cluster is None else [cluster]
    return [
        addr
        for name in clusters
        for broker in brokers_of_cluster(info, name)
        for _, addr in sorted(broker.broker_addrs.items())
    ]


async def masters(
    admin: AdminClient, broker_addr: str | None, cluster_name: str | None
) -> list[str]:
    """Return the broker of -b, else the masters of the cluster of -c."""
    if broker_addr:
        return [broker_addr]
    assert cluster_name
    return await cluster_masters(admin, cluster_name)


async def masters_and_slaves(
    admin: AdminClient, broker_addr: str | None, cluster_name: str | None
) -> list[str]:
    """Return the broker of -b, else all brokers of the cluster of -c, else all brokers."""
    return [broker_addr] if broker_addr else await cluster_addrs(admin, cluster_name)


async def broker_name_at(admin: AdminClient, addr: str) -> str:
    for name, broker in (await admin.cluster_info()).broker_addr_table.items():
        if addr in broker.broker_addrs.values():
            return name
    raise NotFound(f"The name server knows no broker at {addr}.")


def addrs_of_route(route: TopicRouteData) -> dict[str, str]:
    """Return one address of each broker set, by broker name.

    The address is the master's, else that of the slave with the lowest broker id.
    """
    addrs = {broker.broker_name: broker_addr(broker.broker_addrs) for broker in route.broker_datas}
    return {name: addr for name, addr in sorted(addrs.items()) if addr}


async def topic_addrs(admin: AdminClient, topic: str) -> dict[str, str]:
    """Return one address of each broker set with the topic, by broker name."""
    return addrs_of_route(await admin.topic_route(topic))


async def group_names(admin: AdminClient) -> list[str]:
    """Return the groups with a retry topic, in the order of the topic list."""
    topics = await admin.topic_list()
    return [topic.removeprefix(RETRY_PREFIX) for topic in topics if topic.startswith(RETRY_PREFIX)]


async def group_addrs(admin: AdminClient, group: str) -> dict[str, str]:
    """Return the brokers with the group's retry topic; a consumer's first heartbeat creates it."""
    try:
        return await topic_addrs(admin, retry_topic(group))
    except RequestRefused as refused:
        if refused.code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        raise NotFound(f"The group {group} has no retry topic: no consumer has joined.") from None


async def group_stats(admin: AdminClient, group: str, topic: str | None = None) -> ConsumeStats:
    """Return the offsets and rates of a group, merged from all brokers.

    Raises NotFound for a group without offsets.
    """
    table: dict[MessageQueue, OffsetWrapper] = {}
    tps = 0.0
    for addr in (await group_addrs(admin, group)).values():
        stats = await admin.consume_stats(addr, group, topic)
        table |= stats.offset_table
        tps += stats.consume_tps
    if not table:
        raise NotFound(
            "Not found the consumer group consume stats, because return offset table is empty, "
            f"maybe the consumer {group} not consume any message."
        )
    return ConsumeStats(offset_table=table, consume_tps=tps)


def total_diff(table: Mapping[MessageQueue, OffsetWrapper]) -> int:
    """Return the lag: the number of messages between consumer offset and broker offset."""
    return sum(entry.broker_offset - entry.consumer_offset for entry in table.values())


async def group_connection(
    admin: AdminClient, group: str, addr: str | None = None
) -> ConsumerConnection:
    """Return members and subscriptions, from the given broker or the first with a member."""
    refused: RequestRefused | None = None
    addrs = [addr] if addr else list((await group_addrs(admin, group)).values())
    for broker in addrs:
        try:
            connections = await admin.consumer_connections(broker, group)
        except RequestRefused as error:
            refused = error
            continue
        if connections.connection_set:
            return connections
    raise refused or RequestRefused(
        ResponseCode.CONSUMER_NOT_ONLINE, f"Not found the consumer group connection of {group}."
    )


async def running_info(
    admin: AdminClient, group: str, client_id: str, *, jstack: bool = False
) -> ConsumerRunningInfo:
    """Return the running info of one member, through the first broker that answers."""
    refused: RequestRefused | None = None
    for addr in (await group_addrs(admin, group)).values():
        try:
            return await admin.consumer_running_info(addr, group, client_id, jstack)
        except RequestRefused as error:
            refused = error
    raise refused or NotFound(f"No broker has the group {group}.")
