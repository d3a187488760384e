"""Replies of request-reply messaging: codes 324 and 325, and 326 to the requester.

    requester   sends to a topic, with CORRELATION_ID, REPLY_TO_CLIENT (its client id) and TTL
    replier     324, 325 to <cluster>_REPLY_TOPIC, with the same properties and MSG_TYPE=reply
    broker      326 to the producer with the client id REPLY_TO_CLIENT, with PUSH_REPLY_TIME; then
                stores the reply if storeReplyMessageEnable, waits for disk and slaves as after a
                send, and answers the replier with the outcome of 326

Compatible with RocketMQ's ReplyMessageProcessor, which answers a reply with the outcome of 326 also
when disk or slaves do not have the reply in time; here the replier gets the code of a send.
"""

import logging
from typing import cast

from core_broker.errors import ClientError, RequestRefused, TransportError
from core_broker.message.model import MessageInner
from core_broker.message.properties import (
    PROPERTY_MESSAGE_REPLY_TO_CLIENT,
    PROPERTY_PUSH_REPLY_TIME,
    PROPERTY_WAIT_STORE_MSG_OK,
    decode_properties,
    properties_text,
)
from core_broker.processors.admission import check_sendable, create_topic, queue_for
from core_broker.processors.context import BrokerContext
from core_broker.processors.put_answers import (
    message_id,
    refused_answer,
    stored_answer,
    unconfirmed_answer,
)
from core_broker.processors.turn import Turn
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import (
    ReplyMessageRequestHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
)
from core_broker.store import PutResult, PutStatus

log = logging.getLogger(__name__)

#: Timeout for the requester's acknowledgement of a reply, ms.
PUSH_TIMEOUT_MS = 10_000
#: Message id in the answer to a replier whose reply was delivered and not stored.
NOT_STORED_ID = "0"


class ReplyProcessor:
    """Delivers replies to their requesters."""

    def __init__(self, ctx: BrokerContext, turn: Turn) -> None:
        self._ctx = ctx
        self._turn = turn

    def reply(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """SEND_REPLY_MESSAGE (324)."""
        return self._reply(connection, request, request.header(SendMessageRequestHeader))

    def reply_v2(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """SEND_REPLY_MESSAGE_V2 (325)."""
        return self._reply(connection, request, request.header(SendMessageRequestHeaderV2))

    def _reply(
        self, connection: Connection, request: RemotingCommand, header: SendMessageRequestHeader
    ) -> RemotingCommand | None:
        ctx = self._ctx
        try:
            inner = self._inner(connection, request, header)
        except RequestRefused as refusal:
            return refused_answer(ctx.config, refusal)
        ctx.answer_later(connection, request, self._deliver(header, inner))
        return None

    def _inner(
        self, connection: Connection, request: RemotingCommand, header: SendMessageRequestHeader
    ) -> MessageInner:
        """The reply as a message for the store; raises RequestRefused as for any message."""
        ctx = self._ctx
        topic = ctx.topics.get(header.topic)
        check_sendable(ctx, topic, header.topic)
        if topic is None:
            topic = create_topic(ctx, header)
        ctx.require_saved(header.topic)
        queue_id = header.queue_id
        if not 0 <= queue_id < topic.write_queue_nums:
            queue_id = queue_for(topic, queue_id, connection)
        return MessageInner(
            topic.topic_name,
            queue_id,
            request.body,
            decode_properties(header.properties),
            header.flag,
            header.sys_flag,
            header.born_timestamp,
            (connection.peer_host, connection.peer_port),
            ctx.host,
            header.reconsume_times,
        )

    async def _deliver(
        self, header: SendMessageRequestHeader, inner: MessageInner
    ) -> RemotingCommand:
        failure = await self._push(header, inner)
        stored = self._store(inner) if self._ctx.config.store_reply_message_enable else None
        config = self._ctx.config
        if stored is not None:
            msg_id = message_id(self._ctx.host, stored.offset_physical)
            response = stored_answer(config, msg_id, inner.queue_id, stored.offset_logical)
            code = await self._confirmation(inner)
            if code != ResponseCode.SUCCESS:
                response = unconfirmed_answer(config, response, code, self._ctx.store.writable)
        elif failure is None:
            response = stored_answer(config, NOT_STORED_ID, inner.queue_id, 0)
        else:
            return refused_answer(config, RequestRefused(ResponseCode.SYSTEM_ERROR, failure))
        if failure is not None:
            response.code, response.remark = ResponseCode.SYSTEM_ERROR, failure
        return response

    async def _confirmation(self, inner: MessageInner) -> ResponseCode:
        """Write the stored reply, and wait for disk and slaves as after a send."""
        if self._turn.durability.must_wait(inner.properties.get(PROPERTY_WAIT_STORE_MSG_OK)):
            return await self._turn.confirmation()
        self._turn.end()
        return ResponseCode.SUCCESS

    async def _push(self, header: SendMessageRequestHeader, inner: MessageInner) -> str | None:
        """Deliver the reply to the requester; returns the remark of a failure, or None."""
        client_id = inner.properties.get(PROPERTY_MESSAGE_REPLY_TO_CLIENT)
        if client_id is None:
            return f"reply message properties[{PROPERTY_MESSAGE_REPLY_TO_CLIENT}] is null"
        requester = self._ctx.producers.client(client_id)
        if requester is None:
            return f"push reply message fail, channel of <{client_id}> not found."
        pushed = RemotingCommand.request(
            RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, self._push_header(header, inner), inner.body
        )
        try:
            answer = await cast("Connection", requester.channel).invoke(pushed, PUSH_TIMEOUT_MS)
        except (TransportError, ClientError) as error:
            log.warning("the reply for requester %s was not delivered: %s", client_id, error)
        else:
            if answer.code == ResponseCode.SUCCESS:
                return None
            log.warning("requester %s rejected its reply: %s", client_id, answer.remark)
        return f"push reply message to {client_id}fail."

    def _push_header(
        self, header: SendMessageRequestHeader, inner: MessageInner
    ) -> ReplyMessageRequestHeader:
        now_ms = self._ctx.now_ms()
        properties = {PROPERTY_PUSH_REPLY_TIME: str(now_ms), **inner.properties}
        return ReplyMessageRequestHeader(
            producer_group=header.producer_group,
            topic=header.topic,
            default_topic=header.default_topic,
            default_topic_queue_nums=header.default_topic_queue_nums,
            queue_id=header.queue_id,
            sys_flag=header.sys_flag,
            born_timestamp=header.born_timestamp,
            flag=header.flag,
            born_host=_host_text(*inner.born_host),
            store_host=_host_text(*inner.store_host),
            store_timestamp=now_ms,
            properties=properties_text(properties),
            reconsume_times=header.reconsume_times,
            unit_mode=header.unit_mode,
        )

    def _store(self, inner: MessageInner) -> PutResult | None:
        """Store the reply; a failure is only logged, because the reply was already delivered."""
        result = self._ctx.store.put(inner)
        if result.status is not PutStatus.PUT_OK:
            log.warning("a reply is not stored: %s", result.status.value)
            return None
        self._ctx.statistics.put(inner.topic, inner.queue_id, result.size)
        return result


def _host_text(ip: str, port: int) -> str:
    return f"{ip}:{port}"
