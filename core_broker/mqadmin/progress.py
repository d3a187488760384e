"""consumerProgress: offsets and lag of consumer groups."""

from typing import Any

from core_broker.errors import GantryError
from core_broker.mqadmin.command import command, flag, text
from core_broker.mqadmin.lookup import (
    group_connection,
    group_names,
    group_stats,
    running_info,
    total_diff,
)
from core_broker.mqadmin.output import Column, Table
from core_broker.mqadmin.session import Session
from core_broker.mqadmin.times import date_time
from core_broker.remoting.bodies import ConsumerConnection, ConsumeStats, ConsumeType, MessageQueue
from core_broker.remoting.versions import version_name

_GROUPS = Table(
    "%-64s  %-6s  %-24s %-5s  %-14s  %-7s  %s",
    [
        Column("consumerGroup", "#Group"),
        Column("clientCount", "#Count"),
        Column("version", "#Version", lambda version: version or "OFFLINE"),
        Column("consumeType", "#Type", lambda kind: kind or ""),
        Column("messageModel", "#Model", lambda model: model or ""),
        Column("consumeTps", "#TPS", lambda tps: 0 if tps is None else int(tps)),
        Column("diffTotal", "#Diff Total", lambda diff: 0 if diff is None else diff),
    ],
)

_TOPIC = Column("topic", "#Topic")
_BROKER = Column("brokerName", "#Broker Name")
_QUEUE = Column("queueId", "#QID")
_BROKER_OFFSET = Column("brokerOffset", "#Broker Offset")
_CONSUMER_OFFSET = Column("consumerOffset", "#Consumer Offset")
_CLIENT = Column("clientIp", "#Client IP", lambda ip: ip or "N/A")
_DIFF = Column("diff", "#Diff")
_TIME = Column("lastTimestamp", "#LastTime", lambda moment: date_time(moment) if moment else "N/A")

_QUEUES = Table(
    "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s  %s",
    [_TOPIC, _BROKER, _QUEUE, _BROKER_OFFSET, _CONSUMER_OFFSET, _DIFF, _TIME],
)
_QUEUES_WITH_CLIENT = Table(
    "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s  %s",
    [_TOPIC, _BROKER, _QUEUE, _BROKER_OFFSET, _CONSUMER_OFFSET, _CLIENT, _DIFF, _TIME],
)


@command("consumerProgress")
@text("-g", "--groupName", help="consumer group name")
@flag("-s", "--showClientIP", default=False, help="Show Client IP per Queue")
async def consumer_progress(session: Session, group_name: str | None, show_client_ip: bool) -> None:
    """Prints every queue of one group, or one line for each group."""
    if group_name is None:
        records = await _all_groups(session)
        session.out.show({"groups": records}, _GROUPS.lines(records))
        return
    stats = await group_stats(session.admin, group_name)
    clients = await _clients_by_queue(session, group_name) if show_client_ip else {}
    records = [
        {
            "topic": queue.topic,
            "brokerName": queue.broker_name,
            "queueId": queue.queue_id,
            "brokerOffset": entry.broker_offset,
            "consumerOffset": entry.consumer_offset,
            "diff": entry.broker_offset - entry.consumer_offset,
            "lastTimestamp": entry.last_timestamp or None,
            **({"clientIp": clients.get(queue)} if show_client_ip else {}),
        }
        for queue, entry in sorted(stats.offset_table.items())
    ]
    total = total_diff(stats.offset_table)
    document = {
        "consumerGroup": group_name,
        "queues": records,
        "consumeTps": stats.consume_tps,
        "diffTotal": total,
    }
    table = _QUEUES_WITH_CLIENT if show_client_ip else _QUEUES
    tail = ["", f"Consume TPS: {stats.consume_tps:.2f}", f"Diff Total: {total}"]
    session.out.show(document, [*table.lines(records), *tail])


async def _clients_by_queue(session: Session, group: str) -> dict[MessageQueue, str]:
    """Return the IP address of each queue's client; queues of unanswering clients are absent."""
    addresses: dict[MessageQueue, str] = {}
    try:
        for client in (await group_connection(session.admin, group)).connection_set:
            info = await running_info(session.admin, group, client.client_id)
            addresses |= dict.fromkeys(info.mq_table, client.client_id.partition("@")[0])
    except GantryError as error:
        session.warn(f"Some clients of {group} did not report their queues: {error}")
    return addresses


async def _all_groups(session: Session) -> list[dict[str, Any]]:
    """Return one record for each group with a retry topic."""
    return [
        _group_record(group, *await _of_group(session, group))
        for group in await group_names(session.admin)
    ]


async def _of_group(
    session: Session, group: str
) -> tuple[ConsumeStats | None, ConsumerConnection | None]:
    """Return None for the statistics of a group without offsets, and for an offline group's
    connection."""
    stats = connection = None
    try:
        stats = await group_stats(session.admin, group)
    except GantryError:
        stats = None
    try:
        connection = await group_connection(session.admin, group)
    except GantryError:
        connection = None
    return stats, connection


def _group_record(
    group: str, stats: ConsumeStats | None, connection: ConsumerConnection | None
) -> dict[str, Any]:
    record: dict[str, Any] = {
        "consumerGroup": group,
        "clientCount": 0,
        "version": None,
        "consumeType": None,
        "messageModel": None,
        "consumeTps": stats.consume_tps if stats else None,
        "diffTotal": total_diff(stats.offset_table) if stats else None,
    }
    if connection is None:
        return record
    pulls = connection.consume_type == ConsumeType.CONSUME_ACTIVELY
    oldest = min(client.version for client in connection.connection_set)
    return record | {
        "clientCount": len(connection.connection_set),
        "version": version_name(oldest),
        "consumeType": "PULL" if pulls else "PUSH",
        "messageModel": None if pulls else connection.message_model,
    }
