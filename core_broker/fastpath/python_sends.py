"""The fast path in Python for sends: from the read buffer to records, units, index keys, answers.

The counterpart of kernel/sends.py, for brokers without the kernel and for sends left by the kernel;
sends.py is the shell around both. The slow path (processors/send.py) makes two commands, a header
and several calls of each send, for decisions that common-case sends do not need. Other sends are
left untouched. All paths make equal bytes (tests/unit/kernel).

The formats are in message/record_layout.py, message/batch.py and remoting/command.py.
"""

from collections.abc import Sequence
from struct import error
from typing import cast
from zlib import crc32

import msgspec

from core_broker.fastpath.contracts import HeldAnswers, SendSettings, SendShell
from core_broker.fastpath.python_queues import PythonHeldAnswers, PythonQueue, PythonTopic
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
    TIMER_PROPERTIES,
)
from core_broker.message.record import FIRST_DELIVERY, pack_head_with_hosts
from core_broker.message.record_layout import CRC_MASK, RECORD_MAGIC_V1
from core_broker.message.topics import TOPIC_BYTES_MAX
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.connection import Connection
from core_broker.remoting.ext_fields import DECODE_FAULTS, Int, Long, may_have_fraction
from core_broker.remoting.frame_layout import LENGTH_BYTES, pack_frame_head
from core_broker.remoting.headers import SendMessageRequestHeaderV2
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.index_items import IndexEntries
from core_broker.store.key_hash import KeyBatch, KeyHasher
from core_broker.store.tags_codes import TagsCodes
from core_broker.store.unit_layout import UNIT

_CODES = (RequestCode.SEND_MESSAGE_V2.value, RequestCode.SEND_BATCH_MESSAGE.value)
#: First bytes of the header of a send, in the format of all clients but the oldest.
HEADER_STARTS = tuple(b'{"code":%d,' % code for code in _CODES)
#: Bits of the system flag for the slow path: all but compression, compression type, several tags.
_OTHER_FLAGS = ~0x703
#: Values of the field batch, in the format of common clients.
_NO_BATCH: frozenset[object] = frozenset({False, "false"})
_BATCH: frozenset[object] = frozenset({"true"})
_DETOURS = {PROPERTY_DELAY_TIME_LEVEL, PROPERTY_TRANSACTION_PREPARED}
#: Properties for the slow path: delay level, transaction, timer, and those set by the broker.
_SLOW_PATH_PROPERTIES = frozenset(
    _DETOURS | TIMER_PROPERTIES | {PROPERTY_CLUSTER, PROPERTY_MSG_REGION, PROPERTY_TRACE_SWITCH, ""}
)
_WAIT = PROPERTY_WAIT_STORE_MSG_OK + NAME_VALUE_SEPARATOR
_pack_unit = UNIT.pack
_BATCHED = BATCHED_HEAD.select("size", "flag", "body_bytes")
_BATCHED_BYTES = BATCHED_HEAD.size

#: A message before the append: size of the record, body, flag, properties as stored and by name.
#: A plain tuple: a NamedTuple costs a Python call per message.
_Message = tuple[int, bytes, int, bytes, dict[str, str]]


class _Send(msgspec.Struct, rename={"ext_fields": "extFields"}, gc=False):
    """The whole JSON header of a send."""

    code: Int
    ext_fields: SendMessageRequestHeaderV2
    opaque: Long = 0
    flag: Int = 0
    language: str | int | None = None
    version: Int = 0
    remark: str | None = None


_decode = msgspec.json.Decoder(_Send, strict=False).decode


