"""/message/… and /messageTrace/…"""

from typing import Any

import msgspec
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from console.classic.base import ClassicCall, success, whole
from console.frame.access import Need, needs
from console.gateway import Cluster, NotFound, Unusable
from console.gateway.messages.browse import PAGE_MESSAGES_MAX, browse
from console.gateway.messages.deliveries import Delivery, deliveries
from console.gateway.messages.lookup import by_key, find
from console.gateway.messages.stored import MessageRef
from console.gateway.traces.journey import journey
from core_broker.errors import ProtocolError
from core_broker.message.model import MessageExt
from trace.codec import EndTransaction, Pub, SubAfter, SubBefore

PAGE_SIZE_DEFAULT = 20
#: Maximum page number. Pages are read by cursor, so page N costs N requests.
PAGES_WALKED_MAX = 50
MOMENT_MS_MAX = 2**53
TRACKS = {
    Delivery.CONSUMED: "CONSUMED",
    Delivery.FILTERED: "CONSUMED_BUT_FILTERED",
    Delivery.WAITING: "NOT_CONSUME_YET",
    Delivery.NOT_SUBSCRIBED: "NOT_ONLINE",
    Delivery.UNKNOWN: "UNKNOWN",
}


class ViewMessage(ClassicCall):
    def get(self, request: Request) -> Response:
        """A message by message id or offset message id, and the delivery state by group."""
        ref = one_message(self.cluster, self.text("msgId"), request.query_params.get("topic", ""))
        groups = whole(self.cluster.ask(deliveries, ref.message.offset_msg_id))
        tracks = [
            {
                "consumerGroup": delivery.group,
                "trackType": TRACKS[delivery.state],
                "exceptionDesc": str(delivery.reason) or None,
            }
            for delivery in groups
        ]
        return success({"messageView": message_view(ref.message), "messageTrackList": tracks})


class MessagesByKey(ClassicCall):
    def get(self, request: Request) -> Response:
        result = whole(self.cluster.ask(by_key, self.text("topic"), self.text("key")))
        return success([message_view(ref.message) for ref in result.refs])


@needs(Need.READ)
class MessagePage(ClassicCall):
    def post(self, request: Request) -> Response:
        """Messages of a topic in a time range, newest first."""
        fields = read_body(request.data)
        return success(page_of(self.cluster, str(fields.get("topic", "")), fields))


class TraceGraph(ClassicCall):
    access_resource = "traces"

    def get(self, request: Request) -> Response:
        """Trace records of a message, by producer and consumer group."""
        answer = self.cluster.ask(journey, self.text("msgId")).value
        views = [{"traceType": type(record).__name__, **plain(record)} for record in answer.records]
        sent = [record for record in answer.records if isinstance(record, Pub)]
        ends = [record for record in answer.records if isinstance(record, EndTransaction)]
        producer = sent[0] if sent else None
        return success(
            {
                "producerNode": None
                if producer is None
                else {
                    **plain(producer),
                    "groupName": producer.group,
                    "traceNode": {
                        "beginTimestamp": producer.timestamp_ms,
                        "costTime": producer.cost_ms,
                        "status": "success" if producer.success else "failed",
                        "storeHost": producer.store_host,
                        "clientHost": producer.client_host,
                    },
                    "transactionNodeList": [plain(record) for record in ends],
                },
                "subscriptionNodeList": subscriptions(answer.records),
                "messageTraceViews": views,
            }
        )


def subscriptions(records: Any) -> list[dict[str, Any]]:
    """A node for each group, with an entry per delivery attempt."""
    after = {record.request_id: record for record in records if isinstance(record, SubAfter)}
    nodes: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        if isinstance(record, SubBefore):
            ended = after.get(record.request_id)
            status = "unknown" if ended is None else "success" if ended.success else "failed"
            nodes.setdefault(record.group, []).append(
                {
                    "requestId": record.request_id,
                    "beginTimestamp": record.timestamp_ms,
                    "costTime": ended.cost_ms if ended else -1,
                    "retryTimes": record.retry_times,
                    "status": status,
                }
            )
    return [{"subscriptionGroup": group, "consumeNodeList": held} for group, held in nodes.items()]


def page_of(cluster: Cluster, topic: str, fields: dict[str, Any]) -> dict[str, Any]:
    """A page of Classic by number, reached through the cursors of all earlier pages."""
    size = between(fields, "pageSize", 1, PAGE_MESSAGES_MAX, PAGE_SIZE_DEFAULT)
    page = between(fields, "pageNum", 1, PAGES_WALKED_MAX, 1)
    begin = between(fields, "begin", 0, MOMENT_MS_MAX, 0) or None
    end = between(fields, "end", 0, MOMENT_MS_MAX, 0) or None
    cursor: str | None = None
    for number in range(1, page + 1):
        listed = whole(cluster.ask(browse, topic, begin, end, cursor, size))
        cursor = listed.next_cursor
        if cursor is None:
            rows = listed.rows if number == page else ()
            break
    else:
        rows = listed.rows
    pages = -(-listed.total // size)
    content = [message_view(ref.message) for ref in rows]
    return {
        "page": {
            "content": content,
            "totalElements": listed.total,
            "totalPages": pages,
            "size": size,
            "number": page - 1,
            "numberOfElements": len(content),
            "first": page == 1,
            "last": cursor is None,
        },
        "taskId": None,
    }


def one_message(cluster: Cluster, msg_id: str, topic: str) -> MessageRef:
    """The message with a message id or offset message id; the first stored message if retries share
    the id."""
    answer = cluster.ask(find, msg_id, topic[:255])
    refs = answer.value.refs
    if not refs:
        whole(answer)  # a broker that is down may have the message
        raise NotFound(_("No message with ID “%(id)s”.") % {"id": msg_id})
    return min(refs, key=lambda ref: ref.message.store_timestamp)


def message_view(message: MessageExt) -> dict[str, Any]:
    """Classic's MessageView. Binary bodies are decoded with replacement characters."""
    try:
        body = message.decompressed_body()
    except ProtocolError:
        body = message.body
    return {
        "queueId": message.queue_id,
        "storeSize": message.store_size,
        "queueOffset": message.queue_offset,
        "sysFlag": message.sys_flag,
        "bornTimestamp": message.born_timestamp,
        "bornHost": "{}:{}".format(*message.born_host),
        "storeTimestamp": message.store_timestamp,
        "storeHost": "{}:{}".format(*message.store_host),
        "msgId": message.msg_id,
        "commitLogOffset": message.offset_physical,
        "bodyCRC": message.body_crc,
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "topic": message.topic,
        "flag": message.flag,
        "properties": dict(message.properties),
        "messageBody": body.decode("utf-8", "replace"),
    }


def read_body(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise Unusable(_("Expected a JSON object."))
    return data


def between(fields: dict[str, Any], name: str, least: int, most: int, default: int) -> int:
    value = fields.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Unusable(
            _("“%(name)s”: expected a number from %(least)d to %(most)d.")
            % {"name": name, "least": least, "most": most}
        )
    return value


def plain(record: Any) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(record)
    return fields
