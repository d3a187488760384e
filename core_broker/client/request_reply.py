"""Request and reply over topics: ask with a message, get a message back.

    requester   CORRELATION_ID, REPLY_TO_CLIENT (its client id) and TTL on the message it sends
    replier     a message to <cluster>_REPLY_TOPIC with the same three and MSG_TYPE=reply
    broker      PUSH_REPLY_MESSAGE_TO_CLIENT (326) over the requester's own connection

The cluster's name is the property CLUSTER, which the broker put on the request. Pure but for the
futures of those who wait. Compatible with RocketMQ's RequestFutureHolder, MessageUtil and
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

#: Requests of one producer that wait for their replies; one more is refused.
WAITING_MAX: Final = 10_000


class WaitingRequests:
    """The requests of one producer whose replies have not come yet."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[MessageExt]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @contextmanager
    def expect(self, correlation_id: str) -> Iterator["asyncio.Future[MessageExt]"]:
        """Wait for one reply inside of the block; raises ClientError when too many wait."""
        if len(self._waiting) >= WAITING_MAX:
            raise ClientError(f"{WAITING_MAX} requests wait for their replies already.")
        future: asyncio.Future[MessageExt] = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = future
        try:
            yield future
        finally:
            del self._waiting[correlation_id]
            future.cancel()

    def arrived(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """PUSH_REPLY_MESSAGE_TO_CLIENT (326): give the reply to the one who waits for it.

        One that nobody waits for any more is acknowledged too: to send it again would not help.
        """
        try:
            reply = _read(request)
        except ProtocolError as error:
            log.warning("A reply by %s is not readable: %s", connection.peer, error)
            return RemotingCommand.response(
                ResponseCode.SYSTEM_ERROR, f"process reply message fail, {error}"
            )
        correlation_id = reply.properties.get(PROPERTY_CORRELATION_ID, "")
        future = self._waiting.get(correlation_id)
        if future is None or future.done():
            log.info("Nobody waits for the reply %s any more", correlation_id)
        else:
            future.set_result(reply)
        return RemotingCommand.response()

    def abandon(self) -> None:
        """Tell everybody who waits that no reply will come."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ClientError("The producer was stopped."))


def as_request(message: Message, client_id: str, timeout_ms: int) -> tuple[Message, str]:
    """A copy of a message that asks for a reply, and the id by which the reply is known."""
    correlation_id = str(uuid.uuid4())
    request = Message(message.topic, message.body, flag=message.flag)
    request.properties = message.properties | {
        PROPERTY_CORRELATION_ID: correlation_id,
        PROPERTY_MESSAGE_REPLY_TO_CLIENT: client_id,
        PROPERTY_MESSAGE_TTL: str(timeout_ms),
    }
    return request, correlation_id


def reply_to(request: MessageExt, body: bytes) -> Message:
    """The reply to a request, ready to be sent; raises ClientError when it asks for none."""
    properties = request.properties
    for name in (PROPERTY_CLUSTER, PROPERTY_CORRELATION_ID, PROPERTY_MESSAGE_REPLY_TO_CLIENT):
        if name not in properties:
            raise ClientError(f"The message {request.msg_id} is no request: {name} is missing.")
    reply = Message(reply_topic(properties[PROPERTY_CLUSTER]), body)
    reply.properties |= {
        PROPERTY_MESSAGE_TYPE: REPLY_TYPE,
        PROPERTY_CORRELATION_ID: properties[PROPERTY_CORRELATION_ID],
        PROPERTY_MESSAGE_REPLY_TO_CLIENT: properties[PROPERTY_MESSAGE_REPLY_TO_CLIENT],
        PROPERTY_MESSAGE_TTL: properties.get(PROPERTY_MESSAGE_TTL, ""),
    }
    return reply


def _read(request: RemotingCommand) -> MessageExt:
    """The reply as it is given to the requester, unpacked."""
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
    """Read ip:port; Java may put a slash before it."""
    ip, _, port = text.rpartition(":")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5
    return ip.lstrip("/").strip("[]"), int(port) if is_port else 0
