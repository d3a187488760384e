"""Who is connected: consumers of a group, producers of a group, producers of a broker."""

from typing import Any

from core_broker.errors import RequestRefused
from core_broker.mqadmin.command import command, text
from core_broker.mqadmin.java_texts import producer_text
from core_broker.mqadmin.lookup import group_connection, topic_addrs
from core_broker.mqadmin.output import Column, Record, Table
from core_broker.mqadmin.session import NotThere, Session
from core_broker.remoting.bodies import ClientConnection
from core_broker.remoting.versions import version_name

_CLIENTS = Table(
    "%-36s %-22s %-10s %s",
    [
        Column("clientId", "#ClientId"),
        Column("clientAddr", "#ClientAddr"),
        Column("language", "#Language"),
        Column("version", "#Version"),
    ],
)
_SUBSCRIPTIONS = Table(
    "%-20s %s", [Column("topic", "#Topic"), Column("subString", "#SubExpression")]
)


def _client(connection: ClientConnection) -> Record:
    return {
        "clientId": connection.client_id,
        "clientAddr": connection.client_addr,
        "language": connection.language,
        "version": version_name(connection.version),
    }


@command("consumerConnection")
@text("-g", "--consumerGroup", required=True, help="consumer group name")
@text("-b", "--brokerAddr", help="broker address")
async def consumer_connection(
    session: Session, consumer_group: str, broker_addr: str | None
) -> None:
    """Members, subscriptions, and how the group consumes."""
    found = await group_connection(session.admin, consumer_group, broker_addr)
    clients = [_client(each) for each in found.connection_set]
    subscriptions: list[dict[str, Any]] = [
        {
            "topic": topic,
            "subString": data.sub_string,
            "expressionType": data.expression_type,
            "subVersion": data.sub_version,
        }
        for topic, data in sorted(found.subscription_table.items())
    ]
    document = {
        "consumerGroup": consumer_group,
        "clients": clients,
        "subscriptions": subscriptions,
        "consumeType": found.consume_type,
        "messageModel": found.message_model,
        "consumeFromWhere": found.consume_from_where,
    }
    lines = [
        *_CLIENTS.lines(clients),
        "",
        "Below is subscription:",
        *_SUBSCRIPTIONS.lines(subscriptions),
        "",
        f"ConsumeType: {found.consume_type}",
        f"MessageModel: {found.message_model}",
        f"ConsumeFromWhere: {found.consume_from_where}",
    ]
    session.out.show(document, lines)


@command("producerConnection")
@text("-g", "--producerGroup", required=True, help="producer group name")
@text("-t", "--topic", required=True, help="topic name")
async def producer_connection(session: Session, producer_group: str, topic: str) -> None:
    """The producers of a group that a broker of the topic knows."""
    refused: RequestRefused | None = None
    found: dict[str, Record] = {}
    for addr in (await topic_addrs(session.admin, topic)).values():
        try:
            connections = await session.admin.producer_connections(addr, producer_group)
        except RequestRefused as error:
            refused = error
            continue
        found |= {each.client_id: _client(each) for each in connections.connection_set}
    if not found:
        raise refused or NotThere(f"Not found the producer group connection of {producer_group}.")
    clients = list(found.values())
    layout = "%04d  %-32s %-22s %-8s %s"
    lines = [layout % (n, *client.values()) for n, client in enumerate(clients, 1)]
    session.out.show({"producerGroup": producer_group, "clients": clients}, lines)


@command("producer")
@text("-b", "--broker", required=True, help="broker address")
async def producer(session: Session, broker: str) -> None:
    """Every producer that is connected to a broker."""
    groups = await session.admin.all_producers(broker)
    lines = []
    for group, producers in sorted(groups.items()):
        if not producers:
            lines.append(f"producer group ({group}) instances are empty")
        lines += [f"producer group ({group}) instance : {producer_text(it)}" for it in producers]
    session.out.show({"groups": groups}, lines)
