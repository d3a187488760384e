# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""Sends, from the read buffer straight to records, queue units, index keys and answers.

The kernel takes the frames of one read, from the first on, as long as they are usual: JSON header
without surprises, code 310 or 320, known topic and queue, IPv4, ASCII properties that neither
delay a message nor begin a transaction. At the first other frame it stops and has touched nothing
of it; the plain path (processors/send.py) takes that one. What it makes is byte for byte what the
plain path makes: tests/unit/kernel holds one against the other.

In Cython's pure-Python mode; this file is used compiled only. The formats are in message/record.py,
message/batch.py and remoting/command.py.
"""

import cython
from cython.cimports.core_broker.kernel.answers import Answers
from cython.cimports.core_broker.kernel.memory import Memory
from cython.cimports.core_broker.kernel.properties import Properties
from cython.cimports.core_broker.kernel.queues import HotQueue, HotTopic
from cython.cimports.core_broker.kernel.scan import (
    Header,
    Text,
    get16,
    get32,
    java_hash,
    put32,
    put64,
    same,
)
from cython.cimports.core_broker.kernel.zlib import crc32
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint32_t
from cython.cimports.libc.string import memchr, memcpy

SEND_MESSAGE_V2 = cython.declare(cython.int, 310)
SEND_BATCH_MESSAGE = cython.declare(cython.int, 320)
#: Bits of the system flag that are not for the kernel: kinds of transactions, IPv6 hosts.
OTHER_FLAGS = cython.declare(int64_t, ~(0x1 | 0x2 | 0x700))

FRAME_HEAD = cython.declare(cython.int, 8)
FRAME_MAX = cython.declare(uint32_t, 16 << 20)
TOPIC_MAX = cython.declare(cython.int, 127)
RECORD_HEAD = cython.declare(cython.int, 88)
#: A record beside its body, topic and properties.
RECORD_MIN = cython.declare(cython.int, 91)
RECORD_MAGIC = cython.declare(uint32_t, 0xDAA320A7)
#: A record ends at least so far before the end of its segment.
BLANK_BYTES = cython.declare(cython.int, 8)
BATCH_HEAD = cython.declare(cython.int, 20)
BATCHED_MIN = cython.declare(cython.int, 22)
BATCH_MESSAGES_MAX = cython.declare(cython.int, 32768)


@cython.cclass
class SendKernel:
    """Takes sends out of one read buffer, which all connections share.

    `resolver` has `topic(name: bytes) -> HotTopic | None` and `queue(name: bytes, queue_id: int) ->
    object`; what they return is kept. `answer_parts` are what stands in an answer before the
    opaque, the ids, the queue id and the queue offset, and at its end.
    """

    #: What the last run made.
    records = cython.declare(bytes, visibility="readonly")
    answers = cython.declare(bytes, visibility="readonly")
    #: Key hashes with the offsets of their records and the store time, as the index takes them.
    entries = cython.declare(list, visibility="readonly")
    touched = cython.declare(list, visibility="readonly")
    frames = cython.declare(cython.int, visibility="readonly")
    messages = cython.declare(cython.int, visibility="readonly")
    #: Where its last record begins.
    newest = cython.declare(int64_t, visibility="readonly")

    _buffer: cython.uchar[::1]
    _resolver: object
    _topics: dict
    _host: bytes
    _is_indexing: cython.bint
    _is_sync: cython.bint
    _body_max: int64_t
    _header: Header
    _properties: Properties
    _records: Memory
    _answers: Answers
    # Of the run, and of the frame under way.
    _peer: bytes
    _now: int64_t
    _position: int64_t
    _end: int64_t
    _sys_flag: int64_t
    _born: int64_t

    def __init__(
        self,
        buffer: object,
        resolver: object,
        *,
        host: bytes,
        id_prefix: bytes,
        cluster: bytes,
        answer_parts: tuple,
        is_indexing: bool,
        is_sync: bool,
        body_max: int,
    ) -> None:
        self._buffer = buffer
        self._resolver = resolver
        self._topics = {}
        self._host = host
        self._is_indexing = is_indexing
        self._is_sync = is_sync
        self._body_max = body_max
        self._header = Header()
        self._properties = Properties(cluster)
        self._records = Memory()
        self._answers = Answers(answer_parts, id_prefix)

    def run(
        self, end: cython.Py_ssize_t, peer: bytes, position: int64_t, room: int64_t, now: int64_t
    ) -> cython.Py_ssize_t:
        """Take usual sends from the first `end` bytes of the buffer; return how many bytes.

        `peer` is the sender's address as a record holds it, `position` where the first record goes,
        `room` how many bytes of records have room there, `now` their store time in ms.
        """
        first: cython.pointer(uint8_t) = cython.address(self._buffer[0])
        frame: cython.pointer(uint8_t) = first
        stop: cython.pointer(uint8_t) = frame + end
        size: uint32_t
        self._peer = peer
        self._now = now
        self._position = position
        self._end = position + room
        self.messages = self.frames = 0
        self.entries = []
        self.touched = []
        while stop - frame >= FRAME_HEAD:
            size = get32(frame)
            if size > FRAME_MAX or stop - frame - 4 < size or not self._take(frame + 4, size):
                break
            self.frames += 1
            frame += 4 + size
        if self.frames:
            self.records = self._records.take()
            self.answers = self._answers.take()
        return frame - first

    def forget(self) -> None:
        """Ask the resolver again for every topic and queue."""
        self._topics.clear()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _take(self, frame: cython.pointer(uint8_t), size: uint32_t) -> cython.int:
        """Handle one frame behind its length; 0, and nothing done, when it is not usual."""
        word: uint32_t = get32(frame)
        header: Header = self._header
        queue_id: int64_t = 0
        flag: int64_t = 0
        if size < 4 or word >> 24 or word + 4 > size or not header.read(frame + 4, word):
            return 0
        if header.code != SEND_MESSAGE_V2 and header.code != SEND_BATCH_MESSAGE:
            return 0
        if header.flag or not header.is_usual():
            return 0
        # e, f, g, h: queue, system flag, time of birth, flag.
        if not (
            header.number(4, cython.address(queue_id))
            and header.number(5, cython.address(self._sys_flag))
            and header.number(6, cython.address(self._born))
            and header.number(7, cython.address(flag))
        ):
            return 0
        if self._sys_flag & OTHER_FLAGS or flag != cython.cast(int32_t, flag):
            return 0
        topic: HotTopic = self._topic(header.fields[1])
        if topic is None or queue_id < 0 or queue_id >= len(topic.queues):
            return 0
        body: cython.pointer(uint8_t) = frame + 4 + word
        body_bytes: uint32_t = size - 4 - word
        is_batch: cython.bint = header.is_true(12)
        if body_bytes > self._body_max:
            return 0
        if is_batch and not self._admits_batch(topic, body, body_bytes):
            return 0
        if not is_batch and not self._admits_single(topic, body_bytes):
            return 0
        # Only now: a queue that nothing is stored in must not come to be.
        hot: HotQueue = self._queue(topic, cython.cast(cython.int, queue_id))
        before: cython.int = hot.count
        self._answers.begin(header.opaque)
        if is_batch:
            self._append_batch(topic, hot, body, body + body_bytes)
        else:
            self._append(topic, hot, body, body_bytes, cython.cast(uint32_t, flag))
        self._answers.end(hot.queue_id, hot.next_offset + before)
        if before == 0:
            self.touched.append(hot)
        return 1

    @cython.cfunc
    def _topic(self, name: Text) -> HotTopic:
        if name.p == cython.NULL or name.n > TOPIC_MAX:
            return None
        key: bytes = PyBytes_FromStringAndSize(cython.cast(cython.p_char, name.p), name.n)
        found = self._topics.get(key) or self._resolver.topic(key)
        if found is not None:
            self._topics[key] = found
        return found

    @cython.cfunc
    def _queue(self, topic: HotTopic, queue_id: cython.int) -> HotQueue:
        hot: HotQueue = topic.queues[queue_id]
        if hot is None:
            queue = self._resolver.queue(topic.name, queue_id)
            hot = topic.queues[queue_id] = HotQueue(queue, queue_id)
        if hot.count == 0:
            hot.next_offset = hot.queue.next_offset
        return hot

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _admits_single(self, topic: HotTopic, body_bytes: uint32_t) -> cython.int:
        """Whether a message is usual and has room; its properties are ready then."""
        properties: Properties = self._properties
        if not properties.normalize(self._header.fields[8]):
            return 0
        # Who does not wait for the disk is answered before the others.
        if self._is_sync and properties.wait.p != cython.NULL:
            if same(properties.wait, b"false", 5):
                return 0
        properties.drop_wait()
        return self._has_room(topic, properties.count + body_bytes, 1)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _admits_batch(
        self, topic: HotTopic, body: cython.pointer(uint8_t), body_bytes: uint32_t
    ) -> cython.int:
        """Whether all messages of a batch are usual and have room."""
        properties: Text = self._header.fields[8]
        total: int64_t = 0
        if properties.p != cython.NULL and properties.n:
            return 0
        count: cython.int = self._count_batch(body, body + body_bytes, cython.address(total))
        return count > 0 and self._has_room(topic, total, count)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _append_batch(
        self,
        topic: HotTopic,
        hot: HotQueue,
        at: cython.pointer(uint8_t),
        end: cython.pointer(uint8_t),
    ) -> cython.int:
        properties: Text
        while at < end:
            properties.p = at + BATCHED_MIN + get32(at + 16)
            properties.n = get16(properties.p - 2)
            self._properties.normalize(properties)
            self._append(topic, hot, at + BATCH_HEAD, get32(at + 16), get32(at + 12))
            at += get32(at)
        return 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _count_batch(
        self,
        at: cython.pointer(uint8_t),
        end: cython.pointer(uint8_t),
        total: cython.pointer(int64_t),
    ) -> cython.int:
        """Count the messages of a batch, and their bodies and properties; 0 when one is unusual."""
        size: int64_t
        body_bytes: int64_t
        count: cython.int = 0
        i: cython.int
        properties: Text
        while at < end:
            size = get32(at) if end - at >= BATCHED_MIN else 0
            if size < BATCHED_MIN or size > end - at:
                return 0
            body_bytes = get32(at + 16)
            if body_bytes > size - BATCHED_MIN:
                return 0
            properties.p = at + BATCHED_MIN + body_bytes
            properties.n = get16(properties.p - 2)
            if properties.n + body_bytes + BATCHED_MIN != size:
                return 0
            for i in range(properties.n):
                if properties.p[i] >= 0x80:
                    return 0
            if not self._properties.normalize(properties):
                return 0
            total[0] += self._properties.count + body_bytes
            at += size
            count += 1
        return count if count <= BATCH_MESSAGES_MAX else 0

    # -- records --

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _has_room(self, topic: HotTopic, parts: int64_t, count: cython.int) -> cython.int:
        """Whether so many messages have room in the log, with their answer in memory."""
        size: int64_t = parts + count * (RECORD_MIN + cython.cast(int64_t, len(topic.name)))
        if self._position + size > self._end:
            return 0
        self._records.reserve(size)
        self._answers.reserve_for(count)
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _append(
        self,
        topic: HotTopic,
        hot: HotQueue,
        body: cython.pointer(uint8_t),
        body_bytes: uint32_t,
        flag: uint32_t,
    ) -> cython.int:
        """Write one record, its unit, its index keys and its id; all of it has room."""
        properties: Properties = self._properties
        name: cython.pointer(uint8_t) = topic.name
        name_bytes: cython.int = cython.cast(cython.int, len(topic.name))
        at: cython.pointer(uint8_t) = self._records.start + self._records.count
        size: int64_t = RECORD_MIN + body_bytes + name_bytes + properties.count
        tags_code: int64_t = 0
        put32(at, cython.cast(uint32_t, size))
        put32(at + 4, RECORD_MAGIC)
        put32(at + 8, cython.cast(uint32_t, crc32(0, body, body_bytes)) & 0x7FFFFFFF)
        put32(at + 12, hot.queue_id)
        put32(at + 16, flag)
        put64(at + 20, hot.next_offset + hot.count)
        put64(at + 28, self._position)
        put32(at + 36, cython.cast(uint32_t, self._sys_flag))
        put64(at + 40, self._born)
        memcpy(at + 48, cython.cast(cython.p_char, self._peer), 8)
        put64(at + 56, self._now)
        memcpy(at + 64, cython.cast(cython.p_char, self._host), 8)
        # No reconsume times, no prepared transaction.
        put32(at + 72, 0)
        put64(at + 76, 0)
        put32(at + 84, body_bytes)
        at += RECORD_HEAD
        memcpy(at, body, body_bytes)
        at += body_bytes
        at[0] = cython.cast(uint8_t, name_bytes)
        memcpy(at + 1, name, name_bytes)
        at += 1 + name_bytes
        at[0] = cython.cast(uint8_t, properties.count >> 8)
        at[1] = cython.cast(uint8_t, properties.count)
        memcpy(at + 2, properties.text, properties.count)
        if properties.tags.p != cython.NULL:
            tags_code = cython.cast(int32_t, java_hash(properties.tags.p, properties.tags.n, 0))
        hot.add(self._position, size, tags_code)
        if self._is_indexing:
            self._index(topic)
        self._answers.add_id(self._position)
        self.newest = self._position
        self._position += size
        self._records.count += size
        self.messages += 1
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _index(self, topic: HotTopic) -> cython.int:
        """Note the keys of the message under way: its unique one, then each of its KEYS."""
        properties: Properties = self._properties
        at: cython.pointer(uint8_t) = properties.keys.p
        end: cython.pointer(uint8_t)
        stop: cython.pointer(uint8_t)
        if properties.unique_key.p != cython.NULL:
            self._index_key(topic, properties.unique_key.p, properties.unique_key.n)
        if at == cython.NULL:
            return 0
        end = at + properties.keys.n
        while at < end:
            stop = cython.cast(cython.pointer(uint8_t), memchr(at, 32, end - at))
            if stop == cython.NULL:
                stop = end
            if stop > at:
                self._index_key(topic, at, cython.cast(cython.int, stop - at))
            at = stop + 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _index_key(
        self, topic: HotTopic, key: cython.pointer(uint8_t), count: cython.int
    ) -> cython.int:
        code: int32_t = cython.cast(int32_t, java_hash(key, count, topic.key_seed))
        if code < 0:
            code = -code if code != -2147483648 else 0
        self.entries.append((code, self._position, self._now))
        return 0
