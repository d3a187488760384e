"""/message/… and /messageTrace/…"""

from typing import Any

import msgspec
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from console.classic.base import ClassicCall, told
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
#: A page far back is found by walking to it, so there is an end to it.
PAGES_WALKED_MAX = 50
MOMENT_MS_MAX = 2**53
TRACKS = {
    Delivery.CONSUMED: "CONSUMED",
    Delivery.WAITING: "NOT_CONSUME_YET",
    Delivery.NOT_SUBSCRIBED: "NOT_ONLINE",
    Delivery.UNKNOWN: "UNKNOWN",
}


class ViewMessage(ClassicCall):
    def get(self, request: Request) -> Response:
        """A message by any of its ids, and how far each group is with it."""
        ref = one_message(self.cluster, self.text("msgId"), request.query_params.get("topic", ""))
        groups = self.cluster.ask(deliveries, ref.message.offset_msg_id).value
        tracks = [
            {
                "consumerGroup": each.group,
                "trackType": TRACKS[each.state],
                "exceptionDesc": str(each.reason) or None,
            }
            for each in groups
        ]
        return told({"messageView": message_view(ref.message), "messageTrackList": tracks})


class MessagesByKey(ClassicCall):
    def get(self, request: Request) -> Response:
        found = self.cluster.ask(by_key, self.text("topic"), self.text("key")).value
        return told([message_view(ref.message) for ref in found.refs])


@needs(Need.READ)
class MessagePage(ClassicCall):
    def post(self, request: Request) -> Response:
        """Messages of a topic between two times, newest first."""
        asked = read_body(request.data)
        return told(page_of(self.cluster, str(asked.get("topic", "")), asked))


class TraceGraph(ClassicCall):
    def get(self, request: Request) -> Response:
        """What producers and consumers told of one message."""
        answer = self.cluster.ask(journey, self.text("msgId")).value
        views = [{"traceType": type(each).__name__, **plain(each)} for each in answer.records]
        sent = [each for each in answer.records if isinstance(each, Pub)]
        ends = [each for each in answer.records if isinstance(each, EndTransaction)]
        producer = sent[0] if sent else None
        return told(
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
                    "transactionNodeList": [plain(each) for each in ends],
                },
                "subscriptionNodeList": subscriptions(answer.records),
                "messageTraceViews": views,
            }
        )


def subscriptions(records: Any) -> list[dict[str, Any]]:
    """One node for each group, with a line for each attempt."""
    after = {each.request_id: each for each in records if isinstance(each, SubAfter)}
    nodes: dict[str, list[dict[str, Any]]] = {}
    for each in records:
        if isinstance(each, SubBefore):
            ended = after.get(each.request_id)
            status = "unknown" if ended is None else "success" if ended.success else "failed"
            nodes.setdefault(each.group, []).append(
                {
                    "requestId": each.request_id,
                    "beginTimestamp": each.timestamp_ms,
                    "costTime": ended.cost_ms if ended else -1,
                    "retryTimes": each.retry_times,
                    "status": status,
                }
            )
    return [{"subscriptionGroup": group, "consumeNodeList": held} for group, held in nodes.items()]


def page_of(cluster: Cluster, topic: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Classic's page: its number is walked to by cursor, since that is how messages are read."""
    size = between(asked, "pageSize", 1, PAGE_MESSAGES_MAX, PAGE_SIZE_DEFAULT)
    page = between(asked, "pageNum", 1, PAGES_WALKED_MAX, 1)
    begin = between(asked, "begin", 0, MOMENT_MS_MAX, 0) or None
    end = between(asked, "end", 0, MOMENT_MS_MAX, 0) or None
    cursor: str | None = None
    for number in range(1, page + 1):
        found = cluster.ask(browse, topic, begin, end, cursor, size).value
        cursor = found.next_cursor
        if cursor is None:
            rows = found.rows if number == page else ()
            break
    else:
        rows = found.rows
    pages = -(-found.total // size)
    content = [message_view(ref.message) for ref in rows]
    return {
        "page": {
            "content": content,
            "totalElements": found.total,
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
    """The message of an id of any kind; the first stored one where retries share it."""
    refs = cluster.ask(find, msg_id, topic[:255]).value.refs
    if not refs:
        raise NotFound(_("There is no message with the id “%(id)s”.") % {"id": msg_id})
    return min(refs, key=lambda ref: ref.message.store_timestamp)


def message_view(message: MessageExt) -> dict[str, Any]:
    """Classic's MessageView. A body that is no text is shown with replacement characters."""
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


def between(asked: dict[str, Any], name: str, least: int, most: int, default: int) -> int:
    found = asked.get(name)
    if found is None:
        return default
    if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
        raise Unusable(
            _("“%(name)s”: expected a number from %(least)d to %(most)d.")
            % {"name": name, "least": least, "most": most}
        )
    return found


def plain(record: Any) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(record)
    return found
