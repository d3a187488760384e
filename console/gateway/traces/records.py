"""Trace records of a message, read from the trace topic."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from console.gateway.engine.answers import BrokerFailure, now_ms
from console.gateway.engine.errors import NotFound
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.messages.lookup import KEY_MESSAGES_MAX, TIMESTAMP_MAX
from console.gateway.messages.paging import Window
from console.gateway.messages.queue_slices import QueueRef, brokers_of, read_slice, topic_queues
from console.gateway.messages.windows import stored_windows
from core_broker.errors import ProtocolError
from core_broker.message.model import MessageExt
from core_broker.message.topics import TRACE_TOPIC
from trace.codec import TraceRecord, decode_trace


@dataclass(frozen=True, slots=True)
class TraceQuery:
    """The trace records of a message and the queues of the trace topic."""

    queues: tuple[QueueRef, ...] = ()
    records: tuple[TraceRecord, ...] = ()
    broken_count: int = 0
    is_cut: bool = False
    failures: tuple[BrokerFailure, ...] = ()


async def query_traces(session: ClusterSession, msg_id: str, trace_topic: str) -> TraceQuery:
    try:
        queues = await topic_queues(session, trace_topic)
    except NotFound:
        return TraceQuery()
    found, failures = await session.fan_out(
        brokers_of(queues),
        lambda broker: _trace_messages(session, broker, trace_topic, msg_id),
        one_must_answer=False,
    )
    records, broken_count = _records([each for part in found.values() for each in part], msg_id)
    is_cut = any(len(part) >= KEY_MESSAGES_MAX for part in found.values())
    return TraceQuery(queues, tuple(records), broken_count, is_cut, failures)


async def records_of(
    session: ClusterSession, msg_id: str
) -> tuple[tuple[TraceRecord, ...], tuple[BrokerFailure, ...]]:
    """Return the trace records of a message; none without a trace topic."""
    traced = await query_traces(session, msg_id, TRACE_TOPIC)
    return traced.records, traced.failures


async def _trace_messages(
    session: ClusterSession, broker: BrokerRef, trace_topic: str, msg_id: str
) -> list[MessageExt]:
    return await session.admin.query_message(
        broker.addr, trace_topic, msg_id, KEY_MESSAGES_MAX, 0, TIMESTAMP_MAX
    )


def _records(messages: Iterable[MessageExt], msg_id: str) -> tuple[list[TraceRecord], int]:
    """Decode the records of the message; an undecodable trace message is one broken record."""
    records: list[TraceRecord] = []
    broken_count = 0
    for message in messages:
        try:
            decoded = decode_trace(message.decompressed_body())
        except ProtocolError:
            broken_count += 1
            continue
        # A trace message holds records of many messages; the Pub record of a batch lists its ids.
        records += [each for each in decoded.records if msg_id in each.msg_id.split(",")]
        broken_count += decoded.broken_count
    return records, broken_count


async def kept_since_ms(session: ClusterSession, queues: Sequence[QueueRef]) -> int:
    """Return the store time since which the queues are complete; 0 when nothing was deleted."""

    async def first_ms(window: Window) -> int:
        if window.begin == 0:
            return 0
        first = await read_slice(session, window.queue, window.begin, window.begin + 1)
        return first.messages[0].store_timestamp if first.messages else now_ms()

    async def ask(broker: BrokerRef) -> list[int]:
        windows = await stored_windows(session, [each for each in queues if each.broker == broker])
        return await asyncio.gather(*(first_ms(each) for each in windows))

    found, _failures = await session.fan_out(brokers_of(queues), ask, one_must_answer=False)
    return max((ms for times in found.values() for ms in times), default=0)
