"""Brokers: runtime statistics, settings, and the lag of all groups of one broker."""

from functools import partial

from core_broker.errors import ClientError, GantryError
from core_broker.mqadmin.command import LONG_MAX, command, flag, number, text
from core_broker.mqadmin.lookup import brokers_of_cluster, cluster_addrs, masters
from core_broker.mqadmin.output import Column, Table
from core_broker.mqadmin.session import Session
from core_broker.mqadmin.settings_lines import settings_lines
from core_broker.mqadmin.targets import broker_or_cluster
from core_broker.mqadmin.times import date_time

STATS_TIMEOUT_MS_DEFAULT = 50_000
STATS_TIMEOUT_MS_MAX = 600_000

_CONSUME_STATS = Table(
    "%-64s  %-64s  %-32s  %-4s  %-20s  %-20s  %-20s  %s",
    [
        Column("topic", "#Topic"),
        Column("consumerGroup", "#Group"),
        Column("brokerName", "#Broker Name"),
        Column("queueId", "#QID"),
        Column("brokerOffset", "#Broker Offset"),
        Column("consumerOffset", "#Consumer Offset"),
        Column("diff", "#Diff"),
        Column("lastTimestamp", "#LastTime", date_time),
    ],
)


@command("brokerStatus")
@text("-b", "--brokerAddr", help="Broker address")
@text("-c", "--clusterName", help="which cluster")
async def broker_status(
    session: Session, broker_addr: str | None, cluster_name: str | None
) -> None:
    """Prints the runtime statistics of one broker, or of all masters and slaves of a cluster."""
    if broker_addr:
        table = await session.admin.runtime_info(broker_addr)
        lines = ["%-32s: %s" % entry for entry in sorted(table.items())]  # noqa: UP031
        session.out.show({"brokers": {broker_addr: table}}, lines)
        return
    if not cluster_name:
        raise ClientError("Give one of -b/--brokerAddr and -c/--clusterName.")
    tables, lines = {}, []
    for addr in await cluster_addrs(session.admin, cluster_name):
        try:
            table = await session.admin.runtime_info(addr)
        except GantryError as error:
            session.failed(error)
            continue
        tables[addr] = table
        lines += ["%-24s %-32s: %s" % (addr, *entry) for entry in sorted(table.items())]  # noqa: UP031
    session.out.show({"brokers": tables}, lines)


@command("getBrokerConfig")
@broker_or_cluster("get which broker", "get which cluster")
async def get_broker_config(
    session: Session, broker_addr: str | None, cluster_name: str | None
) -> None:
    """Prints the settings of one broker, or of all masters and slaves of a cluster."""
    titles: dict[str, str] = {}
    if broker_addr:
        titles[broker_addr] = f"============{broker_addr}============"
    else:
        info = await session.admin.cluster_info()
        for broker in brokers_of_cluster(info, cluster_name or ""):
            master = broker.master_addr
            for number_, addr in sorted(broker.broker_addrs.items()):
                titles[addr] = (
                    f"============Master: {addr}============"
                    if number_ == 0
                    else f"============My Master: {master}=====Slave: {addr}============"
                )
    configs, lines = {}, []
    for addr, title in titles.items():
        configs[addr] = await session.admin.broker_config(addr)
        lines += [title, *settings_lines(configs[addr]), ""]
    session.out.show({"brokers": configs}, lines)


@command("updateBrokerConfig", destructive=True)
@broker_or_cluster("update which broker", "update which cluster")
@text("-k", "--key", required=True, help="config key")
@text("-v", "--value", required=True, help="config value")
async def update_broker_config(
    session: Session, broker_addr: str | None, cluster_name: str | None, key: str, value: str
) -> None:
    """Works on one broker, or on all masters of a cluster.

    After a broker refuses the change, the command goes on with the next broker.
    """
    updated = []
    for addr in await masters(session.admin, broker_addr, cluster_name):
        update = partial(session.admin.update_broker_config, addr, {key: value})
        try:
            await session.change(f"update broker config success, {addr}", update)
        except GantryError as error:
            session.failed(error)
        else:
            updated.append(addr)
    document = {"updated": updated, "key": key, "value": value, "dryRun": session.dry_run}
    session.out.show_json(document)


@command("brokerConsumeStats")
@text("-b", "--brokerAddr", required=True, help="Broker address")
@number(
    "-t",
    "--timeoutMillis",
    low=1,
    high=STATS_TIMEOUT_MS_MAX,
    default=STATS_TIMEOUT_MS_DEFAULT,
    help="request timeout Millis",
)
@number("-l", "--level", low=-LONG_MAX, high=LONG_MAX, default=0, help="threshold of print diff")
@flag("-o", "--order", default=False, help="order topic")
async def broker_consume_stats(
    session: Session, broker_addr: str, timeout_millis: int, level: int, order: bool
) -> None:
    """Lists the queues with consumer offsets by group; the total also counts omitted queues."""
    groups = await session.admin.broker_consume_stats(
        broker_addr, is_order=order, timeout_ms=timeout_millis
    )
    records, total = [], 0
    for group, stats in groups.items():
        for queue, entry in sorted(item for part in stats for item in part.offset_table.items()):
            diff = entry.broker_offset - entry.consumer_offset
            total += diff
            if diff < level or entry.last_timestamp <= 0:
                continue
            records.append(
                {
                    "topic": queue.topic,
                    "consumerGroup": group,
                    "brokerName": queue.broker_name,
                    "queueId": queue.queue_id,
                    "brokerOffset": entry.broker_offset,
                    "consumerOffset": entry.consumer_offset,
                    "diff": diff,
                    "lastTimestamp": entry.last_timestamp,
                }
            )
    lines = [*_CONSUME_STATS.lines(records), "", f"Diff Total: {total}"]
    session.out.show({"queues": records, "diffTotal": total}, lines)
