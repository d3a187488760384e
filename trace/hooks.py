"""The client hook that writes trace records to the trace topic.

Compatible with RocketMQ's AsyncTraceDispatcher and its two hooks. A bounded queue holds the
records; batches go out through an untraced producer of the hook. Sends and listener calls never
wait for the trace: when the queue is full, the hook drops and counts records.
"""

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from core_broker.client.hooks import ConsumeContext, EndTransactionContext, Role, SendContext
from core_broker.client.loops import Loop
from core_broker.client.producer import Producer
from core_broker.errors import ClientError, GantryError
from core_broker.message.model import Message, MessageExt
from core_broker.message.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_KEYS,
    PROPERTY_MSG_REGION,
    PROPERTY_TRACE_SWITCH,
    PROPERTY_TRANSACTION_PREPARED,
)
from core_broker.message.topics import TRACE_TOPIC
from core_broker.remoting.client import RpcHook
from core_broker.remoting.tls_client import ClientTls
from trace.codec import (
    EndTransaction,
    MessageType,
    Pub,
    SubAfter,
    SubBefore,
    TraceRecord,
    encode_record,
    message_keys,
)

log = logging.getLogger(__name__)

#: Maximum sends and listener calls with queued records; beyond the limit the hook drops records.
CALLS_WAITING_MAX: Final = 2048
CALLS_PER_BATCH: Final = 20
FLUSH_INTERVAL_S: Final = 5.0
MESSAGE_BYTES_MAX: Final = 128_000
#: Maximum size of the KEYS property, bytes; all properties of a message must stay below 32767
#: bytes.
KEYS_BYTES_MAX: Final = 24_000
STOP_TIMEOUT_S: Final = 5.0
GROUP_PREFIX: Final = "_INNER_TRACE_PRODUCER"
DEFAULT_REGION: Final = "DefaultRegion"

_numbers = itertools.count(1)


