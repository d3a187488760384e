"""Usual sends that no compiled kernel takes: one decoding, no commands, an answer ready to fill.

The plain path (send.py) makes two commands, a header and some calls of each send, to decide what
most sends do not need to have decided. Those are taken here, straight from the read buffer to the
store, which stays the same. Whatever is unusual, in a request or in the broker's state, goes the
plain way, which decides alone what is refused; both give the same bytes.
"""

import asyncio
import time
from struct import Struct

import msgspec

from core_broker.config import BrokerConfig
from core_broker.message import sysflag
from core_broker.message.model import MessageInner
from core_broker.message.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_WAIT_STORE_MSG_OK,
    decode_properties,
)
from core_broker.message.topics import RETRY_PREFIX, SEND_FORBIDDEN_TOPICS
from core_broker.processors.added_properties import added_properties
from core_broker.processors.context import BrokerContext
from core_broker.processors.put_answers import (
    answer_parts,
    message_id,
    put_refusal,
    refused_answer,
)
from core_broker.processors.turn import Turn
from core_broker.remoting.bodies import FILTER_MULTI_TAG
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import HEADER_BYTES_MAX
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Endpoint
from core_broker.remoting.ext_fields import DECODE_FAULTS, Int, Long
from core_broker.remoting.headers import SendMessageRequestHeaderV2
from core_broker.store import PutStatus

_CODES = (RequestCode.SEND_MESSAGE_V2.value, RequestCode.SEND_BATCH_MESSAGE.value)
#: How all clients but the oldest begin the header of a send.
_BEGINNINGS = tuple(b'{"code":%d,' % code for code in _CODES)
#: What may be written for "no batch".
_NO_BATCH = frozenset({False, "false"})
_DETOURS = frozenset({PROPERTY_DELAY_TIME_LEVEL, PROPERTY_TRANSACTION_PREPARED})
_HEAD = Struct(">II")
_HEAD_BYTES = 8
_LENGTH_BYTES = 4
_ID_DIGITS = 16


class _Send(msgspec.Struct, rename={"ext_fields": "extFields"}, gc=False):
    """The JSON header of a send, all of it."""

    code: Int
    ext_fields: SendMessageRequestHeaderV2
    opaque: Long = 0
    flag: Int = 0
    language: str | int | None = None
    version: Int = 0
    remark: str | None = None


_decode = msgspec.json.Decoder(_Send, strict=False).decode


