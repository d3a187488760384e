"""Sending: codes 10, 310 and 320.

    10    SEND_MESSAGE          long field names      one message
    310   SEND_MESSAGE_V2       one-letter names      one message, or a batch when m=true
    320   SEND_BATCH_MESSAGE    one-letter names      likewise; the flag decides, not the code

C++ clients send batches as code 10 with batch "1". Java parses "1" as false, so the broker stores
a record with the encoded batch as the body. Compatible with RocketMQ's
SendMessageProcessor.

The event loop runs this code for every message of the slow path, so no step waits.
"""

from functools import partial

from core_broker.errors import RequestRefused
from core_broker.message import sysflag
from core_broker.message.batch import BatchLimitExceeded, decode_batch
from core_broker.message.model import MessageInner
from core_broker.message.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_WAIT_STORE_MSG_OK,
    TIMER_PROPERTIES,
    decode_properties,
)
from core_broker.message.topics import RETRY_PREFIX, TOPIC_BYTES_MAX, TRANS_HALF_TOPIC
from core_broker.processors.added_properties import added_properties
from core_broker.processors.admission import check_sendable, create_topic, queue_for
from core_broker.processors.context import BrokerContext
from core_broker.processors.delays import delay, refuse_timer, requested_level, settle_timer
from core_broker.processors.failed_messages import (
    ensure_dlq_topic,
    ensure_system_topic,
    group_of_failure,
    reconsume_times_max,
)
from core_broker.processors.put_answers import (
    message_id,
    put_refusal,
    refused_answer,
    stored_answer,
    unconfirmed_answer,
)
from core_broker.processors.turn import Turn
from core_broker.remoting.bodies import FILTER_MULTI_TAG, TopicConfig
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import SendMessageRequestHeader, SendMessageRequestHeaderV2
from core_broker.state.half_messages import make_half
from core_broker.store import PutResult, PutStatus

#: Properties that redirect a message to the schedule topic or to the half topic.
_REDIRECTING = frozenset({PROPERTY_DELAY_TIME_LEVEL, PROPERTY_TRANSACTION_PREPARED})
#: Transaction types of messages that no consume queue may contain.
_HIDDEN = frozenset({sysflag.TRANSACTION_PREPARED, sysflag.TRANSACTION_ROLLBACK})


