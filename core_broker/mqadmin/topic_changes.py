"""Changes of topics: create, update, permission, order configuration, delete."""

from functools import partial

from msgspec.structs import replace

from core_broker.client.admin import AdminClient
from core_broker.errors import ClientError
from core_broker.message.topics import validate_topic
from core_broker.mqadmin.command import command, flag, number, text
from core_broker.mqadmin.java_texts import topic_config_text
from core_broker.mqadmin.lookup import broker_name_at, brokers_of_cluster, cluster_masters, masters
from core_broker.mqadmin.output import Record
from core_broker.mqadmin.session import NotFound, Session
from core_broker.mqadmin.targets import broker_or_cluster
from core_broker.remoting.bodies import TopicConfig, TopicRouteData

ORDER_NAMESPACE = "ORDER_TOPIC_CONFIG"
#: Bits of topicSysFlag.
UNIT, UNIT_SUBSCRIPTION = 1, 2
QUEUE_NUMS_DEFAULT = 8


@command("updateTopic")
@text("-t", "--topic", required=True, help="topic name")
@broker_or_cluster("create topic to which broker", "create topic to which cluster")
@number("-r", "--readQueueNums", default=QUEUE_NUMS_DEFAULT, help="set read queue nums")
@number("-w", "--writeQueueNums", default=QUEUE_NUMS_DEFAULT, help="set write queue nums")
@number(
    "-p", "--perm", default=6, high=7, help="set topic's permission(2|4|6), intro[2:W 4:R; 6:RW]"
)
@flag("-o", "--order", default=False, help="set topic's order(true|false)")
@flag("-u", "--unit", default=False, help="is unit topic (true|false)")
@flag("-s", "--hasUnitSub", default=False, help="has unit sub (true|false)")
async def update_topic(
    session: Session,
    *,
    topic: str,
    broker_addr: str | None,
    cluster_name: str | None,
    read_queue_nums: int,
    write_queue_nums: int,
    perm: int,
    order: bool,
    unit: bool,
    has_unit_sub: bool,
) -> None:
    """Creates or updates the topic on one broker, or on all masters of a cluster."""
    config = TopicConfig(
        topic_name=topic,
        read_queue_nums=read_queue_nums,
        write_queue_nums=write_queue_nums,
        perm=perm,
        topic_sys_flag=UNIT * unit + UNIT_SUBSCRIPTION * has_unit_sub,
        order=order,
    )
    validate_topic(topic)
    if write_queue_nums > read_queue_nums:
        queues = f"queues {read_queue_nums} to {write_queue_nums - 1}"
        session.warn(f"no consumer reads {queues}: more write queues than read queues")
    admin = session.admin
    addrs = await masters(admin, broker_addr, cluster_name)
    for addr in addrs:
        await admin.create_topic(addr, config)
    conf = None
    if order:
        conf = await _order_conf(admin, config, broker_addr, cluster_name)
        await admin.kv_put(ORDER_NAMESPACE, topic, conf)
    lines = [f"create topic to {addr} success." for addr in addrs]
    if conf:
        scope = "broker" if broker_addr else "cluster"
        lines.append(f"set {scope} orderConf. isOrder=true, orderConf=[{conf}]")
    document = {"created": addrs, "orderConf": conf, "topicConfig": config}
    session.out.show(document, [*lines, topic_config_text(config)])


async def _order_conf(
    admin: AdminClient, config: TopicConfig, broker_addr: str | None, cluster_name: str | None
) -> str:
    """Return the order configuration `broker:queues;…`.

    For one broker, the entries of other brokers stay as configured.
    """
    nums = config.write_queue_nums
    if broker_addr is None:
        brokers = brokers_of_cluster(await admin.cluster_info(), cluster_name or "")
        return ";".join(f"{broker.broker_name}:{nums}" for broker in brokers)
    before = await admin.kv_get(ORDER_NAMESPACE, config.topic_name) or ""
    parts = {part.partition(":")[0]: part for part in before.split(";") if part.strip()}
    name = await broker_name_at(admin, broker_addr)
    return ";".join((parts | {name: f"{name}:{nums}"}).values())