class ExpressSends:
    """Stores usual sends of one server."""

    def __init__(self, ctx: BrokerContext, turn: Turn) -> None:
        #: Messages that came this way.
        self.messages = 0
        self._ctx = ctx
        self._turn = turn
        self._config: BrokerConfig | None = None
        self._is_closed = True
        #: What stands around the numbers of an answer.
        self._answer: list[str] = []
        self._added: dict[str, str] = {}

    def is_open(self, arrived: float) -> bool:
        """Whether sends of a read that came at this time need no second look at the broker."""
        ctx = self._ctx
        config = ctx.config
        if config is not self._config:
            self._configure(config)
        if self._is_closed or not ctx.is_accepting or ctx.unsaved_topics:
            return False
        began, ended = self._turn.last_write
        return (ended - began) * 1000 <= config.os_page_cache_busy_time_out_mills and (
            time.monotonic() - arrived
        ) * 1000 <= config.wait_time_mills_in_send_queue

    def _configure(self, config: BrokerConfig) -> None:
        self._config = config
        self._is_closed = (
            bool(config.start_accept_send_request_time_stamp)
            or config.flush_disk_type == "SYNC_FLUSH"
            or config.send_thread_pool_queue_capacity <= 0
        )
        parts = [part.decode() for part in answer_parts(config)]
        parts[1] += message_id(self._ctx.host, 0)[:-_ID_DIGITS]
        self._answer = parts
        self._added = added_properties(config)

    def take(self, peer: tuple[str, int], header: bytes, body: bytes) -> bytes | None:
        """Store the message of a frame and return the answer's frame; None, and nothing done, if
        it is not a usual send.
        """
        if not header.startswith(_BEGINNINGS):
            return None
        try:
            request = _decode(header)
        except DECODE_FAULTS:
            return None
        fields = request.ext_fields
        if request.flag or request.code not in _CODES or fields.batch not in _NO_BATCH:
            return None
        ctx, name, queue_id = self._ctx, fields.topic, fields.queue_id
        topic = ctx.topics.get(name)
        if topic is None or topic.order or topic.topic_filter_type == FILTER_MULTI_TAG:
            return None
        if name.startswith(RETRY_PREFIX) or name in SEND_FORBIDDEN_TOPICS:
            return None
        if not 0 <= queue_id < topic.write_queue_nums or fields.sys_flag & sysflag.TRANSACTION_MASK:
            return None
        properties = decode_properties(fields.properties)
        if not _DETOURS.isdisjoint(properties):
            return None
        properties |= self._added
        properties.pop(PROPERTY_WAIT_STORE_MSG_OK, None)
        inner = MessageInner(
            name,
            queue_id,
            body,
            properties,
            fields.flag,
            fields.sys_flag,
            fields.born_timestamp,
            peer,
            ctx.host,
            fields.reconsume_times,
        )
        return self._put(inner, request.opaque)

    def _put(self, inner: MessageInner, opaque: int) -> bytes:
        ctx, queue_id = self._ctx, inner.queue_id
        result = ctx.store.put(inner)
        if result.status is not PutStatus.PUT_OK:
            refused = refused_answer(ctx.config, put_refusal(ctx.config, result.status))
            refused.opaque = opaque
            return refused.encode()
        self.messages += 1
        puts = ctx.statistics.puts_of(inner.topic)
        puts.count_of[queue_id] += 1
        puts.bytes_of[queue_id] += result.size
        start, to_id, to_queue, to_offset, end = self._answer
        header = (
            f"{start}{opaque}{to_id}{result.offset_physical:016X}{to_queue}{queue_id}"
            f"{to_offset}{result.offset_logical}{end}"
        ).encode()
        return _HEAD.pack(_LENGTH_BYTES + len(header), len(header)) + header


class ExpressConnection(Connection):
    """A connection whose reads are looked through for usual sends first."""

    def __init__(self, endpoint: Endpoint, express: ExpressSends) -> None:
        super().__init__(endpoint)
        self._express = express
        self._peer = ("", 0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        super().connection_made(transport)
        self._peer = (self.peer_host, self.peer_port)

    def _take(self, data: memoryview) -> None:
        if self._unfinished and (begun := self._splitter.release()):
            data = memoryview(begun + data)
        if self._may_take() and (taken := self._take_sends(data)):
            self._looks = 0
            data = data[taken:]
            if not data and not self._unfinished:
                return
        super()._take(data)

    def _may_take(self) -> bool:
        return (
            not self._stalled
            and not self._splitter.pending_bytes
            and self._held < self.limits.in_flight_max
            and self._express.is_open(self.arrived)
        )

    def _take_sends(self, data: memoryview) -> int:
        """Take sends from the beginning of a read, up to the first that is not usual."""
        start, end = 0, len(data)
        take, frame_max = self._express.take, self.limits.frame_bytes_max
        while end - start >= _HEAD_BYTES and not self._stalled and not self._closing:
            length, word = _HEAD.unpack_from(data, start)
            body_at = start + _HEAD_BYTES + word
            stop = start + _LENGTH_BYTES + length
            if word > HEADER_BYTES_MAX or length > frame_max or not body_at <= stop <= end:
                break
            header = bytes(data[start + _HEAD_BYTES : body_at])
            answer = take(self._peer, header, bytes(data[body_at:stop]))
            if answer is None:
                break
            self._out.append(answer)
            self._grow_out(len(answer))
            start = stop
        return start