class SendProcessor:
    """Stores messages of producers."""

    def __init__(self, ctx: BrokerContext, turn: Turn) -> None:
        self._ctx = ctx
        self._turn = turn

    def send(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """SEND_MESSAGE (10)."""
        return self._send(connection, request, request.header(SendMessageRequestHeader))

    def send_v2(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """SEND_MESSAGE_V2 (310) and SEND_BATCH_MESSAGE (320)."""
        return self._send(connection, request, request.header(SendMessageRequestHeaderV2))

    def _send(
        self, connection: Connection, request: RemotingCommand, header: SendMessageRequestHeader
    ) -> RemotingCommand | None:
        ctx = self._ctx
        name = header.topic
        try:
            topic = ctx.topics.get(name)
            check_sendable(ctx, topic, name)
            if (topic is None or name in ctx.unsaved_topics) and not ctx.store.writable:
                # On a full disk the topic cannot be saved either.
                raise put_refusal(ctx.config, PutStatus.SERVICE_NOT_AVAILABLE)
            if topic is None:
                topic = create_topic(ctx, header)
            if ctx.unsaved_topics:
                ctx.require_saved(name)
            queue_id = header.queue_id
            if not 0 <= queue_id < topic.write_queue_nums:
                queue_id = queue_for(topic, queue_id, connection)
            inner = self._inner(connection, request, header, topic, queue_id)
            wait = inner.properties.get(PROPERTY_WAIT_STORE_MSG_OK)
            put = self._put_batch if header.batch else self._put
            msg_id, result = put(inner, request, header)
        except RequestRefused as refusal:
            return refused_answer(ctx.config, refusal)
        if request.is_oneway:
            self._turn.end_soon()
            return None
        response = stored_answer(ctx.config, msg_id, queue_id, result.offset_logical)
        if self._turn.durability.must_wait(wait):
            confirmed = partial(self._confirmed, connection, request, response)
            self._turn.when_confirmed(confirmed)
            return None
        return response

    def _confirmed(
        self,
        connection: Connection,
        request: RemotingCommand,
        response: RemotingCommand,
        code: ResponseCode,
    ) -> None:
        if code != ResponseCode.SUCCESS:
            ctx = self._ctx
            response = unconfirmed_answer(ctx.config, response, code, ctx.store.writable)
        connection.answer(request, response)

    def _inner(
        self,
        connection: Connection,
        request: RemotingCommand,
        header: SendMessageRequestHeader,
        topic: TopicConfig,
        queue_id: int,
    ) -> MessageInner:
        ctx = self._ctx
        properties = decode_properties(header.properties)
        properties |= added_properties(ctx.config)
        sys_flag = header.sys_flag
        if topic.topic_filter_type == FILTER_MULTI_TAG:
            sys_flag |= sysflag.MULTI_TAGS
        return MessageInner(
            topic.topic_name,
            queue_id,
            request.body,
            properties,
            header.flag,
            sys_flag,
            header.born_timestamp,
            (connection.peer_host, connection.peer_port),
            ctx.host,
            header.reconsume_times,
        )

    def _put(
        self, inner: MessageInner, request: RemotingCommand, header: SendMessageRequestHeader
    ) -> tuple[str, PutResult]:
        """Store a message; returns message id and position."""
        ctx = self._ctx
        properties = inner.properties
        if not TIMER_PROPERTIES.isdisjoint(properties):
            settle_timer(inner)
        if inner.topic.startswith(RETRY_PREFIX):
            self._redirect_exhausted(inner, request, header)
        if _REDIRECTING.isdisjoint(properties) and not inner.sys_flag & sysflag.TRANSACTION_MASK:
            properties.pop(PROPERTY_WAIT_STORE_MSG_OK, None)
        else:
            self._redirect(inner, header)
        result = ctx.store.put(inner)
        if result.status is not PutStatus.PUT_OK:
            raise put_refusal(ctx.config, result.status)
        puts = ctx.statistics.puts_of(inner.topic)
        puts.count_of[inner.queue_id] += 1
        puts.bytes_of[inner.queue_id] += result.size
        return message_id(ctx.host, result.offset_physical), result

    def _redirect_exhausted(
        self, inner: MessageInner, request: RemotingCommand, header: SendMessageRequestHeader
    ) -> None:
        """Redirect a message without retries left to the dead-letter topic of its group."""
        group = group_of_failure(self._ctx, inner.topic.removeprefix(RETRY_PREFIX))
        if header.reconsume_times >= reconsume_times_max(
            request, header.max_reconsume_times, group
        ):
            inner.topic = ensure_dlq_topic(self._ctx, group.group_name).topic_name
            self._ctx.require_saved(inner.topic)
            inner.queue_id = 0
            inner.properties.pop(PROPERTY_DELAY_TIME_LEVEL, None)
            self._ctx.statistics.dead_lettered(group.group_name)

    def _redirect(self, inner: MessageInner, header: SendMessageRequestHeader) -> None:
        """Redirect a message to the half topic or to the queue of its delay level."""
        level = requested_level(inner)
        # A retried message keeps the properties of the transaction that it was once sent in.
        is_retried = header.reconsume_times > 0 and header.topic.startswith(RETRY_PREFIX)
        if _is_half(inner) and not is_retried:
            # The delay of a transactional message begins with the commit.
            if self._ctx.config.reject_transaction_message:
                raise RequestRefused(
                    ResponseCode.NO_PERMISSION,
                    f"the broker[{self._ctx.host[0]}] sending transaction message is forbidden",
                )
            ensure_system_topic(self._ctx, TRANS_HALF_TOPIC)
            make_half(inner, header.producer_group)
            return
        if inner.sys_flag & sysflag.TRANSACTION_MASK in _HIDDEN:
            raise RequestRefused(
                ResponseCode.MESSAGE_ILLEGAL,
                "the message has a transaction flag but not the property TRAN_MSG; "
                "consumers would never receive the message",
            )
        if level > 0:
            delay(inner, level, self._ctx.delay_levels)

    def _put_batch(
        self, batch: MessageInner, request: RemotingCommand, header: SendMessageRequestHeader
    ) -> tuple[str, PutResult]:
        """Store the messages of a batch together, each with its own and the batch's properties.

        Returns the message ids, joined by commas, and the position of the first message.
        """
        ctx = self._ctx
        _check_batch(batch)
        if len(batch.body) > ctx.config.max_message_size:
            raise put_refusal(ctx.config, PutStatus.MESSAGE_ILLEGAL)
        try:
            messages = decode_batch(batch.body)
        except BatchLimitExceeded as error:
            raise RequestRefused(ResponseCode.MESSAGE_ILLEGAL, str(error)) from None
        if not messages:
            raise RequestRefused(ResponseCode.MESSAGE_ILLEGAL, "a batch without messages")
        for message in messages:
            refuse_timer(message.properties)
        inners = [
            MessageInner(
                batch.topic,
                batch.queue_id,
                message.body,
                {**message.properties, **batch.properties},
                message.flag,
                batch.sys_flag,
                batch.born_timestamp,
                batch.born_host,
                batch.store_host,
                batch.reconsume_times,
            )
            for message in messages
        ]
        results = ctx.store.put_batch(inners)
        if results[0].status is not PutStatus.PUT_OK:
            raise put_refusal(ctx.config, results[0].status)
        puts = ctx.statistics.puts_of(batch.topic)
        puts.count_of[batch.queue_id] += len(results)
        puts.bytes_of[batch.queue_id] += sum(result.size for result in results)
        ids = [message_id(ctx.host, result.offset_physical) for result in results]
        return ",".join(ids), results[0]


def _is_half(inner: MessageInner) -> bool:
    return inner.properties.get(PROPERTY_TRANSACTION_PREPARED, "").lower() == "true"


def _check_batch(batch: MessageInner) -> None:
    if len(batch.topic) > TOPIC_BYTES_MAX:
        raise RequestRefused(
            ResponseCode.MESSAGE_ILLEGAL, f"message topic length too long {len(batch.topic)}"
        )
    if batch.topic.startswith(RETRY_PREFIX):
        raise RequestRefused(
            ResponseCode.MESSAGE_ILLEGAL,
            f"batch request does not support retry group {batch.topic}",
        )
    is_transaction = batch.sys_flag & sysflag.TRANSACTION_MASK or _is_half(batch)
    if is_transaction or requested_level(batch) > 0:
        raise RequestRefused(
            ResponseCode.MESSAGE_ILLEGAL, "a batch can be neither delayed nor transactional"
        )
    refuse_timer(batch.properties)
