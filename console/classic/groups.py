"""/consumer/… and /producer/…"""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import msgspec
from rest_framework.request import Request
from rest_framework.response import Response

from console.classic.base import ClassicCall, number, told
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

#: Groups whose clients are asked for; Classic asks for all of them and keeps the answer for ever.
GROUPS_ASKED_MAX = 500


class GroupList(ClassicCall):
    def get(self, request: Request) -> Response:
        rows = self.cluster.ask(group_rows).value
        if self.flag("skipSysGroup"):
            rows = tuple(row for row in rows if not row.system)
        return told(self.infos(rows[:GROUPS_ASKED_MAX]))

    def infos(self, rows: Iterable[GroupRow]) -> list[dict[str, Any]]:
        shown = list(rows)
        names = tuple(row.name for row in shown)
        members = self.cluster.ask(clients_of, names).value
        numbers = self.cluster.ask(metrics_of_groups, names).value
        return [group_info(row, members.get(row.name), numbers.get(row.name)) for row in shown]


class GroupOne(GroupList):
    def get(self, request: Request) -> Response:
        name = self.text("consumerGroup")
        self.cluster.ask(group_settings, name)  # says so when there is none of that name
        rows = [row for row in self.cluster.ask(group_rows).value if row.name == name]
        return told(self.infos(rows)[0])


class GroupTopics(ClassicCall):
    def get(self, request: Request) -> Response:
        """By topic, how far the group is in each queue."""
        name = self.text("consumerGroup")
        queues = self.cluster.ask(queue_progress, name).value
        owners = self.cluster.ask(queue_owners, name).value
        return told(consumer_infos(with_owners(queues, owners)))


class GroupConnection(ClassicCall):
    def get(self, request: Request) -> Response:
        members = self.cluster.ask(group_clients, self.text("consumerGroup")).value
        return told(
            {
                "connectionSet": [connection(each) for each in members.clients],
                "subscriptionTable": {
                    each.topic: msgspec.to_builtins(each) for each in members.subscriptions
                },
                "consumeType": members.consume_type,
                "messageModel": members.message_model,
                "consumeFromWhere": members.consume_from_where,
            }
        )


class ProducerConnection(ClassicCall):
    def get(self, request: Request) -> Response:
        group = self.text("producerGroup")
        found = self.cluster.ask(all_clients).value.clients
        producers = [each for each in found if group in each.producer_groups]
        return told({"connectionSet": [connection(each) for each in producers]})


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
    """Classic's TopicConsumerInfo, one for each topic; -1 for what nobody could tell."""
    ordered = sorted(queues, key=lambda each: (each.topic, each.broker, each.queue_id))
    infos = []
    for topic, of_topic in groupby(ordered, key=lambda each: each.topic):
        held = list(of_topic)
        lags = [
            each.broker_offset - each.consumer_offset
            for each in held
            if each.broker_offset is not None and each.consumer_offset is not None
        ]
        infos.append(
            {
                "topic": topic,
                "diffTotal": sum(lags) if len(lags) == len(held) else number(None),
                "lastTimestamp": max((each.last_consumed_ms or 0 for each in held), default=0),
                "queueStatInfoList": [
                    {
                        "brokerName": each.broker,
                        "queueId": each.queue_id,
                        "brokerOffset": number(each.broker_offset),
                        "consumerOffset": number(each.consumer_offset),
                        "clientInfo": each.client,
                        "lastTimestamp": each.last_consumed_ms or 0,
                    }
                    for each in held
                ],
            }
        )
    return infos


def connection(client: Any) -> dict[str, Any]:
    """Of a consumer or a producer: both have these."""
    known: Client = client
    return {
        "clientId": known.client_id,
        "clientAddr": known.addr,
        "language": known.language,
        "version": known.version,
        "versionDesc": known.version,
    }
