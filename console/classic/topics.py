"""/cluster/list.query and /topic/…"""

from typing import Any

import msgspec
from rest_framework.request import Request
from rest_framework.response import Response

from console.classic.base import ClassicCall, success, whole
from console.classic.groups import consumer_infos
from console.gateway import NotFound
from console.gateway.brokers.listing import broker_details, cluster_map
from console.gateway.groups.progress import queue_progress
from console.gateway.topics.listing import TopicRow, topic_detail, topic_rows
from console.gateway.topics.metrics import topic_metrics
from core_broker.message.topics import DLQ_PREFIX, RETRY_PREFIX


class ClusterList(ClassicCall):
    access_resource = "clusters"

    def get(self, request: Request) -> Response:
        """Brokers by cluster with runtime info."""
        info = whole(self.cluster.ask(cluster_map))
        servers: dict[str, dict[str, Any]] = {}
        for name in info.broker_addr_table:
            details = self.cluster.ask(broker_details, name).value
            servers[name] = {  # a broker that is down must not fail the list
                str(detail.row.ref.id): dict(detail.table)
                for detail in details
                if not detail.row.down
            }
        return success({"clusterInfo": msgspec.to_builtins(info), "brokerServer": servers})


class TopicNames(ClassicCall):
    def get(self, request: Request) -> Response:
        rows = whole(self.cluster.ask(topic_rows))
        if self.flag("skipSysProcess"):
            rows = tuple(row for row in rows if kind_of(row) != "SYSTEM")
        if self.flag("skipRetryAndDlq"):
            rows = tuple(row for row in rows if not row.name.startswith((RETRY_PREFIX, DLQ_PREFIX)))
        return success({"topicList": [row.name for row in rows], "brokerAddr": None})


class TopicTypes(ClassicCall):
    def get(self, request: Request) -> Response:
        rows = whole(self.cluster.ask(topic_rows))
        return success(
            {
                "topicNameList": [row.name for row in rows],
                "messageTypeList": [kind_of(row) for row in rows],
            }
        )


class TopicStats(ClassicCall):
    def get(self, request: Request) -> Response:
        topic = self.text("topic")
        queues = whole(self.cluster.ask(topic_detail, topic)).queues
        return success(
            {
                "offsetTable": {
                    f"MessageQueue [topic={topic}, brokerName={queue.broker}, "
                    f"queueId={queue.queue_id}]": {
                        "minOffset": queue.offset_min,
                        "maxOffset": queue.offset_max,
                        "lastUpdateTimestamp": queue.last_write_ms or 0,
                    }
                    for queue in queues
                }
            }
        )


class TopicRoute(ClassicCall):
    def get(self, request: Request) -> Response:
        topic = self.text("topic")
        configs = whole(self.cluster.ask(topic_detail, topic)).configs
        table = whole(self.cluster.ask(cluster_map)).broker_addr_table
        return success(
            {
                "orderTopicConf": None,
                "queueDatas": [
                    {
                        "brokerName": ref.name,
                        "readQueueNums": config.read_queue_nums,
                        "writeQueueNums": config.write_queue_nums,
                        "perm": config.perm,
                        "topicSysFlag": config.topic_sys_flag,
                    }
                    for ref, config in configs
                ],
                "brokerDatas": [
                    msgspec.to_builtins(table[ref.name]) for ref, _c in configs if ref.name in table
                ],
                "filterServerTable": {},
            }
        )


class TopicConsumers(ClassicCall):
    def get(self, request: Request) -> Response:
        """Offsets of each group by queue of the topic."""
        topic = self.text("topic")
        infos: dict[str, Any] = {}
        for group in whole(self.cluster.ask(topic_metrics, topic)).groups:
            try:
                queues = whole(self.cluster.ask(queue_progress, group))
            except NotFound:  # the group was deleted meanwhile
                continue
            for info in consumer_infos([queue for queue in queues if queue.topic == topic]):
                infos[group] = info
        return success(infos)


class TopicConsumerNames(ClassicCall):
    def get(self, request: Request) -> Response:
        groups = whole(self.cluster.ask(topic_metrics, self.text("topic"))).groups
        return success({"groupList": list(groups)})


class TopicConfigs(ClassicCall):
    def get(self, request: Request) -> Response:
        topic = self.text("topic")
        configs = whole(self.cluster.ask(topic_detail, topic)).configs
        return success(
            [
                {
                    "clusterNameList": None,
                    "brokerNameList": [ref.name],
                    "topicName": topic,
                    "writeQueueNums": config.write_queue_nums,
                    "readQueueNums": config.read_queue_nums,
                    "perm": config.perm,
                    "order": config.order,
                    "messageType": (config.attributes or {}).get("message.type", "UNSPECIFIED"),
                }
                for ref, config in configs
            ]
        )


def kind_of(row: TopicRow) -> str:
    """Classic's name of the topic type: the type in capitals."""
    return row.kind.upper()
