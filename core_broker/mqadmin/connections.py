"""Client connections: consumers of a group, producers of a group, producers of a broker."""

from typing import Any

from core_broker.errors import RequestRefused
from core_broker.mqadmin.command import command, text
from core_broker.mqadmin.java_texts import producer_text
from core_broker.mqadmin.lookup import group_connection, topic_addrs
from core_broker.mqadmin.output import Column, Record, Table
from core_broker.mqadmin.session import NotFound, Session
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
    """Prints members, subscriptions, consume type and message model of the group."""
    connections = await group_connection(session.admin, consumer_group, broker_addr)
    clients = [_client(connection) for connection in connections.connection_set]
    subscriptions: list[dict[str, Any]] = [
        {
            "topic": topic,
            "subString": data.sub_string,
            "expressionType": data.expression_type,
            "subVersion": data.sub_version,
        }
        for topic, data in sorted(connections.subscription_table.items())
    ]
    document = {
        "consumerGroup": consumer_group,
        "clients": clients,
        "subscriptions": subscriptions,
        "consumeType": connections.consume_type,
        "messageModel": connections.message_model,
        "consumeFromWhere": connections.consume_from_where,
    }
    lines = [
        *_CLIENTS.lines(clients),
        "",
        "Below is subscription:",
        *_SUBSCRIPTIONS.lines(subscriptions),
        "",
        f"ConsumeType: {connections.consume_type}",
        f"MessageModel: {connections.message_model}",
        f"ConsumeFromWhere: {connections.consume_from_where}",
    ]
    session.out.show(document, lines)


@command("producerConnection")
@text("-g", "--producerGroup", required=True, help="producer group name")
@text("-t", "--topic", required=True, help="topic name")
async def producer_connection(session: Session, producer_group: str, topic: str) -> None:
    """Lists the producers of the group that are connected to the topic's brokers."""
    refused: RequestRefused | None = None
    by_client_id: dict[str, Record] = {}
    for addr in (await topic_addrs(session.admin, topic)).values():
        try:
            connections = await session.admin.producer_connections(addr, producer_group)
        except RequestRefused as error:
            refused = error
            continue
        by_client_id |= {
            connection.client_id: _client(connection) for connection in connections.connection_set
        }
    if not by_client_id:
        raise refused or NotFound(f"Not found the producer group connection of {producer_group}.")
    clients = list(by_client_id.values())
    layout = "%04d  %-32s %-22s %-8s %s"
    lines = [layout % (n, *client.values()) for n, client in enumerate(clients, 1)]
    session.out.show({"producerGroup": producer_group, "clients": clients}, lines)


@command("producer")
@text("-b", "--broker", required=True, help="broker address")
async def producer(session: Session, broker: str) -> None:
    """Lists all producers connected to the broker."""
    groups = await session.admin.all_producers(broker)
    lines = []
    for group, producers in sorted(groups.items()):
        if not producers:
            lines.append(f"producer group ({group}) instances are empty")
        lines += [
            f"producer group ({group}) instance : {producer_text(client)}" for client in producers
        ]
    session.out.show({"groups": groups}, lines)
