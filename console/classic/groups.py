"""/consumer/… and /producer/…"""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import msgspec
from rest_framework.request import Request
from rest_framework.response import Response

from console.classic.base import ClassicCall, number, success, whole
from console.gateway.clients import all_clients
from console.gateway.groups.listing import GroupRow, group_rows, group_settings
from console.gateway.groups.members import (
    Client,
    GroupClients,
    clients_of,
    group_clients,
    queue_owners,
)
from console.gateway.groups.metrics import GroupMetrics, metrics_of_groups
from console.gateway.groups.progress import GroupQueue, queue_progress, with_owners

#: Maximum number of listed groups. Classic lists all groups and caches the answer without expiry.
GROUPS_ASKED_MAX = 500


class GroupList(ClassicCall):
    def get(self, request: Request) -> Response:
        rows = whole(self.cluster.ask(group_rows))
        if self.flag("skipSysGroup"):
            rows = tuple(row for row in rows if not row.system)
        return success(self.infos(rows[:GROUPS_ASKED_MAX]))

    def infos(self, rows: Iterable[GroupRow]) -> list[dict[str, Any]]:
        shown = list(rows)
        names = tuple(row.name for row in shown)
        members = whole(self.cluster.ask(clients_of, names))
        numbers = whole(self.cluster.ask(metrics_of_groups, names))
        return [group_info(row, members.get(row.name), numbers.get(row.name)) for row in shown]


class GroupOne(GroupList):
    def get(self, request: Request) -> Response:
        name = self.text("consumerGroup")
        self.cluster.ask(group_settings, name)  # raises NotFound for an unknown group
        rows = [row for row in whole(self.cluster.ask(group_rows)) if row.name == name]
        return success(self.infos(rows)[0])


class GroupTopics(ClassicCall):
    def get(self, request: Request) -> Response:
        """Offsets of the group by topic and queue."""
        name = self.text("consumerGroup")
        queues = whole(self.cluster.ask(queue_progress, name))
        owners = whole(self.cluster.ask(queue_owners, name))
        return success(consumer_infos(with_owners(queues, owners)))


class GroupConnection(ClassicCall):
    def get(self, request: Request) -> Response:
        members = whole(self.cluster.ask(group_clients, self.text("consumerGroup")))
        return success(
            {
                "connectionSet": [connection(client) for client in members.clients],
                "subscriptionTable": {
                    subscription.topic: msgspec.to_builtins(subscription)
                    for subscription in members.subscriptions
                },
                "consumeType": members.consume_type,
                "messageModel": members.message_model,
                "consumeFromWhere": members.consume_from_where,
            }
        )


class ProducerConnection(ClassicCall):
    def get(self, request: Request) -> Response:
        group = self.text("producerGroup")
        clients = whole(self.cluster.ask(all_clients)).clients
        producers = [client for client in clients if group in client.producer_groups]
        return success({"connectionSet": [connection(client) for client in producers]})


def group_info(
    row: GroupRow, members: GroupClients | None, numbers: GroupMetrics | None
) -> dict[str, Any]:
    clients = members.clients if members else ()
    rate = numbers.rate if numbers else None
    return {
        "group": row.name,
        "version": clients[0].version if clients else None,
        "count": len(clients),
        "consumeType": members.consume_type if members else None,
        "messageModel": members.message_model if members else None,
        "consumeTps": round(rate) if rate is not None else 0,
        "diffTotal": number(numbers.lag if numbers else None),
        "subGroupType": "SYSTEM" if row.system else "NORMAL",
    }


def consumer_infos(queues: Iterable[GroupQueue]) -> list[dict[str, Any]]:
    """Classic's TopicConsumerInfo for each topic; -1 for unknown numbers."""
    ordered = sorted(queues, key=lambda queue: (queue.topic, queue.broker, queue.queue_id))
    infos = []
    for topic, of_topic in groupby(ordered, key=lambda queue: queue.topic):
        held = list(of_topic)
        lags = [
            queue.broker_offset - queue.consumer_offset
            for queue in held
            if queue.broker_offset is not None and queue.consumer_offset is not None
        ]
        infos.append(
            {
                "topic": topic,
                "diffTotal": sum(lags) if len(lags) == len(held) else number(None),
                "lastTimestamp": max((queue.last_consumed_ms or 0 for queue in held), default=0),
                "queueStatInfoList": [
                    {
                        "brokerName": queue.broker,
                        "queueId": queue.queue_id,
                        "brokerOffset": number(queue.broker_offset),
                        "consumerOffset": number(queue.consumer_offset),
                        "clientInfo": queue.client,
                        "lastTimestamp": queue.last_consumed_ms or 0,
                    }
                    for queue in held
                ],
            }
        )
    return infos


def connection(client: Any) -> dict[str, Any]:
    """Classic's Connection of a consumer or a producer."""
    member: Client = client
    return {
        "clientId": member.client_id,
        "clientAddr": member.addr,
        "language": member.language,
        "version": member.version,
        "versionDesc": member.version,
    }