class TraceHook:
    """Records traces of a producer or consumer: ``Producer(group, addr, hooks=[TraceHook()])``.

    One hook serves one client, and needs the client's ``rpc_hooks`` and ``tls``. ``sent`` and
    ``dropped`` count records.
    """

    def __init__(
        self,
        topic: str = TRACE_TOPIC,
        *,
        rpc_hooks: Sequence[RpcHook] = (),
        tls: ClientTls | None = None,
    ) -> None:
        self.sent = 0
        self.dropped = 0
        self._topic = topic
        self._rpc_hooks = rpc_hooks
        self._tls = tls
        self._waiting: deque[Sequence[TraceRecord]] = deque()
        self._producer: Producer | None = None
        #: Held during the send of a batch.
        self._sending = asyncio.Lock()
        self._flushes = Loop("trace", FLUSH_INTERVAL_S, self.flush, first_delay_s=FLUSH_INTERVAL_S)

    async def start(self, namesrv_addr: str, group: str, role: Role) -> None:
        if self._producer is not None:
            raise ClientError("A TraceHook serves one client; give each its own.")
        inner_group = f"{GROUP_PREFIX}-{group}-{role}-{next(_numbers)}"
        self._producer = Producer(
            inner_group, namesrv_addr, rpc_hooks=self._rpc_hooks, tls=self._tls
        )
        await self._producer.start()
        self._flushes.start()

    async def stop(self) -> None:
        """Send the queued records, within a few seconds."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S), self._sending:
                # The loop is between two batches now, so stopping the loop loses no batch.
                await self._flushes.stop()
                await self._send_waiting(producer)
        except (GantryError, TimeoutError) as error:
            log.warning("Trace records were lost at the end: %s", error)
        await self._flushes.stop()
        self.dropped += sum(map(len, self._waiting))
        self._waiting.clear()
        await producer.stop()

    async def flush(self) -> None:
        """Send the queued records now; drop records whose send fails."""
        async with self._sending:
            if self._producer is not None:
                await self._send_waiting(self._producer)

    def before_send(self, context: SendContext) -> None:
        """Do nothing: the hook writes the record of a send after the send."""

    def after_send(self, context: SendContext) -> None:
        is_oneway = context.result is None and context.error is None
        is_unwanted = context.result is not None and not context.result.trace_on
        if not is_oneway and not is_unwanted and context.outgoing.topic != self._topic:
            self._put(list(_sent(context)))

    def before_consume(self, context: ConsumeContext) -> None:
        self._put(
            [
                SubBefore(
                    timestamp_ms=context.started_ms,
                    region_id=message.properties.get(PROPERTY_MSG_REGION, DEFAULT_REGION),
                    group=context.group,
                    request_id=context.call_id,
                    msg_id=message.msg_id,
                    retry_times=message.reconsume_times,
                    keys=message.properties.get(PROPERTY_KEYS, ""),
                )
                for message in _traced(context.messages)
            ]
        )

    def after_consume(self, context: ConsumeContext) -> None:
        self._put(
            [
                SubAfter(
                    request_id=context.call_id,
                    msg_id=message.msg_id,
                    cost_ms=context.cost_ms // len(context.messages),
                    success=context.success,
                    keys=message.properties.get(PROPERTY_KEYS, ""),
                    context_code=context.return_type,
                    timestamp_ms=context.started_ms + context.cost_ms,
                    group=context.group,
                )
                for message in _traced(context.messages)
            ]
        )

    def end_transaction(self, context: EndTransactionContext) -> None:
        properties = context.message.properties
        if properties.get(PROPERTY_TRACE_SWITCH) == "false":
            return
        self._put(
            [
                EndTransaction(
                    timestamp_ms=context.ended_ms,
                    region_id=properties.get(PROPERTY_MSG_REGION, DEFAULT_REGION),
                    group=context.group,
                    topic=context.message.topic,
                    msg_id=context.msg_id,
                    tags=context.message.tags or "",
                    keys=properties.get(PROPERTY_KEYS, ""),
                    store_host=context.broker_addr,
                    msg_type=MessageType.TRANSACTION_COMMIT,
                    transaction_id=context.transaction_id,
                    transaction_state=context.state,
                    from_transaction_check=context.is_from_check,
                )
            ]
        )

    def _put(self, records: Sequence[TraceRecord]) -> None:
        if not records:
            return
        if len(self._waiting) >= CALLS_WAITING_MAX:
            self.dropped += len(records)
            return
        self._waiting.append(records)
        if len(self._waiting) >= CALLS_PER_BATCH:
            self._flushes.wake()

    async def _send_waiting(self, producer: Producer) -> None:
        failure: GantryError | None = None
        while self._waiting and failure is None:
            calls = [
                self._waiting.popleft() for _ in range(min(len(self._waiting), CALLS_PER_BATCH))
            ]
            for message, count in pack(self._topic, itertools.chain.from_iterable(calls)):
                try:
                    await producer.send(message)
                except GantryError as error:
                    failure = error
                    self.dropped += count
                else:
                    self.sent += count
        if failure is not None:
            raise failure


def pack(topic: str, records: Iterable[TraceRecord]) -> Iterator[tuple[Message, int]]:
    """Pack records into messages of at most the maximum trace message size, each with its
    record count.
    """
    texts: list[str] = []
    packed: list[TraceRecord] = []
    size = keys_size = 0
    for record in records:
        text = encode_record(record)
        text_size = _bytes(text)
        key_size = _bytes(" ".join(message_keys([record]))) + 1
        if packed and (
            size + text_size > MESSAGE_BYTES_MAX or keys_size + key_size > KEYS_BYTES_MAX
        ):
            yield _message(topic, texts, packed), len(packed)
            texts, packed, size, keys_size = [], [], 0, 0
        texts.append(text)
        packed.append(record)
        size += text_size
        keys_size += key_size
    if packed:
        yield _message(topic, texts, packed), len(packed)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _message(topic: str, texts: Sequence[str], records: Sequence[TraceRecord]) -> Message:
    body = "".join(texts).encode("utf-8", "replace")
    return Message(topic, body, keys=message_keys(records))


def _sent(context: SendContext) -> Iterator[Pub]:
    """One record per message, so that each message of a batch has a trace."""
    result, outgoing = context.result, context.outgoing
    offset_ids = result.offset_msg_id.split(",") if result else []
    for number, (message, msg_id) in enumerate(
        zip(outgoing.messages, outgoing.msg_ids, strict=True)
    ):
        yield Pub(
            timestamp_ms=context.started_ms,
            region_id=result.region_id if result else DEFAULT_REGION,
            group=context.group,
            topic=outgoing.topic,
            msg_id=msg_id,
            tags=message.tags or "",
            keys=message.properties.get(PROPERTY_KEYS, ""),
            store_host=context.broker_addr,
            body_bytes=len(message.body),
            cost_ms=context.cost_ms,
            msg_type=_message_type(message),
            offset_msg_id=offset_ids[number] if number < len(offset_ids) else "",
            success=result is not None,
        )


def _message_type(message: Message) -> MessageType:
    if message.properties.get(PROPERTY_TRANSACTION_PREPARED) == "true":
        return MessageType.TRANSACTION_HALF
    if PROPERTY_DELAY_TIME_LEVEL in message.properties:
        return MessageType.DELAY
    return MessageType.NORMAL


def _traced(messages: Sequence[MessageExt]) -> list[MessageExt]:
    """The messages without those whose producer disabled tracing."""
    return [m for m in messages if m.properties.get(PROPERTY_TRACE_SWITCH) != "false"]
