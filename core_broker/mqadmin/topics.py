"""Topic queries: list, routes, clusters, offsets of the queues, queue allocation."""

from typing import Any

from core_broker.allocation import subscribe_queues
from core_broker.client.consumer.allocate import averagely
from core_broker.errors import GantryError
from core_broker.message.topics import DLQ_PREFIX, RETRY_PREFIX
from core_broker.mqadmin.command import command, switch, text
from core_broker.mqadmin.java_texts import map_text
from core_broker.mqadmin.lookup import addrs_of_route, topic_addrs
from core_broker.mqadmin.output import Column, Record, Table, pretty
from core_broker.mqadmin.session import NotFound, Session
from core_broker.mqadmin.times import date_time_ms
from core_broker.remoting.bodies import (
    ClusterInfo,
    MessageQueue,
    TopicOffset,
    TopicRouteData,
    encode_body,
)

_STATUS = Table(
    "%-32s  %-4s  %-20s  %-20s    %s",
    [
        Column("brokerName", "#Broker Name"),
        Column("queueId", "#QID"),
        Column("minOffset", "#Min Offset"),
        Column("maxOffset", "#Max Offset"),
        Column("lastUpdateTimestamp", "#Last Updated", lambda ms: date_time_ms(ms) if ms else ""),
    ],
)

_BY_CLUSTER = Table(
    "%-20s  %-64s  %-64s",
    [
        Column("clusterName", "#Cluster Name"),
        Column("topic", "#Topic"),
        Column("consumerGroup", "#Consumer Group"),
    ],
    header_layout="%-20s  %-48s  %-48s",
)

_ROUTE = Table(
    "%-45s %-32s %-50s %-10s %-11s %-5s",
    [
        Column("clusterName", "#ClusterName"),
        Column("brokerName", "#BrokerName"),
        Column("brokerAddrs", "#BrokerAddrs"),
        Column("readQueueNums", "#ReadQueue"),
        Column("writeQueueNums", "#WriteQueue"),
        Column("perm", "#Perm"),
    ],
)
_RULE = "-" * 158


@command("topicStatus")
@text("-t", "--topic", required=True, help="topic name")
async def topic_status(session: Session, topic: str) -> None:
    """Prints minimum and maximum offset of every queue."""
    table: dict[MessageQueue, TopicOffset] = {}
    for addr in (await topic_addrs(session.admin, topic)).values():
        table |= await session.admin.topic_stats(addr, topic)
    if not table:
        raise NotFound(f"Not found the topic stats info of {topic}.")
    records = [
        {
            "brokerName": queue.broker_name,
            "queueId": queue.queue_id,
            "minOffset": offsets.min_offset,
            "maxOffset": offsets.max_offset,
            "lastUpdateTimestamp": max(offsets.last_update_timestamp, 0) or None,
        }
        for queue, offsets in sorted(table.items())
    ]
    session.out.show({"topic": topic, "queues": records}, _STATUS.lines(records))


@command("topicRoute")
@text("-t", "--topic", required=True, help="topic name")
@switch("-l", "--list", help="Use list format to print data")
async def topic_route(session: Session, topic: str, list: bool) -> None:  # noqa: A002 - Java's name
    """Prints the route as indented JSON, or with -l as a table."""
    route = await session.admin.topic_route(topic)
    if list:
        session.out.show(route, _route_lines(route))
    else:
        session.out.show(route, [pretty(route)])


def _route_lines(route: TopicRouteData) -> list[str]:
    queues = {data.broker_name: data for data in route.queue_datas}
    records: list[Record] = [
        {
            "clusterName": broker.cluster,
            "brokerName": broker.broker_name,
            "brokerAddrs": map_text(dict(sorted(broker.broker_addrs.items()))),
            "readQueueNums": queues[broker.broker_name].read_queue_nums,
            "writeQueueNums": queues[broker.broker_name].write_queue_nums,
            "perm": queues[broker.broker_name].perm,
        }
        for broker in sorted(route.broker_datas, key=lambda broker: broker.broker_name)
        if broker.broker_name in queues
    ]
    total: dict[str, Any] = {
        "clusterName": "Total:",
        "brokerName": len(queues),
        "brokerAddrs": "",
        "readQueueNums": sum(record["readQueueNums"] for record in records),
        "writeQueueNums": sum(record["writeQueueNums"] for record in records),
        "perm": "",
    }
    return [*_ROUTE.lines(records), _RULE, _ROUTE.row(total)]


@command("topicClusterList")
@text("-t", "--topic", required=True, help="topic name")
async def topic_cluster_list(session: Session, topic: str) -> None:
    """Lists the clusters with queues of the topic."""
    route = await session.admin.topic_route(topic)
    names = _clusters_of(await session.admin.cluster_info(), route)
    session.out.show({"topic": topic, "clusters": names}, names)


@command("topicList")
@switch("-c", "--clusterModel", help="clusterModel")
async def topic_list(session: Session, cluster_model: bool) -> None:
    """Lists topic names, with -c also the cluster and the groups of each topic."""
    topics = await session.admin.topic_list()
    if not cluster_model:
        session.out.show({"topics": topics}, topics)
        return
    info = await session.admin.cluster_info()
    records = []
    for topic in topics:
        if not topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
            records += await _memberships(session, info, topic)
    session.out.show({"topics": records}, _BY_CLUSTER.lines(_with_blanks(records)))


async def _memberships(session: Session, info: ClusterInfo, topic: str) -> list[dict[str, Any]]:
    """Return one row for each group of the topic, or one row without a group."""
    cluster: str | None = None
    groups: list[str] = []
    try:
        route = await session.admin.topic_route(topic)
        cluster = next(iter(_clusters_of(info, route)), None)
        addr = next(iter(addrs_of_route(route).values()), None)
        groups = await session.admin.groups_of_topic(addr, topic) if addr else []
    except GantryError as error:
        # The topic can be deleted meanwhile: the row then lacks cluster and groups.
        session.warn(str(error))
    return [
        {"clusterName": cluster, "topic": topic, "consumerGroup": group}
        for group in (*groups,) or (None,)
    ]


def _with_blanks(records: list[dict[str, Any]]) -> list[Record]:
    return [{key: value or "" for key, value in record.items()} for record in records]


def _clusters_of(info: ClusterInfo, route: TopicRouteData) -> list[str]:
    names = {broker.broker_name for broker in route.broker_datas}
    return sorted(
        cluster for cluster, members in info.cluster_addr_table.items() if names & set(members)
    )


@command("allocateMQ")
@text("-t", "--topic", required=True, help="topic name")
@text("-i", "--ipList", required=True, help="ipList")
async def allocate_mq(session: Session, topic: str, ip_list: str) -> None:
    """Prints the queues of each given client under the averaging allocation strategy."""
    clients = [ip.strip() for ip in ip_list.split(",") if ip.strip()]
    queues = sorted(subscribe_queues(topic, await session.admin.topic_route(topic)))
    document = {"result": {ip: averagely(ip, queues, clients) for ip in clients}}
    session.out.show(document, [encode_body(document).decode()])
