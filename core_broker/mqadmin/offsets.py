"""Consumer offsets: reset by time, skip, clone, and print the offsets held by consumers."""

from collections.abc import Iterable, Mapping

from core_broker.errors import RequestRefused
from core_broker.mqadmin.command import command, flag, moment, switch, text
from core_broker.mqadmin.lookup import group_connection, group_stats, topic_addrs
from core_broker.mqadmin.output import Column, Record, Table
from core_broker.mqadmin.rollback import roll_back
from core_broker.mqadmin.session import NotFound, Session
from core_broker.mqadmin.times import END, TimestampText
from core_broker.remoting.bodies import MessageQueue
from core_broker.remoting.codes import ResponseCode

TIME_HELP = "set the timestamp[now|currentTimeMillis|yyyy-MM-dd#HH:mm:ss:SSS]"
FORCE_HELP = "set the force rollback by timestamp switch[true|false]"

_RESET = Table(
    "%-40s  %-40s  %-40s",
    [
        Column("brokerName", "#brokerName"),
        Column("queueId", "#queueId"),
        Column("offset", "#offset"),
    ],
)

_ROLLBACK = Table(
    "%-20s  %-20s  %-20s  %-20s  %-20s  %-20s",
    [
        Column("brokerName", "#brokerName"),
        Column("queueId", "#queueId"),
        Column("brokerOffset", "#brokerOffset"),
        Column("consumerOffset", "#consumerOffset"),
        Column("timestampOffset", "#timestampOffset"),
        Column("rollbackOffset", "#rollbackOffset"),
    ],
)

_CONSUMERS = Table(
    "%-50s  %-15s  %-15s  %-20s",
    [
        Column("clientId", "#clientId"),
        Column("brokerName", "#brokerName"),
        Column("queueId", "#queueId"),
        Column("offset", "#offset"),
    ],
)


@command("resetOffsetByTime", destructive=True)
@text("-g", "--group", required=True, help="set the consumer group")
@text("-t", "--topic", required=True, help="set the topic")
@moment("-s", "--timestamp", now=True, required=True, help=TIME_HELP)
@flag("-f", "--force", default=True, help=FORCE_HELP)
@switch("-c", "--cplus", help="reset c++ client offset")
async def reset_offset_by_time(
    session: Session, group: str, topic: str, timestamp: TimestampText, force: bool, cplus: bool
) -> None:
    """Resets an online group through its consumers, an offline group in the broker's offset table.

    With -f false offsets only move back. --dry-run prints the target offset of each queue.
    """
    table = None
    if not session.dry_run:
        table = await _reset_online(session, group, topic, timestamp, force=force, cplus=cplus)
    kind = "consumerGroup" if table is None else "group"
    title = _title(kind, group, topic, timestamp, force=force)
    if table is None:
        await _reset_offline(session, group, topic, timestamp, force=force, title=[title])
    else:
        _show_reset(session, group, topic, table, [title])


@command("resetOffsetByTimeOld", destructive=True)
@text("-g", "--group", required=True, help="set the consumer group")
@text("-t", "--topic", required=True, help="set the topic")
@moment("-s", "--timestamp", now=True, required=True, help=TIME_HELP)
@flag("-f", "--force", default=True, help=FORCE_HELP)
async def reset_offset_by_time_old(
    session: Session, group: str, topic: str, timestamp: TimestampText, force: bool
) -> None:
    """Changes only the broker's offset table. Stop the consumers first: consumers commit their own
    offsets and would overwrite the reset."""
    title = _title("consumerGroup", group, topic, timestamp, force=force)
    await _reset_offline(session, group, topic, timestamp, force=force, title=[title])


@command("skipAccumulatedMessage", destructive=True)
@text("-g", "--group", required=True, help="set the consumer group")
@text("-t", "--topic", required=True, help="set the topic")
@flag("-f", "--force", default=True, help=FORCE_HELP)
async def skip_accumulated_message(session: Session, group: str, topic: str, force: bool) -> None:
    """Moves the group's offsets to the end of all queues: messages sent so far are skipped."""
    table = None
    if not session.dry_run:
        table = await _reset_online(session, group, topic, END, force=force, cplus=False)
    if table is None:
        await _reset_offline(session, group, topic, END, force=force, title=[])
    else:
        _show_reset(session, group, topic, table, [])


def _title(kind: str, group: str, topic: str, timestamp: TimestampText, *, force: bool) -> str:
    return (
        f"rollback consumer offset by specified {kind}[{group}], topic[{topic}], "
        f"force[{'true' if force else 'false'}], timestamp(string)[{timestamp.written}], "
        f"timestamp(long)[{int(timestamp)}]"
    )


