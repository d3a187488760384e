# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""Sends, from the read buffer straight to records, queue units, index keys and answers.

The kernel takes sends that are usual: JSON header without surprises, known topic and queue, IPv4,
ASCII properties that neither delay a message nor begin a transaction. It touches nothing of any
other; the plain path (processors/send.py) takes that one. What it makes is byte for byte what the
plain path makes: tests/unit/kernel holds one against the other.

In Cython's pure-Python mode; this file is used compiled only. The formats are in message/record.py,
message/batch.py and remoting/command.py.
"""

import cython
from cython.cimports.core_broker.kernel.answers import Answers
from cython.cimports.core_broker.kernel.fast_path import FastHandler, FastLine, FastPath
from cython.cimports.core_broker.kernel.memory import Memory
from cython.cimports.core_broker.kernel.octets import Text, get16, get32, is_ascii, same
from cython.cimports.core_broker.kernel.properties import Properties
from cython.cimports.core_broker.kernel.queues import SendQueue, SendTopic
from cython.cimports.core_broker.kernel.records import Records, keys_max
from cython.cimports.core_broker.kernel.scan import Header
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint32_t

#: Bits of the system flag that are not for the kernel: kinds of transactions, IPv6 hosts.
OTHER_FLAGS = cython.declare(int64_t, ~(0x1 | 0x2 | 0x700))

TOPIC_MAX = cython.declare(cython.int, 127)
BATCH_HEAD = cython.declare(cython.int, 20)
BATCHED_MIN = cython.declare(cython.int, 22)
BATCH_MESSAGES_MAX = cython.declare(cython.int, 32768)


@cython.cclass
class CompiledSends(FastHandler):
    """Takes sends, and keeps what they make until it is handed over, once a turn at least.

    `shell.begin()` is called before the first one of a turn, and returns where the first record
    goes, how many bytes of records have room there, their store time in ms, how long a send may
    have waited in ms, and how many may wait for the disk; or None when all sends need a second
    look. `shell.topic(name: bytes) -> SendTopic | None` and `shell.queue(name: bytes, queue_id)`
    are kept until `forget`. `configure` comes before anything else.
    """

    #: The queues to which something is to be handed over.
    touched = cython.declare(list, visibility="readonly")
    #: Connections, answers and their numbers that wait for the disk.
    waiting = cython.declare(list, visibility="readonly")
    waiting_count = cython.declare(cython.int, visibility="readonly")

    _shell: object
    _turn: int64_t
    _is_open: cython.bint
    _waited_max_ms: cython.double
    _waiting_max: int64_t
    _topics: dict
    _body_max: int64_t
    _properties: Properties
    _records: Records
    _answers: Answers
    #: The topic of the last send.
    _last: SendTopic

    def __init__(self, shell: object) -> None:
        self._shell = shell
        self._topics = {}
        self.touched = []
        self.waiting = []
        self._turn = -1

    def configure(
        self,
        *,
        host: bytes,
        id_prefix: bytes,
        added: bytes,
        answer_parts: tuple,
        is_indexing: bool,
        is_sync: bool,
        body_max: int,
    ) -> None:
        """Put settings in force; nothing is kept at this moment.

        `added` is what the broker adds to the properties of every message.
        """
        self._records = Records(host, is_indexing)
        self.waits_for_disk = is_sync
        self._body_max = body_max
        self._properties = Properties(added)
        self._answers = Answers(answer_parts, id_prefix)

    def forget(self) -> None:
        """Ask the shell again for every topic and queue."""
        self._topics.clear()
        self._last = None

    def queues(self) -> list:
        """The queues that are known."""
        known = []
        topic: SendTopic
        for topic in self._topics.values():
            known += [hot for hot in topic.queues if hot is not None]
        return known

    def look_again(self) -> None:
        """Ask the shell once more before the next send: something else may have run."""
        self._turn = -1

    @property
    def messages(self) -> int:
        """How many messages are to be handed over."""
        return 0 if self._records is None else self._records.messages

    @property
    def newest(self) -> int:
        """Where the last of their records begins."""
        return self._records.newest

    @property
    def now(self) -> int:
        """Their store time."""
        return self._records.now

    def take_queues(self) -> list:
        """Hand over the units: each queue that was touched, with them and its last record's end."""
        return [(hot.queue, hot.take_units(), hot.end) for hot in self.touched]

    def take_records(self) -> tuple:
        """Hand over the records and the index entries, after `take_queues`.

        Entries are three numbers each, of 64 bits: hash, offset of the record, store time.
        """
        self.touched = []
        self._turn = -1
        return self._records.take()

    def take_waiting(self) -> list:
        """Hand over those who wait for the disk."""
        waiting = self.waiting
        self.waiting = []
        self.waiting_count = 0
        return waiting

    def release(self, waiting: list) -> None:
        """Send the answers of those who waited: the disk has what they sent."""
        line: FastLine
        answers: bytes
        for line, answers, count in waiting:
            line._held -= cython.cast(cython.int, count)
            line.answer_made(answers)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def hold_back(self, line: object, answers: bytes, count: cython.int) -> cython.int:
        self.waiting.append((line, answers, count))
        self.waiting_count += count
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def take(
        self, asked: FastPath, body: cython.pointer(uint8_t), body_bytes: uint32_t
    ) -> cython.bint:
        header: Header = asked.header
        queue_id: int64_t = 0
        flag: int64_t = 0
        if self._turn != asked.turn:
            self._begin(asked.turn)
        if not self._is_open or asked.waited_ms > self._waited_max_ms:
            return False
        if self.waits_for_disk and self.waiting_count >= self._waiting_max:
            return False
        self._records.peer = asked.line.peer_record
        if header.flag or not self._records.peer or not header.is_usual():
            return False
        # e, f, g, h: queue, system flag, time of birth, flag.
        if not (
            header.number(4, cython.address(queue_id))
            and header.number(5, cython.address(self._records.sys_flag))
            and header.number(6, cython.address(self._records.born))
            and header.number(7, cython.address(flag))
        ):
            return False
        if self._records.sys_flag & OTHER_FLAGS or flag != cython.cast(int32_t, flag):
            return False
        topic: SendTopic = self._topic(header.fields[1])
        if topic is None or queue_id < 0 or queue_id >= len(topic.queues):
            return False
        is_batch: cython.bint = header.is_true(12)
        if body_bytes > self._body_max:
            return False
        if is_batch:
            return self._take_batch(
                asked, topic, cython.cast(cython.int, queue_id), body, body + body_bytes
            )
        if not self._admits_single(header, topic, body_bytes, asked.out):
            return False
        # Only now: a queue that nothing is stored in must not come to be.
        hot: SendQueue = self._queue(topic, cython.cast(cython.int, queue_id), 1)
        # Nothing fails from here on.
        before: cython.int = hot.count
        self._answers.begin(header.opaque)
        self._append(topic, hot, body, body_bytes, cython.cast(uint32_t, flag))
        self._answers.end(hot.queue_id, hot.next_offset + before)
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _begin(self, turn: int64_t) -> cython.int:
        place = self._shell.begin()
        self._turn = turn
        self._is_open = place is not None
        if place is not None:
            position, room, now, self._waited_max_ms, self._waiting_max = place
            self._records.place(position, room, now)
        return 0

    @cython.cfunc
    def _topic(self, name: Text) -> SendTopic:
        last: SendTopic = self._last
        if name.p == cython.NULL or name.n > TOPIC_MAX:
            return None
        if last is not None and same(name, last.name, cython.cast(cython.int, len(last.name))):
            return last
        key: bytes = PyBytes_FromStringAndSize(cython.cast(cython.p_char, name.p), name.n)
        found = self._topics.get(key) or self._shell.topic(key)
        if found is not None:
            self._topics[key] = self._last = found
        return found

    @cython.cfunc
    def _queue(self, topic: SendTopic, queue_id: cython.int, count: cython.int) -> SendQueue:
        """The queue that is going to get so many messages, with room for their units."""
        hot: SendQueue = topic.queues[queue_id]
        if hot is None:
            queue = self._shell.queue(topic.name, queue_id)
            hot = topic.queues[queue_id] = SendQueue(queue, queue_id)
        hot.reserve(count)
        if hot.count == 0:
            hot.next_offset = hot.queue.next_offset
            self.touched.append(hot)
        return hot

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _admits_single(
        self, header: Header, topic: SendTopic, body_bytes: uint32_t, out: Memory
    ) -> cython.int:
        """Whether a message is usual and has room; its properties are ready then."""
        properties: Properties = self._properties
        if not properties.normalize(header.fields[8]):
            return 0
        # Who does not wait for the disk is answered before the others.
        if self.waits_for_disk and properties.wait.p != cython.NULL:
            if same(properties.wait, b"false", 5):
                return 0
        properties.drop_wait()
        parts: int64_t = properties.count + body_bytes
        if not self._records.reserve(topic, parts, 1, keys_max(properties)):
            return 0
        return self._answers.reserve(out, 1) == 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _take_batch(
        self,
        asked: FastPath,
        topic: SendTopic,
        queue_id: cython.int,
        at: cython.pointer(uint8_t),
        end: cython.pointer(uint8_t),
    ) -> cython.int:
        """Store a batch, or nothing of it when one of its messages is unusual or has no room."""
        out: Memory = asked.out
        properties: Text = asked.header.fields[8]
        parts: int64_t = 0
        keys: int64_t = 0
        if properties.p != cython.NULL and properties.n:
            return 0
        count: cython.int = _count_batch(at, end, cython.address(parts), cython.address(keys))
        parts += count * self._properties.added_max
        if count == 0 or not self._records.reserve(topic, parts, count, keys):
            return 0
        # A queue that nothing is stored in must not come to be.
        if topic.queues[queue_id] is None and not self._are_usual(at, end):
            return 0
        self._answers.reserve(out, count)
        hot: SendQueue = self._queue(topic, queue_id, count)
        # Nothing fails from here on, but for a message that is unusual.
        units_before: cython.int = hot.count
        bytes_before: int64_t = hot.stored_bytes
        answers_before: int64_t = out.count
        self._records.mark()
        self._answers.begin(asked.header.opaque)
        while at < end:
            properties = _batched_properties(at)
            if not self._is_usual(properties):
                self._records.go_back()
                hot.go_back(units_before, bytes_before)
                out.count = answers_before
                if units_before == 0:
                    self.touched.pop()
                return 0
            self._append(topic, hot, at + BATCH_HEAD, get32(at + 16), get32(at + 12))
            at += get32(at)
        self._answers.end(hot.queue_id, hot.next_offset + units_before)
        return 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_usual(self, properties: Text) -> cython.bint:
        """Whether the properties of a message in a batch are; they are ready then."""
        return is_ascii(properties.p, properties.n) and self._properties.normalize(properties)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _are_usual(self, at: cython.pointer(uint8_t), end: cython.pointer(uint8_t)) -> cython.bint:
        """Whether those of all messages are."""
        while at < end:
            if not self._is_usual(_batched_properties(at)):
                return False
            at += get32(at)
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def _append(
        self,
        topic: SendTopic,
        hot: SendQueue,
        body: cython.pointer(uint8_t),
        body_bytes: uint32_t,
        flag: uint32_t,
    ) -> cython.void:
        self._answers.add_id(
            self._records.append(topic, hot, self._properties, body, body_bytes, flag)
        )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _batched_properties(at: cython.pointer(uint8_t)) -> Text:
    """The properties of one message of a batch."""
    properties: Text
    properties.p = at + BATCHED_MIN + get32(at + 16)
    properties.n = get16(properties.p - 2)
    return properties


@cython.cfunc
@cython.exceptval(check=False)
def _count_batch(
    at: cython.pointer(uint8_t),
    end: cython.pointer(uint8_t),
    parts: cython.pointer(int64_t),
    keys: cython.pointer(int64_t),
) -> cython.int:
    """Count the messages of a batch, the bytes of their bodies and properties, and keys at most.

    0 when it is not cut as it should be.
    """
    size: int64_t
    body_bytes: int64_t
    properties_bytes: int64_t
    count: cython.int = 0
    while at < end:
        size = get32(at) if end - at >= BATCHED_MIN else 0
        if size < BATCHED_MIN or size > end - at:
            return 0
        body_bytes = get32(at + 16)
        if body_bytes > size - BATCHED_MIN:
            return 0
        properties_bytes = get16(at + BATCHED_MIN + body_bytes - 2)
        if properties_bytes + body_bytes + BATCHED_MIN != size:
            return 0
        parts[0] += size - BATCHED_MIN
        keys[0] += 1 + (properties_bytes + 1) // 2
        at += size
        count += 1
    return count if count <= BATCH_MESSAGES_MAX else 0