class PythonSends:
    """A SendTaker (contracts.py) in Python."""

    def __init__(self, shell: SendShell) -> None:
        self._shell = shell
        self._topics: dict[str, PythonTopic] = {}
        self._keys = KeyBatch(KeyHasher())
        self._tags_code = TagsCodes(()).code
        #: The queues with units to hand over.
        self._touched: list[PythonQueue] = []
        #: Number of answers waiting for the disk.
        self.held_count = 0
        self.waits_for_disk = False
        #: Store time of the messages to hand over, ms since 1970.
        self.now = 0
        self._held: list[PythonHeldAnswers] = []
        self._records: list[bytes] = []
        self._is_begun = False
        self._position = 0
        self._end = 0
        self._waited_max_ms = 0.0
        self._held_max = 0

    def configure(self, settings: SendSettings) -> None:
        """Put settings in force. Called only while no message is kept."""
        added = settings.added_properties
        self.waits_for_disk = settings.is_sync
        self._host = settings.host + FIRST_DELIVERY
        self._added = [added.decode()] if added else []
        self._id_prefix = settings.id_prefix.decode()
        self._answer_template = tuple(part.decode() for part in settings.answer_template)
        self._is_indexing = settings.is_indexing
        self._body_max = settings.body_bytes_max

    def forget(self) -> None:
        """Ask the shell for every topic and queue again."""
        self._topics.clear()

    def queues(self) -> Sequence[PythonQueue]:
        """Return all known queues."""
        return [each for topic in self._topics.values() for each in topic.queues if each]

    def ask_again(self) -> None:
        """Call `begin` of the shell before the next send: the slow path may have run."""
        self._is_begun = False

    @property
    def messages(self) -> int:
        """Messages to hand over."""
        return len(self._records)

    @property
    def newest(self) -> int:
        """Commit log offset of the last record to hand over."""
        return self._position - len(self._records[-1])

    def enter_units(self, appended: set[ConsumeQueue]) -> None:
        """Append the units to their queues, and add the queues to a set."""
        touched, self._touched = self._touched, []
        for each in touched:
            each.enter_units()
            appended.add(each.queue)

    def take_records(self) -> bytes:
        """Hand over the records."""
        records, self._records = b"".join(self._records), []
        self._is_begun = False
        return records

    def take_entries(self) -> IndexEntries:
        """Hand over the index entries."""
        return self._keys.take()

    def take_held(self) -> Sequence[PythonHeldAnswers]:
        """Hand over the answers waiting for the disk."""
        held, self._held = self._held, []
        self.held_count = 0
        return held

    def release(self, held: Sequence[HeldAnswers]) -> None:
        """Send held answers: the disk has the messages."""
        for each in held:
            each.connection.answer_frames(each.answers, each.answer_count)

    def hold_answers(self, connection: Connection, answers: bytes, count: int) -> None:
        """Keep `count` answers to a connection until the disk has the messages."""
        self._held.append(PythonHeldAnswers(connection, answers, count))
        self.held_count += count

    def is_open(self, waited_ms: float) -> bool:
        """Return True when sends may be taken now, after a wait of `waited_ms`."""
        if not self._is_begun and not self._begin():
            return False
        if self.waits_for_disk and self.held_count >= self._held_max:
            return False
        return waited_ms <= self._waited_max_ms

    def _begin(self) -> bool:
        window = self._shell.begin()
        if window is None:
            return False
        self._position, capacity, self.now, self._waited_max_ms, self._held_max = window
        self._end = self._position + capacity
        self._is_begun = True
        return True

    def take(self, peer: bytes, header: bytes, body: bytes) -> bytes | None:
        """Take a send and return the answer as a frame; None when the slow path must take the send.

        `is_open` has returned True for the read.
        """
        if not header.startswith(HEADER_STARTS) or may_have_fraction(header):
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
        properties = _common(parts)
        if properties is None:
            return None
        wait = properties.get(PROPERTY_WAIT_STORE_MSG_OK)
        if wait is not None:
            # A producer without a wait for the disk is answered first, so by the slow path.
            if self.waits_for_disk and wait == "false":
                return None
            parts.remove(_WAIT + wait)
        parts += self._added
        stored = PROPERTY_SEPARATOR.join(parts).encode("utf-8", "replace")
        size = topic.record_bytes_min + len(body) + len(stored)
        if self._position + size > self._end or len(stored) > PROPERTIES_BYTES_MAX:
            return None
        send_queue = self._touch(topic, fields.queue_id)
        first = send_queue.next_offset
        msg_id = self._append(
            topic, send_queue, fields, peer, (size, body, fields.flag, stored, properties)
        )
        return self._answer(request.opaque, msg_id, send_queue, first)

    def _take_batch(
        self, topic: PythonTopic, request: _Send, peer: bytes, body: bytes
    ) -> bytes | None:
        fields = request.ext_fields
        messages = self._read_batch(topic, body)
        if messages is None or self._position + sum([each[0] for each in messages]) > self._end:
            return None
        send_queue = self._touch(topic, fields.queue_id)
        first = send_queue.next_offset
        ids = [self._append(topic, send_queue, fields, peer, each) for each in messages]
        return self._answer(request.opaque, ",".join(ids), send_queue, first)

    def _answer(self, opaque: int, ids: str, send_queue: PythonQueue, first: int) -> bytes:
        start, to_ids, to_queue, to_offset, end = self._answer_template
        queue_id = send_queue.queue_id
        text = f"{start}{opaque}{to_ids}{ids}{to_queue}{queue_id}{to_offset}{first}{end}"
        answer = text.encode()
        return pack_frame_head(LENGTH_BYTES + len(answer), len(answer)) + answer

    def _touch(self, topic: PythonTopic, queue_id: int) -> PythonQueue:
        """Return the queue for a message; a missing queue is made."""
        send_queue = topic.queues[queue_id]
        if send_queue is None:
            send_queue = PythonQueue(self._shell.queue(topic.name, queue_id), queue_id)
            topic.queues[queue_id] = send_queue
        if not send_queue.units:
            send_queue.next_offset = send_queue.queue.next_offset
        return send_queue

    def _find(self, name: str) -> PythonTopic | None:
        topic: PythonTopic | None = None
        if name.isascii() and len(name) <= TOPIC_BYTES_MAX:
            topic = cast("PythonTopic | None", self._shell.topic(name.encode()))
        if topic is not None:
            self._topics[name] = topic
        return topic

    def _read_batch(self, topic: PythonTopic, batch: bytes) -> list[_Message] | None:
        """Return the messages of a batch; None when the slow path must take the batch."""
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
                properties = _common(parts)
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
                if len(messages) > BATCH_MESSAGES_MAX:
                    return None
        except error:
            return None
        return messages or None

    def _append(
        self,
        topic: PythonTopic,
        send_queue: PythonQueue,
        fields: SendMessageRequestHeaderV2,
        peer: bytes,
        message: _Message,
    ) -> str:
        """Append a record with unit and index keys; return the message id."""
        size, body, flag, stored, properties = message
        position, logical, now = self._position, send_queue.next_offset, self.now
        head = pack_head_with_hosts(
            size,
            RECORD_MAGIC_V1,
            crc32(body) & CRC_MASK,
            send_queue.queue_id,
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
        # The steps that may fail come before the first change of state.
        if self._is_indexing:
            self._keys.add(topic.text, properties, position, now)
        if not send_queue.units:
            self._touched.append(send_queue)
        self._records.append(record)
        send_queue.units += unit
        send_queue.next_offset = logical + 1
        send_queue.stored_bytes += size
        send_queue.messages += 1
        self._position = send_queue.end = position + size
        return f"{self._id_prefix}{position:016X}"


def _common(parts: list[str]) -> dict[str, str] | None:
    """Return properties by name; None for the slow path. Pops an empty last part."""
    if not parts[-1]:
        parts.pop()
    try:
        properties = dict([part.split(NAME_VALUE_SEPARATOR) for part in parts])
    except ValueError:
        return None
    if len(properties) != len(parts) or "" in properties.values():
        return None
    return properties if _SLOW_PATH_PROPERTIES.isdisjoint(properties) else None
