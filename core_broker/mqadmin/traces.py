"""queryMsgTraceById: sends and consume attempts of one message, from its trace records.

The import of `trace` places the package above `trace` in the layers.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from core_broker.message.model import MessageExt
from core_broker.message.topics import TRACE_TOPIC
from core_broker.mqadmin.command import command, text
from core_broker.mqadmin.lookup import topic_addrs
from core_broker.mqadmin.message_views import unpacked
from core_broker.mqadmin.output import Column, Record, Table
from core_broker.mqadmin.session import NotFound, Session
from core_broker.mqadmin.times import date_time
from trace.codec import Pub, SubAfter, SubBefore, decode_trace

#: Trace messages requested from each broker.
TRACE_MESSAGES_MAX = 64

_LAYOUT = "%-10s %-20s %-20s %-20s %-10s %-10s"
_TYPE = Column("type", "#Type")
_HOST = Column("clientHost", "#ClientHost")
_COST = Column("costTime", "#CostTimes", lambda cost_ms: f"{cost_ms}ms")
_STATUS = Column("status", "#Status")


def _moment(moment_ms: int | None) -> str:
    return "N/A" if moment_ms is None else date_time(moment_ms)


_PRODUCED = Table(
    _LAYOUT,
    [
        _TYPE,
        Column("group", "#ProducerGroup"),
        _HOST,
        Column("timestamp", "#SendTime", _moment),
        _COST,
        _STATUS,
    ],
)
_CONSUMED = Table(
    _LAYOUT,
    [
        _TYPE,
        Column("group", "#ConsumerGroup"),
        _HOST,
        Column("timestamp", "#ConsumerTime", _moment),
        _COST,
        _STATUS,
    ],
)


@command("queryMsgTraceById")
@text("-i", "--msgId", required=True, help="Message Id")
@text("-t", "--traceTopic", default=TRACE_TOPIC, help="The name value of message trace topic")
async def query_msg_trace_by_id(session: Session, msg_id: str, trace_topic: str) -> None:
    """Prints the producer of the message and every consume attempt of every group."""
    messages: list[MessageExt] = []
    for addr in (await topic_addrs(session.admin, trace_topic)).values():
        messages += await session.admin.query_message(addr, trace_topic, msg_id, TRACE_MESSAGES_MAX)
    produced, consumed = _records(messages, msg_id)
    if not produced and not consumed:
        raise NotFound(
            f"{trace_topic} has no trace of {msg_id}: enable message tracing in the client "
            f"(enableMsgTrace)."
        )
    document = {"msgId": msg_id, "produced": produced, "consumed": consumed}
    session.out.show(document, _lines(produced, consumed))


def _records(
    messages: list[MessageExt], msg_id: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of the producer and of the consumers.

    A SubAfter record of an older client has neither group nor time: both come from the SubBefore
    record with the same request id.
    """
    decoded = [
        (record, message.born_host[0])
        for message in messages
        for record in decode_trace(unpacked(message)).records
        if record.msg_id == msg_id
    ]
    before = {record.request_id: record for record, _ in decoded if isinstance(record, SubBefore)}
    produced = [_pub(record, host) for record, host in decoded if isinstance(record, Pub)]
    consumed = [
        _sub(record, before, host) for record, host in decoded if isinstance(record, SubAfter)
    ]
    return produced, consumed


def _pub(record: Pub, host: str) -> dict[str, Any]:
    return _row("Pub", record, record.group, host, record.timestamp_ms)


def _sub(record: SubAfter, before: dict[str, SubBefore], host: str) -> dict[str, Any]:
    start = before.get(record.request_id)
    group = record.group or (start.group if start else "")
    moment_ms = record.timestamp_ms or (start.timestamp_ms if start else None)
    return _row("Sub", record, group, host, moment_ms)


def _row(
    kind: str, record: Pub | SubAfter, group: str, host: str, moment_ms: int | None
) -> dict[str, Any]:
    return {
        "type": kind,
        "group": group,
        "clientHost": host,
        "timestamp": moment_ms,
        "costTime": record.cost_ms,
        "status": "success" if record.success else "failed",
    }


def _lines(produced: list[dict[str, Any]], consumed: list[dict[str, Any]]) -> Iterator[str]:
    for record in produced:
        yield from _PRODUCED.lines([record])
        yield ""
    by_group: dict[str, list[Record]] = defaultdict(list)
    for record in consumed:
        by_group[record["group"]].append(record)
    for records in by_group.values():
        yield from _CONSUMED.lines(records)
        yield ""
