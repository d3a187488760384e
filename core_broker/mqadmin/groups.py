"""Consumer groups: create, update, delete, and print the configuration on each broker."""

from functools import partial

from core_broker.errors import GantryError
from core_broker.message.topics import dlq_topic, retry_topic, validate_group
from core_broker.mqadmin.command import LONG_MAX, command, flag, number, text
from core_broker.mqadmin.java_texts import group_config_members, group_config_text, java
from core_broker.mqadmin.lookup import masters
from core_broker.mqadmin.session import NotFound, Session
from core_broker.mqadmin.targets import broker_or_cluster
from core_broker.mqadmin.topic_changes import remove_topic
from core_broker.remoting.bodies import SubscriptionGroupConfig


@command("updateSubGroup")
@broker_or_cluster(
    "create subscription group to which broker", "create subscription group to which cluster"
)
@text("-g", "--groupName", required=True, help="consumer group name")
@flag("-s", "--consumeEnable", default=True, help="consume enable")
@flag("-m", "--consumeFromMinEnable", default=False, help="from min offset")
@flag("-d", "--consumeBroadcastEnable", default=False, help="broadcast")
@number("-q", "--retryQueueNums", default=1, help="retry queue nums")
@number("-r", "--retryMaxTimes", low=-1, default=16, help="retry max times")
@number("-i", "--brokerId", high=LONG_MAX, default=0, help="consumer from which broker id")
@number(
    "-w",
    "--whichBrokerWhenConsumeSlowly",
    high=LONG_MAX,
    default=1,
    help="which broker id when consume slowly",
)
@flag("-a", "--notifyConsumerIdsChanged", default=True, help="notify consumerId changed")
async def update_sub_group(
    session: Session,
    *,
    broker_addr: str | None,
    cluster_name: str | None,
    group_name: str,
    consume_enable: bool,
    consume_from_min_enable: bool,
    consume_broadcast_enable: bool,
    retry_queue_nums: int,
    retry_max_times: int,
    broker_id: int,
    which_broker_when_consume_slowly: int,
    notify_consumer_ids_changed: bool,
) -> None:
    """Works on one broker, or on all masters of a cluster.

    After a broker refuses the change, the command goes on with the next broker.
    """
    config = SubscriptionGroupConfig(
        group_name=group_name,
        consume_enable=consume_enable,
        consume_from_min_enable=consume_from_min_enable,
        consume_broadcast_enable=consume_broadcast_enable,
        retry_queue_nums=retry_queue_nums,
        retry_max_times=retry_max_times,
        broker_id=broker_id,
        which_broker_when_consume_slowly=which_broker_when_consume_slowly,
        notify_consumer_ids_changed_enable=notify_consumer_ids_changed,
    )
    validate_group(group_name)
    created = []
    for addr in await masters(session.admin, broker_addr, cluster_name):
        try:
            await session.admin.create_group(addr, config)
        except GantryError as error:
            session.failed(error)
        else:
            created.append(addr)
    lines = [f"create subscription group to {addr} success." for addr in created]
    if created:
        lines.append(group_config_text(config))
    session.out.show({"created": created, "subscriptionGroupConfig": config}, lines)


@command("deleteSubGroup", destructive=True)
@broker_or_cluster(
    "delete subscription group from which broker", "delete subscription group from which cluster"
)
@text("-g", "--groupName", required=True, help="subscription group name")
@flag("-r", "--removeOffset", default=False, help="remove offset")
async def delete_sub_group(
    session: Session,
    *,
    broker_addr: str | None,
    cluster_name: str | None,
    group_name: str,
    remove_offset: bool,
) -> None:
    """With -c, the command also deletes the group's retry and dead-letter topics."""
    addrs = await masters(session.admin, broker_addr, cluster_name)
    where = f" in cluster [{cluster_name}]" if cluster_name else ""
    for addr in addrs:
        await session.change(
            f"delete subscription group [{group_name}] from broker [{addr}]{where} success.",
            partial(session.admin.delete_group, addr, group_name, remove_offset),
        )
    if cluster_name:
        for topic in (retry_topic(group_name), dlq_topic(group_name)):
            await remove_topic(session, topic, cluster_name)
    session.out.show_json({"groupName": group_name, "brokers": addrs, "dryRun": session.dry_run})


@command("getConsumerConfig")
@text("-g", "--groupName", required=True, help="subscription group name")
async def get_consumer_config(session: Session, group_name: str) -> None:
    """Prints the configuration of the group on every broker set."""
    info = await session.admin.cluster_info()
    configs, lines = [], []
    for name, broker in sorted(info.broker_addr_table.items()):
        addr = broker.master_addr or next(iter(broker.broker_addrs.values()))
        config = (await session.admin.group_configs(addr)).get(group_name)
        if config is None:
            continue
        cluster = next(
            (cluster for cluster, names in info.cluster_addr_table.items() if name in names), None
        )
        configs.append({"clusterName": cluster, "brokerName": name, "config": config})
        lines.append(f"{'=' * 29}{cluster}:{name}{'=' * 29}")
        members = group_config_members(config)
        lines += ["%-40s=  %s" % (key, java(value)) for key, value in members]  # noqa: UP031
    if not configs:
        raise NotFound(f"No broker has a subscription group {group_name}.")
    session.out.show({"groupName": group_name, "brokers": configs}, lines)
