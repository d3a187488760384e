"""consumerStatus and consumer: running info of consumers, in files or on standard output."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core_broker.client.identity import now_ms
from core_broker.errors import GantryError
from core_broker.mqadmin.command import command, switch, text
from core_broker.mqadmin.files import write_file
from core_broker.mqadmin.lookup import group_connection, running_info
from core_broker.mqadmin.output import Column, Record, Table
from core_broker.mqadmin.running_info import (
    running_info_lines,
    same_subscription,
    stuck_queue_warnings,
)
from core_broker.mqadmin.session import Session
from core_broker.remoting.bodies import ConsumerRunningInfo
from core_broker.remoting.versions import version_name

_CLIENTS = Table(
    "%-10s %-40s %-20s %s",
    [
        Column("index", "#Index"),
        Column("clientId", "#ClientId"),
        Column("version", "#Version"),
        Column("file", "#ConsumerRunningInfoFile"),
    ],
)


@command("consumerStatus")
@text("-g", "--consumerGroup", required=True, help="consumer group name")
@text("-i", "--clientId", help="The consumer's client id")
@text("-b", "--brokerAddr", help="broker address")
@switch("-s", "--jstack", help="Run jstack command in the consumer progress")
async def consumer_status(
    session: Session,
    consumer_group: str,
    client_id: str | None,
    broker_addr: str | None,
    jstack: bool,
) -> None:
    """Prints one client's running info, or writes one file for each client of the group.

    The files go to a new folder below the working directory, named by the time in milliseconds.
    """
    if client_id is not None:
        await _show_one(session, consumer_group, client_id, jstack=jstack)
        return
    await _show_all(session, consumer_group, broker_addr, _CLIENTS.row, jstack=jstack, header=True)


@command("consumer")
@text("-g", "--consumerGroup", required=True, help="consumer group name")
@text("-i", "--clientId", help="The consumer's client id")
@switch("-s", "--jstack", help="Run jstack command in the consumer progress")
async def consumer(
    session: Session, consumer_group: str, client_id: str | None, jstack: bool
) -> None:
    """Like consumerStatus, without a header and with three-digit numbers."""
    if client_id is not None:
        await _show_one(session, consumer_group, client_id, jstack=jstack)
        return

    def row(client: Record) -> str:
        number, client_id = client["index"], client["clientId"]
        return f"{number:03d}  {client_id:<40} {client['version']:<20} {client['file']}"

    await _show_all(session, consumer_group, None, row, jstack=jstack, header=False)


async def _show_one(session: Session, group: str, client_id: str, *, jstack: bool) -> None:
    info = await running_info(session.admin, group, client_id, jstack=jstack)
    session.out.show(_document(info), running_info_lines(info))


async def _show_all(
    session: Session,
    group: str,
    broker_addr: str | None,
    row: Callable[[Record], str],
    *,
    jstack: bool,
    header: bool,
) -> None:
    connections = await group_connection(session.admin, group, broker_addr)
    folder = Path(str(now_ms()))
    infos: dict[str, ConsumerRunningInfo] = {}
    records: list[dict[str, Any]] = []
    for client in connections.connection_set:
        try:
            info = await running_info(session.admin, group, client.client_id, jstack=jstack)
        except GantryError as error:
            session.failed(error)
            continue
        infos[client.client_id] = info
        record = {"index": len(infos), "clientId": client.client_id}
        records.append(record | {"version": version_name(client.version)})
        if not session.out.as_json:
            content = "\n".join(running_info_lines(info)) + "\n"
            records[-1]["file"] = str(
                await write_file(folder / _file_name(client.client_id), content.encode())
            )
    same = same_subscription(infos, now_ms())
    warnings = [
        line
        for client_id in sorted(infos)
        for line in stuck_queue_warnings(client_id, infos[client_id], now_ms())
    ]
    document = {
        "consumerGroup": group,
        "clients": [record | {"info": _document(infos[record["clientId"]])} for record in records],
        "sameSubscription": same,
        "complaints": warnings,
    }
    lines = [_CLIENTS.header()] if header else []
    if not session.out.as_json:
        lines += map(row, records)
    session.out.show(document, [*lines, *(_summary(same, warnings) if infos else ())])


def _summary(same: bool, warnings: list[str]) -> list[str]:
    if not same:
        return ["", "", "WARN: Different subscription in the same group of consumer!!!"]
    equal = "Same subscription in the same group of consumer"
    return ["", "", equal, "", "Rebalance OK", *warnings]


def _file_name(client_id: str) -> str:
    """Return a file name for a client id. The id is remote input and must not leave the folder."""
    return re.sub(r"[^\w.@#:-]", "_", client_id).lstrip(".") or "_"


def _document(info: ConsumerRunningInfo) -> dict[str, Any]:
    return {
        "properties": info.properties,
        "subscriptions": info.subscription_set,
        "queues": [
            {"messageQueue": queue, "processQueueInfo": state}
            for queue, state in sorted(info.mq_table.items())
        ],
        "statusTable": info.status_table,
        "jstack": info.jstack,
    }
