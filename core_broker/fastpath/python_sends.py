"""Usual sends in plain Python, from the read buffer to records, units, index keys and answers.

What kernel/sends.py does, for brokers without it and for what it leaves: the shell around both is
hot_sends.py. The plain path (send.py) makes two commands, a header and some calls of each send, to
decide what most sends do not need to have decided. Whatever is unusual goes that way, and nothing
is touched of it here. All three give the same bytes: tests/unit/kernel holds them together.

The formats are in message/record_layout.py, message/batch.py and remoting/command.py.
"""

from struct import error
from typing import Any
from zlib import crc32

import msgspec

from core_broker.limits import BATCH_MESSAGES_MAX, PROPERTIES_BYTES_MAX
from core_broker.message.batch import BATCHED_HEAD
from core_broker.message.layout import SHORT
from core_broker.message.properties import (
    NAME_VALUE_SEPARATOR,
    PROPERTY_CLUSTER,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_MSG_REGION,
    PROPERTY_SEPARATOR,
    PROPERTY_TAGS,
    PROPERTY_TRACE_SWITCH,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_WAIT_STORE_MSG_OK,
)
from core_broker.message.record import FIRST_DELIVERY, pack_head_with_hosts
from core_broker.message.record_layout import CRC_MASK, RECORD_BYTES_MIN, RECORD_MAGIC_V1
from core_broker.message.topics import TOPIC_BYTES_MAX
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.ext_fields import DECODE_FAULTS, Int, Long
from core_broker.remoting.frame_layout import LENGTH_BYTES, pack_frame_head
from core_broker.remoting.headers import SendMessageRequestHeaderV2
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.index_items import IndexEntries
from core_broker.store.key_hash import KeyBatch, KeyHasher
from core_broker.store.tags_codes import TagsCodes
from core_broker.store.unit_layout import UNIT

_CODES = (RequestCode.SEND_MESSAGE_V2.value, RequestCode.SEND_BATCH_MESSAGE.value)
#: How all clients but the oldest begin the header of a send.
BEGINNINGS = tuple(b'{"code":%d,' % code for code in _CODES)
#: Compressed, several tags, and how it is compressed; other bits are not for here.
_OTHER_FLAGS = ~0x703
#: What usual clients write for "no batch" and for "a batch"; they are settled nowhere else.
_NO_BATCH: frozenset[object] = frozenset({False, "false"})
_BATCH: frozenset[object] = frozenset({"true"})
_DETOURS = {PROPERTY_DELAY_TIME_LEVEL, PROPERTY_TRANSACTION_PREPARED}
#: Properties that send a message another way, those that the broker puts there, and no name.
_UNUSUAL = frozenset(_DETOURS | {PROPERTY_CLUSTER, PROPERTY_MSG_REGION, PROPERTY_TRACE_SWITCH, ""})
_WAIT = PROPERTY_WAIT_STORE_MSG_OK + NAME_VALUE_SEPARATOR
_pack_unit = UNIT.pack
_BATCHED = BATCHED_HEAD.select("size", "flag", "body_bytes")
_BATCHED_BYTES = BATCHED_HEAD.size

#: The size of a record, its body, flag and properties as they are stored, and what these are.
_Message = tuple[int, bytes, int, bytes, dict[str, str]]


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


class PythonQueue:
    """One queue of a topic, and what the sends of this turn add to it."""

    __slots__ = ("end", "messages", "next_offset", "queue", "queue_id", "stored_bytes", "units")

    def __init__(self, queue: ConsumeQueue, queue_id: int) -> None:
        self.queue = queue
        self.queue_id = queue_id
        self.units = bytearray()
        self.next_offset = 0
        self.end = 0
        self.messages = 0
        self.stored_bytes = 0

    def take_units(self) -> bytearray:
        """The units of this turn; the next one begins with none."""
        units, self.units = self.units, bytearray()
        return units

    def take_counts(self) -> tuple[int, int]:
        """How many messages were stored, and their bytes, since this was asked before."""
        counts = self.messages, self.stored_bytes
        self.messages = self.stored_bytes = 0
        return counts


class PythonTopic:
    """A topic to which messages may be sent without a second look."""

    __slots__ = ("name", "queues", "record_bytes_min", "text", "text_with_length")

    def __init__(self, name: bytes, queue_count: int) -> None:
        self.name = name
        self.text = name.decode()
        self.text_with_length = bytes((len(name),)) + name
        self.record_bytes_min = RECORD_BYTES_MIN + len(name)
        self.queues: list[PythonQueue | None] = [None] * queue_count


