"""Request and reply over topics.

    requester   sends a message with CORRELATION_ID, REPLY_TO_CLIENT (the client id) and TTL
    replier     sends to <cluster>_REPLY_TOPIC with the three properties and MSG_TYPE=reply
    broker      PUSH_REPLY_MESSAGE_TO_CLIENT (326) over the requester's connection

The cluster's name is the property CLUSTER; the broker of the request sets the property. Pure except
for the futures of pending requests. Compatible with RocketMQ's RequestFutureHolder, MessageUtil and
ClientRemotingProcessor.
"""

import asyncio
import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from core_broker.client.sending import REPLY_TYPE
from core_broker.errors import ClientError, ProtocolError
from core_broker.message import sysflag
from core_broker.message.model import Message, MessageExt
from core_broker.message.properties import (
    PROPERTY_CLUSTER,
    PROPERTY_CORRELATION_ID,
    PROPERTY_MESSAGE_REPLY_TO_CLIENT,
    PROPERTY_MESSAGE_TTL,
    PROPERTY_MESSAGE_TYPE,
    decode_properties,
)
from core_broker.message.topics import reply_topic
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import ReplyMessageRequestHeader

log = logging.getLogger(__name__)

#: Maximum pending requests of one producer; further requests are refused.
PENDING_MAX: Final = 10_000


class PendingRequests:
    """The requests of one producer without a reply."""

    def __init__(self) -> None:
        self._pending: dict[str, asyncio.Future[MessageExt]] = {}

    def __len__(self) -> int:
        return len(self._pending)

    @contextmanager
    def expect(self, correlation_id: str) -> Iterator["asyncio.Future[MessageExt]"]:
        """Register a pending request inside the block; raises ClientError at PENDING_MAX."""
        if len(self._pending) >= PENDING_MAX:
            raise ClientError(
                f"{PENDING_MAX} requests are pending already; await replies before the next"
                " request."
            )
        future: asyncio.Future[MessageExt] = asyncio.get_running_loop().create_future()
        self._pending[correlation_id] = future
        try:
            yield future
        finally:
            del self._pending[correlation_id]
            future.cancel()

    def on_reply(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """PUSH_REPLY_MESSAGE_TO_CLIENT (326): set the result of the pending request.

        A reply without a pending request is acknowledged too: a second push would not help.
        """
        try:
            reply = _read(request)
        except ProtocolError as error:
            log.warning("A reply from %s cannot be decoded: %s", connection.peer, error)
            return RemotingCommand.response(
                ResponseCode.SYSTEM_ERROR, f"process reply message fail, {error}"
            )
        correlation_id = reply.properties.get(PROPERTY_CORRELATION_ID, "")
        future = self._pending.get(correlation_id)
        if future is None or future.done():
            log.info("The reply %s has no pending request any more", correlation_id)
        else:
            future.set_result(reply)
        return RemotingCommand.response()

    def fail_all(self) -> None:
        """Fail all pending requests with ClientError."""
        for future in self._pending.values():
            if not future.done():
                future.set_exception(ClientError("The producer was stopped."))


def as_request(message: Message, client_id: str, timeout_ms: int) -> tuple[Message, str]:
    """Return a copy of the message with request properties, and the correlation id."""
    correlation_id = str(uuid.uuid4())
    request = Message(message.topic, message.body, flag=message.flag)
    request.properties = message.properties | {
        PROPERTY_CORRELATION_ID: correlation_id,
        PROPERTY_MESSAGE_REPLY_TO_CLIENT: client_id,
        PROPERTY_MESSAGE_TTL: str(timeout_ms),
    }
    return request, correlation_id


def reply_to(request: MessageExt, body: bytes) -> Message:
    """Build the reply message; raises ClientError when the request lacks request properties."""
    properties = request.properties
    for name in (PROPERTY_CLUSTER, PROPERTY_CORRELATION_ID, PROPERTY_MESSAGE_REPLY_TO_CLIENT):
        if name not in properties:
            raise ClientError(
                f"The message {request.msg_id} is not a request: the property {name} is missing."
            )
    reply = Message(reply_topic(properties[PROPERTY_CLUSTER]), body)
    reply.properties |= {
        PROPERTY_MESSAGE_TYPE: REPLY_TYPE,
        PROPERTY_CORRELATION_ID: properties[PROPERTY_CORRELATION_ID],
        PROPERTY_MESSAGE_REPLY_TO_CLIENT: properties[PROPERTY_MESSAGE_REPLY_TO_CLIENT],
        PROPERTY_MESSAGE_TTL: properties.get(PROPERTY_MESSAGE_TTL, ""),
    }
    return reply


def _read(request: RemotingCommand) -> MessageExt:
    """Decode the pushed reply, with a decompressed body."""
    header = request.header(ReplyMessageRequestHeader)
    reply = MessageExt(
        topic=header.topic,
        body=request.body,
        properties=decode_properties(header.properties),
        queue_id=header.queue_id,
        queue_offset=0,
        offset_physical=0,
        store_size=0,
        flag=header.flag,
        sys_flag=header.sys_flag,
        born_timestamp=header.born_timestamp,
        born_host=_host(header.born_host),
        store_timestamp=header.store_timestamp,
        store_host=_host(header.store_host),
        reconsume_times=header.reconsume_times,
        prepared_transaction_offset=0,
        body_crc=0,
    )
    if reply.sys_flag & sysflag.COMPRESSED:
        reply.body = reply.decompressed_body()
        reply.sys_flag &= ~(sysflag.COMPRESSED | sysflag.COMPRESSION_MASK)
    return reply


def _host(text: str) -> tuple[str, int]:
    """Read ip:port; Java may write a leading slash."""
    ip, _, port = text.rpartition(":")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5
    return ip.lstrip("/").strip("[]"), int(port) if is_port else 0