async def _reset_online(
    session: Session, group: str, topic: str, timestamp: int, *, force: bool, cplus: bool
) -> dict[MessageQueue, int] | None:
    """Let the brokers notify the consumers; return the new offsets, None for an offline group."""
    table: dict[MessageQueue, int] = {}
    try:
        for addr in (await topic_addrs(session.admin, topic)).values():
            table |= await session.admin.reset_offset(
                addr, group, topic, timestamp, force=force, cplus=cplus
            )
    except RequestRefused as refused:
        # RocketMQ 4.9 answers SYSTEM_ERROR for a group without offsets, before the member check.
        if refused.code == ResponseCode.CONSUMER_NOT_ONLINE or await _is_offline(session, group):
            return None
        raise
    return table


async def _is_offline(session: Session, group: str) -> bool:
    try:
        await group_connection(session.admin, group)
    except NotFound:
        return True
    except RequestRefused as refused:
        return refused.code == ResponseCode.CONSUMER_NOT_ONLINE
    return False


async def _reset_offline(
    session: Session, group: str, topic: str, timestamp: int, *, force: bool, title: list[str]
) -> None:
    rows = await roll_back(
        session.admin, group, topic, timestamp, force=force, dry_run=session.dry_run
    )
    records: list[Record] = [row.record() for row in rows]
    document = {
        "group": group,
        "topic": topic,
        "online": False,
        "queues": records,
        "dryRun": session.dry_run,
    }
    prefix = ["[dry run]"] if session.dry_run else []
    session.out.show(document, [*prefix, *title, *_ROLLBACK.lines(records)])


def _show_reset(
    session: Session,
    group: str,
    topic: str,
    table: Mapping[MessageQueue, int],
    title: Iterable[str],
) -> None:
    records = [
        {"brokerName": queue.broker_name, "queueId": queue.queue_id, "offset": offset}
        for queue, offset in sorted(table.items())
    ]
    document = {"group": group, "topic": topic, "online": True, "queues": records, "dryRun": False}
    session.out.show(document, [*title, *_RESET.lines(records)])


@command("cloneGroupOffset", destructive=True)
@text("-s", "--srcGroup", required=True, help="set source consumer group")
@text("-d", "--destGroup", required=True, help="set destination consumer group")
@text("-t", "--topic", required=True, help="set the topic")
@flag("-o", "--offline", default=False, help="the group or the topic is offline")
async def clone_group_offset(
    session: Session, src_group: str, dest_group: str, topic: str, offline: bool
) -> None:
    """Copies the source group's offsets in the topic to the destination group.

    -o has no effect and exists for compatibility: the offsets always come from the brokers.
    """
    admin = session.admin
    stats = await group_stats(admin, src_group, topic)
    addrs = await topic_addrs(admin, topic)
    records: list[Record] = []
    for queue, entry in sorted(stats.offset_table.items()):
        addr = addrs.get(queue.broker_name)
        if queue.topic != topic or entry.consumer_offset < 0 or addr is None:
            continue
        if not session.dry_run:
            await admin.update_consumer_offset(
                addr, dest_group, topic, queue.queue_id, entry.consumer_offset
            )
        record = {"brokerName": queue.broker_name, "queueId": queue.queue_id}
        records.append(record | {"offset": entry.consumer_offset})
    if not records:
        raise NotFound(f"The group {src_group} has no offset in {topic}.")
    names = {"srcGroup": src_group, "destGroup": dest_group, "topic": topic}
    document = names | {"queues": records, "dryRun": session.dry_run}
    line = (
        f"clone group offset success. srcGroup[{src_group}], destGroup=[{dest_group}], "
        f"topic[{topic}]"
    )
    lines = ["[dry run]", *_RESET.lines(records)] if session.dry_run else [line]
    session.out.show(document, lines)


@command("getConsumerStatus")
@text("-g", "--group", required=True, help="set the consumer group")
@text("-t", "--topic", required=True, help="set the topic")
@text("-i", "--originClientId", help="set the consumer clientId")
async def get_consumer_status(
    session: Session, group: str, topic: str, origin_client_id: str | None
) -> None:
    """Prints the offsets in the consumers' memory, which can be ahead of the broker's offsets."""
    records: list[Record] = []
    for addr in (await topic_addrs(session.admin, topic)).values():
        table = await session.admin.consumer_status(addr, group, topic, origin_client_id)
        records += [
            {
                "clientId": client_id,
                "brokerName": queue.broker_name,
                "queueId": queue.queue_id,
                "offset": offset,
            }
            for client_id, queues in sorted(table.items())
            for queue, offset in sorted(queues.items())
        ]
        if records:
            break  # one broker suffices: a consumer reports the offsets of all brokers
    title = (
        f"get consumer status from client. group={group}, topic={topic}, "
        f"originClientId={origin_client_id or ''}"
    )
    document = {"group": group, "topic": topic, "queues": records}
    session.out.show(document, [title, *_CONSUMERS.lines(records)])
