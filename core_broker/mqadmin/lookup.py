"""Where things are: brokers of a cluster, brokers of a topic, what all brokers say about a group.

Compatible in outcome with RocketMQ's CommandUtil and DefaultMQAdminExtImpl.
"""

from collections.abc import Mapping

from core_broker.client.admin import AdminClient
from core_broker.client.routes import broker_addr
from core_broker.errors import RequestRefused
from core_broker.message.topics import retry_topic
from core_broker.mqadmin.session import NotThere
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
    """The broker sets of a cluster by name; NotThere when the name server knows no such cluster."""
    names = info.cluster_addr_table.get(cluster)
    if names is None:
        raise NotThere(NO_SUCH_CLUSTER.format(cluster))
    found = (info.broker_addr_table.get(name) for name in sorted(names))
    return [broker for broker in found if broker is not None]


async def cluster_masters(admin: AdminClient, cluster: str) -> list[str]:
    """The addresses of a cluster's masters."""
    brokers = brokers_of_cluster(await admin.cluster_info(), cluster)
    return [broker.master_addr for broker in brokers if broker.master_addr]


async def cluster_addrs(admin: AdminClient, cluster: str | None = None) -> list[str]:
    """The addresses of all masters and slaves, of one cluster or of all."""
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
    """The one broker of -b, else the masters of the cluster of -c."""
    if broker_addr:
        return [broker_addr]
    assert cluster_name
    return await cluster_masters(admin, cluster_name)


async def broker_name_at(admin: AdminClient, addr: str) -> str:
    for name, broker in (await admin.cluster_info()).broker_addr_table.items():
        if addr in broker.broker_addrs.values():
            return name
    raise NotThere(f"The name server knows no broker at {addr}.")


def addrs_of_route(route: TopicRouteData) -> dict[str, str]:
    """The address to ask on each broker set, by broker name: the master, else the lowest slave."""
    addrs = {broker.broker_name: broker_addr(broker.broker_addrs) for broker in route.broker_datas}
    return {name: addr for name, addr in sorted(addrs.items()) if addr}


async def topic_addrs(admin: AdminClient, topic: str) -> dict[str, str]:
    """The address to ask on each broker set that has the topic, by broker name."""
    return addrs_of_route(await admin.topic_route(topic))


async def group_addrs(admin: AdminClient, group: str) -> dict[str, str]:
    """The brokers that have the group's retry topic, which every consumer makes when it comes."""
    try:
        return await topic_addrs(admin, retry_topic(group))
    except RequestRefused as refused:
        if refused.code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        raise NotThere(f"No consumer of a group {group} was ever here.") from None


async def group_stats(admin: AdminClient, group: str, topic: str | None = None) -> ConsumeStats:
    """How far a group is, on all brokers together; NotThere when it has consumed nothing."""
    table: dict[MessageQueue, OffsetWrapper] = {}
    tps = 0.0
    for addr in (await group_addrs(admin, group)).values():
        stats = await admin.consume_stats(addr, group, topic)
        table |= stats.offset_table
        tps += stats.consume_tps
    if not table:
        raise NotThere(
            "Not found the consumer group consume stats, because return offset table is empty, "
            f"maybe the consumer {group} not consume any message."
        )
    return ConsumeStats(offset_table=table, consume_tps=tps)


def total_diff(table: Mapping[MessageQueue, OffsetWrapper]) -> int:
    """The messages that a group has still to consume."""
    return sum(entry.broker_offset - entry.consumer_offset for entry in table.values())


async def group_connection(
    admin: AdminClient, group: str, addr: str | None = None
) -> ConsumerConnection:
    """Members and subscriptions, from the given broker or the first that knows any member."""
    refused: RequestRefused | None = None
    addrs = [addr] if addr else list((await group_addrs(admin, group)).values())
    for each in addrs:
        try:
            found = await admin.consumer_connections(each, group)
        except RequestRefused as error:
            refused = error
            continue
        if found.connection_set:
            return found
    raise refused or RequestRefused(
        ResponseCode.CONSUMER_NOT_ONLINE, f"Not found the consumer group connection of {group}."
    )


async def running_info(
    admin: AdminClient, group: str, client_id: str, *, jstack: bool = False
) -> ConsumerRunningInfo:
    """What one member says about itself, by way of the first broker that reaches it."""
    refused: RequestRefused | None = None
    for addr in (await group_addrs(admin, group)).values():
        try:
            return await admin.consumer_running_info(addr, group, client_id, jstack)
        except RequestRefused as error:
            refused = error
    raise refused or NotThere(f"No broker has the group {group}.")