@command("updateTopicPerm")
@text("-t", "--topic", required=True, help="topic name")
@number(
    "-p",
    "--perm",
    required=True,
    high=7,
    help="set topic's permission(2|4|6), intro[2:W; 4:R; 6:RW]",
)
@broker_or_cluster("create topic to which broker", "create topic to which cluster")
async def update_topic_perm(
    session: Session, topic: str, perm: int, broker_addr: str | None, cluster_name: str | None
) -> None:
    """Changes only the permission; the rest of each broker's topic configuration stays."""
    admin = session.admin
    route = await admin.topic_route(topic)
    addrs = [_own_master(route, broker_addr)] if broker_addr else []
    changed: list[Record] = []
    lines: list[str] = []
    for addr in addrs or await cluster_masters(admin, cluster_name or ""):
        config = (await admin.topic_configs(addr)).get(topic)
        if config is None or config.perm == perm:
            continue  # the command must not create the topic on a broker without the topic
        after = replace(config, perm=perm)
        await admin.create_topic(addr, after)
        changed.append({"brokerAddr": addr, "oldPerm": config.perm, "newPerm": perm})
        lines.append(f"update topic perm from {config.perm} to {perm} in {addr} success.")
        if broker_addr:
            lines.append(f"{topic_config_text(after)}.")
    document = {"topic": topic, "changed": changed}
    session.out.show(document, lines or ["new perm equals to the old one!"])


def _own_master(route: TopicRouteData, addr: str) -> str:
    if all(broker.master_addr != addr for broker in route.broker_datas):
        raise NotFound("updateTopicPerm error broker not exit or broker is not master!.")
    return addr


@command("deleteTopic", destructive=True)
@text("-t", "--topic", required=True, help="topic name")
@text("-c", "--clusterName", required=True, help="delete topic from which cluster")
async def delete_topic(session: Session, topic: str, cluster_name: str) -> None:
    """Deletes the topic on the masters of the cluster, then on the name servers."""
    await remove_topic(session, topic, cluster_name)
    session.out.show_json({"topic": topic, "clusterName": cluster_name, "dryRun": session.dry_run})


async def remove_topic(session: Session, topic: str, cluster: str) -> None:
    """Delete on the brokers first: a broker registers the route of an existing topic again."""
    admin = session.admin
    addrs = await cluster_masters(admin, cluster)

    async def in_brokers() -> None:
        for addr in addrs:
            await admin.delete_topic_in_broker(addr, topic)

    await session.change(f"delete topic [{topic}] from cluster [{cluster}] success.", in_brokers)
    in_name_servers = partial(admin.delete_topic_in_namesrv, topic, cluster)
    await session.change(f"delete topic [{topic}] from NameServer success.", in_name_servers)


@command("updateOrderConf")
@text("-t", "--topic", required=True, help="topic name")
@text("-v", "--orderConf", help="set order conf [eg. brokerName1:num;brokerName2:num]")
@text("-m", "--method", required=True, help="option type [eg. put|get|delete]")
async def update_order_conf(
    session: Session, topic: str, order_conf: str | None, method: str
) -> None:
    """Prints or changes the queues of an ordered topic in the name servers' KV configuration."""
    admin = session.admin
    match method:
        case "get":
            order_conf = await admin.kv_get(ORDER_NAMESPACE, topic)
            if order_conf is None:
                raise NotFound(f"The topic {topic} has no order conf.")
            line = f"get orderConf success. topic=[{topic}], orderConf=[{order_conf}] "
        case "put":
            if order_conf is None:
                raise ClientError("please set orderConf with option -v.")
            await admin.kv_put(ORDER_NAMESPACE, topic, order_conf)
            line = f"update orderConf success. topic=[{topic}], orderConf=[{order_conf}]"
        case "delete":
            order_conf = None
            await admin.kv_delete(ORDER_NAMESPACE, topic)
            line = f"delete orderConf success. topic=[{topic}]"
        case _:
            raise ClientError(f"The method {method!r} is unknown: set -m to put, get or delete.")
    session.out.show({"topic": topic, "orderConf": order_conf}, [line])