class PythonSends:
    """Takes sends, and keeps what they make until it is handed over, once a turn at least.

    The public names are those of CompiledSends (kernel/sends.py), whose docstring says when the
    shell calls what.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._topics: dict[str, PythonTopic] = {}
        self._keys = KeyBatch(KeyHasher())
        self._tags_code = TagsCodes(()).code
        #: The queues to which something is to be handed over.
        self.touched: list[PythonQueue] = []
        #: Connections, answers and their numbers that wait for the disk.
        self.waiting: list[tuple[object, bytes, int]] = []
        self.waiting_count = 0
        self.waits_for_disk = False
        #: The store time of what is kept.
        self.now = 0
        self._records: list[bytes] = []
        self._is_begun = False
        self._position = 0
        self._end = 0
        self._waited_max_ms = 0.0
        self._waiting_max = 0

    def configure(
        self,
        *,
        host: bytes,
        id_prefix: bytes,
        added: bytes,
        answer_parts: tuple[bytes, ...],
        is_indexing: bool,
        is_sync: bool,
        body_max: int,
    ) -> None:
        """Put settings in force; nothing is kept at this moment."""
        self.waits_for_disk = is_sync
        self._host = host + FIRST_DELIVERY
        self._added = [added.decode()] if added else []
        self._id_prefix = id_prefix.decode()
        self._answer_parts = tuple(part.decode() for part in answer_parts)
        self._is_indexing = is_indexing
        self._body_max = body_max

    def forget(self) -> None:
        """Ask the shell again for every topic and queue."""
        self._topics.clear()

    def queues(self) -> list[PythonQueue]:
        """The queues that are known."""
        return [each for topic in self._topics.values() for each in topic.queues if each]

    def look_again(self) -> None:
        """Something else ran: what was found out for this turn may not hold any more."""
        self._is_begun = False

    @property
    def messages(self) -> int:
        """How many messages are to be handed over."""
        return len(self._records)

    @property
    def newest(self) -> int:
        """Where the last of their records begins."""
        return self._position - len(self._records[-1])

    def take_queues(self) -> list[tuple[ConsumeQueue, bytearray, int]]:
        """Hand over the units: each queue that was touched, with them and its last record's end."""
        return [(hot.queue, hot.take_units(), hot.end) for hot in self.touched]

    def take_records(self) -> tuple[bytes, IndexEntries]:
        """Hand over the records and the index entries, after `take_queues`."""
        records, self._records, self.touched = b"".join(self._records), [], []
        self._is_begun = False
        return records, self._keys.take()

    def take_waiting(self) -> list[tuple[object, bytes, int]]:
        """Hand over those who wait for the disk."""
        waiting, self.waiting = self.waiting, []
        self.waiting_count = 0
        return waiting

    def hold_back(self, connection: object, answers: bytes, count: int) -> None:
        """Keep so many answers to a connection until the disk has what was stored."""
        self.waiting.append((connection, answers, count))
        self.waiting_count += count

    def is_open(self, waited_ms: float) -> bool:
        """Whether sends that have waited so long need no second look at the broker."""
        if not self._is_begun and not self._begin():
            return False
        if self.waits_for_disk and self.waiting_count >= self._waiting_max:
            return False
        return waited_ms <= self._waited_max_ms

    def _begin(self) -> bool:
        place = self._shell.begin()
        if place is None:
            return False
        self._position, room, self.now, self._waited_max_ms, self._waiting_max = place
        self._end = self._position + room
        self._is_begun = True
        return True

    def take(self, peer: bytes, header: bytes, body: bytes) -> bytes | None:
        """Make what a send asks for and return the answer's frame.

        None, and nothing done, if it is not a usual one. `is_open` was asked for its read.
        """
        if not header.startswith(BEGINNINGS):
            return None
        try:
            request = _decode(header)
        except DECODE_FAULTS:
            return None
        fields = request.ext_fields
        topic = self._topics.get(fields.topic) or self._find(fields.topic)
        if topic is None or not 0 <= fields.queue_id < len(topic.queues):
            return None
        if request.flag or fields.reconsume_times or fields.sys_flag & _OTHER_FLAGS:
            return None
        if len(body) > self._body_max:
            return None
        if fields.batch in _NO_BATCH:
            return self._take_single(topic, request, peer, body)
        if fields.batch in _BATCH and not fields.properties:
            return self._take_batch(topic, request, peer, body)
        return None

    def _take_single(
        self, topic: PythonTopic, request: _Send, peer: bytes, body: bytes
    ) -> bytes | None:
        fields = request.ext_fields
        parts = fields.properties.split(PROPERTY_SEPARATOR)
        properties = _usual(parts)
        if properties is None:
            return None
        wait = properties.get(PROPERTY_WAIT_STORE_MSG_OK)
        if wait is not None:
            # Who does not wait for the disk is answered before the others.
            if self.waits_for_disk and wait == "false":
                return None
            parts.remove(_WAIT + wait)
        parts += self._added
        stored = PROPERTY_SEPARATOR.join(parts).encode("utf-8", "replace")
        size = topic.record_bytes_min + len(body) + len(stored)
        if self._position + size > self._end or len(stored) > PROPERTIES_BYTES_MAX:
            return None
        hot = self._touch(topic, fields.queue_id)
        first = hot.next_offset
        msg_id = self._append(
            topic, hot, fields, peer, (size, body, fields.flag, stored, properties)
        )
        return self._answer(request.opaque, msg_id, hot, first)

    def _take_batch(
        self, topic: PythonTopic, request: _Send, peer: bytes, body: bytes
    ) -> bytes | None:
        fields = request.ext_fields
        messages = self._read_batch(topic, body)
        if messages is None or self._position + sum([each[0] for each in messages]) > self._end:
            return None
        hot = self._touch(topic, fields.queue_id)
        first = hot.next_offset
        ids = [self._append(topic, hot, fields, peer, each) for each in messages]
        return self._answer(request.opaque, ",".join(ids), hot, first)

    def _answer(self, opaque: int, ids: str, hot: PythonQueue, first: int) -> bytes:
        start, to_ids, to_queue, to_offset, end = self._answer_parts
        answer = (
            f"{start}{opaque}{to_ids}{ids}{to_queue}{hot.queue_id}{to_offset}{first}{end}".encode()
        )
        return pack_frame_head(LENGTH_BYTES + len(answer), len(answer)) + answer

    def _touch(self, topic: PythonTopic, queue_id: int) -> PythonQueue:
        """The queue that is going to get a message."""
        hot = topic.queues[queue_id]
        if hot is None:
            hot = PythonQueue(self._shell.queue(topic.name, queue_id), queue_id)
            topic.queues[queue_id] = hot
        if not hot.units:
            hot.next_offset = hot.queue.next_offset
        return hot

    def _find(self, name: str) -> PythonTopic | None:
        topic: PythonTopic | None = None
        if name.isascii() and len(name) <= TOPIC_BYTES_MAX:
            topic = self._shell.topic(name.encode())
        if topic is not None:
            self._topics[name] = topic
        return topic

    def _read_batch(self, topic: PythonTopic, batch: bytes) -> list[_Message] | None:
        """The messages of a batch; None when one of them is unusual, or there are none."""
        messages: list[_Message] = []
        at = 0
        try:
            while at < len(batch):
                size, flag, body_bytes = _BATCHED.unpack_from(batch, at)
                body_end = at + _BATCHED_BYTES + body_bytes
                (properties_bytes,) = SHORT.unpack_from(batch, body_end)
                end = body_end + SHORT.size + properties_bytes
                if end - at != size or end > len(batch):
                    return None
                text = batch[body_end + SHORT.size : end].decode("utf-8", "replace")
                parts = text.split(PROPERTY_SEPARATOR)
                properties = _usual(parts)
                if properties is None:
                    return None
                parts += self._added
                stored = PROPERTY_SEPARATOR.join(parts).encode("utf-8", "replace")
                if len(stored) > PROPERTIES_BYTES_MAX:
                    return None
                record_bytes = topic.record_bytes_min + body_bytes + len(stored)
                body = batch[at + _BATCHED_BYTES : body_end]
                messages.append((record_bytes, body, flag, stored, properties))
                at = end
        except error:
            return None
        return messages if 0 < len(messages) <= BATCH_MESSAGES_MAX else None

    def _append(
        self,
        topic: PythonTopic,
        hot: PythonQueue,
        fields: SendMessageRequestHeaderV2,
        peer: bytes,
        message: _Message,
    ) -> str:
        """Make one record, its unit and its index keys; return its offset id."""
        size, body, flag, stored, properties = message
        position, logical, now = self._position, hot.next_offset, self.now
        head = pack_head_with_hosts(
            size,
            RECORD_MAGIC_V1,
            crc32(body) & CRC_MASK,
            hot.queue_id,
            flag,
            logical,
            position,
            fields.sys_flag,
            fields.born_timestamp,
            peer,
            now,
            self._host,
            len(body),
        )
        record = b"".join((head, body, topic.text_with_length, SHORT.pack(len(stored)), stored))
        code = self._tags_code(topic.text, properties, now) if PROPERTY_TAGS in properties else 0
        unit = _pack_unit(position, size, code)
        # Whatever may fail came before whatever is kept.
        if self._is_indexing:
            self._keys.add(topic.text, properties, position, now)
        if not hot.units:
            self.touched.append(hot)
        self._records.append(record)
        hot.units += unit
        hot.next_offset = logical + 1
        hot.stored_bytes += size
        hot.messages += 1
        self._position = hot.end = position + size
        return f"{self._id_prefix}{position:016X}"


def _usual(parts: list[str]) -> dict[str, str] | None:
    """The properties by their names, None when they are unusual; takes away an empty last part."""
    if not parts[-1]:
        parts.pop()
    try:
        properties = dict([part.split(NAME_VALUE_SEPARATOR) for part in parts])
    except ValueError:
        return None
    if len(properties) != len(parts) or "" in properties.values():
        return None
    return properties if _UNUSUAL.isdisjoint(properties) else None
