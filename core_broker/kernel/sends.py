# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""Sends (codes 310 and 320), from the read buffer to records, queue units, index keys, answers.

The kernel takes common sends: a compact JSON header, known topic and queue, an IPv4 peer,
properties in UTF-8 without a delay level, a timer or a transaction. All other sends are left
untouched to the slow path (processors/send.py). Records, units, keys and answers are byte for byte
equal to the slow path's (tests/unit/kernel).

The formats are in message/record.py, message/batch.py and remoting/command.py.
"""

import cython
from cython.cimports.core_broker.kernel.answers import Answers
from cython.cimports.core_broker.kernel.fast_connection import FastConnection
from cython.cimports.core_broker.kernel.fast_path import FastHandler, FastPath
from cython.cimports.core_broker.kernel.memory import Memory
from cython.cimports.core_broker.kernel.octets import Text, get16, get32, is_ascii, same
from cython.cimports.core_broker.kernel.properties import Properties
from cython.cimports.core_broker.kernel.queues import SendQueue, SendTopic
from cython.cimports.core_broker.kernel.records import Records, keys_max
from cython.cimports.core_broker.kernel.scan import PROPERTIES_FIELD, Header
from cython.cimports.core_broker.kernel.utf8 import is_utf8
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint32_t

#: Bits of the system flag that are for the slow path: kinds of transactions, IPv6 hosts.
OTHER_FLAGS = cython.declare(int64_t, ~(0x1 | 0x2 | 0x700))

TOPIC_MAX = cython.declare(cython.int, 127)
BATCH_HEAD = cython.declare(cython.int, 20)
BATCHED_MIN = cython.declare(cython.int, 22)
BATCH_MESSAGES_MAX = cython.declare(cython.int, 16384)


@cython.cclass
class HeldAnswers:
    """Answers to one connection that wait for the disk: frames, and the number of frames."""

    protocol: FastConnection
    answers = cython.declare(bytes, visibility="readonly")
    answer_count = cython.declare(cython.int, visibility="readonly")

    @property
    def connection(self) -> object:
        """The remoting.Connection."""
        return self.protocol.connection


@cython.cclass
class CompiledSends(FastHandler):
    """Takes sends. Contract: SendTaker in fastpath/contracts.py; the shell is fastpath/sends.py.

    Records, units, index entries and held answers are kept here and handed over at the end of the
    iteration at the latest. `shell.begin()` is called before the first send of an iteration and
    returns a SendWindow, or None when the slow path must take all sends. `shell.topic(name)`
    returns a SendTopic or None, `shell.queue(name, queue_id)` the store's queue; both are kept
    until `forget`. `configure` comes before every other call.
    """

    #: The queues with units to hand over.
    _touched: list
    #: Number of answers that wait for the disk.
    held_count = cython.declare(cython.int, visibility="readonly")

    _shell: object
    _iteration: int64_t
    _is_open: cython.bint
    _waited_max_ms: cython.double
    _held_max: int64_t
    _held: list
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
        self._touched = []
        self._held = []
        self._iteration = -1

    def configure(self, settings: object) -> None:
        """Put settings in force; nothing is kept at this moment."""
        self._records = Records(settings.host, settings.is_indexing)
        self.waits_for_disk = settings.is_sync
        self._body_max = settings.body_bytes_max
        self._properties = Properties(settings.added_properties)
        self._answers = Answers(settings.answer_template, settings.id_prefix)

    def forget(self) -> None:
        """Ask the shell for every topic and queue again."""
        self._topics.clear()
        self._last = None

    def queues(self) -> list:
        """Return all known queues."""
        known = []
        topic: SendTopic
        for topic in self._topics.values():
            known += [send_queue for send_queue in topic.queues if send_queue is not None]
        return known

    def ask_again(self) -> None:
        """Call `shell.begin` before the next send: the slow path may have run."""
        self._iteration = -1

    @property
    def messages(self) -> int:
        """Messages to hand over."""
        return 0 if self._records is None else self._records.messages

    @property
    def newest(self) -> int:
        """Commit log offset of the last record to hand over."""
        return self._records.newest

    @property
    def now(self) -> int:
        """Store time of the messages to hand over, ms since 1970."""
        return self._records.now

    def enter_units(self, appended: set) -> None:
        """Append the units to their queues, and add the queues to a set."""
        send_queue: SendQueue
        for send_queue in self._touched:
            appended.add(send_queue.enter_units())
        self._touched.clear()

    def take_records(self) -> object:
        """Hand over the records as a buffer, without a copy."""
        self._iteration = -1
        return self._records.take()

    def take_entries(self) -> bytes:
        """Hand over the index entries: hash, offset of the record, store time, 64 bits each."""
        return self._records.take_entries()

    def take_held(self) -> list:
        """Hand over the answers that wait for the disk."""
        held = self._held
        self._held = []
        self.held_count = 0
        return held

    def release(self, held: list) -> None:
        """Send held answers: the disk has their messages."""
        each: HeldAnswers
        for each in held:
            each.protocol.state.held -= each.answer_count
            each.protocol.add_answers(each.answers)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def hold_answers(
        self, protocol: FastConnection, answers: bytes, count: cython.int
    ) -> cython.int:
        held: HeldAnswers = HeldAnswers.__new__(HeldAnswers)
        held.protocol = protocol
        held.answers = answers
        held.answer_count = count
        self._held.append(held)
        self.held_count += count
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def take(
        self, path: FastPath, body: cython.pointer(uint8_t), body_bytes: uint32_t
    ) -> cython.bint:
        header: Header = path.header
        queue_id: int64_t = 0
        flag: int64_t = 0
        if self._iteration != path.iteration:
            self._begin(path.iteration)
        if not self._is_open or path.waited_ms > self._waited_max_ms:
            return False
        if self.waits_for_disk and self.held_count >= self._held_max:
            return False
        self._records.peer = path.protocol.peer_record
        if header.flag or not self._records.peer or not header.is_common_send():
            return False
        # e, f, g, h: queue id, system flag, born timestamp, flag.
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
                path, topic, cython.cast(cython.int, queue_id), body, body + body_bytes
            )
        if not self._admits_single(header, topic, body_bytes, path.out):
            return False
        # The queue is made last: a queue without a message must not exist.
        send_queue: SendQueue = self._queue(topic, cython.cast(cython.int, queue_id), 1)
        # No step fails from here on.
        before: cython.int = send_queue.count
        self._answers.begin(header.opaque)
        self._append(topic, send_queue, body, body_bytes, cython.cast(uint32_t, flag))
        self._answers.end(send_queue.queue_id, send_queue.next_offset + before)
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _begin(self, iteration: int64_t) -> cython.int:
        window = self._shell.begin()
        self._iteration = iteration
        self._is_open = window is not None
        if window is not None:
            position, capacity, now, self._waited_max_ms, self._held_max = window
            self._records.place(position, capacity, now)
        return 0

    @cython.cfunc
    def _topic(self, name: Text) -> SendTopic:
        last: SendTopic = self._last
        if name.p == cython.NULL or name.n > TOPIC_MAX:
            return None
        if last is not None and same(name, last.name, cython.cast(cython.int, len(last.name))):
            return last
        key: bytes = PyBytes_FromStringAndSize(cython.cast(cython.p_char, name.p), name.n)
        topic = self._topics.get(key) or self._shell.topic(key)
        if topic is not None:
            self._topics[key] = self._last = topic
        return topic

    @cython.cfunc
    def _queue(self, topic: SendTopic, queue_id: cython.int, count: cython.int) -> SendQueue:
        """Return the queue for `count` messages, with memory for their units."""
        send_queue: SendQueue = topic.queues[queue_id]
        if send_queue is None:
            queue = self._shell.queue(topic.name, queue_id)
            send_queue = topic.queues[queue_id] = SendQueue(queue, queue_id)
        send_queue.reserve(count)
        if send_queue.count == 0:
            send_queue.next_offset = send_queue.queue.next_offset
            self._touched.append(send_queue)
        return send_queue

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _admits_single(
        self, header: Header, topic: SendTopic, body_bytes: uint32_t, out: Memory
    ) -> cython.int:
        """Return true when a message is common and fits; `_properties` are ready then."""
        properties: Properties = self._properties
        if not properties.normalize(
            header.fields[PROPERTIES_FIELD], header.beyond_ascii == cython.NULL
        ):
            return 0
        # A producer that does not wait for the disk is answered before the others.
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
        path: FastPath,
        topic: SendTopic,
        queue_id: cython.int,
        at: cython.pointer(uint8_t),
        end: cython.pointer(uint8_t),
    ) -> cython.int:
        """Store a whole batch, or return 0 when a message is not common or does not fit."""
        out: Memory = path.out
        properties: Text = path.header.fields[PROPERTIES_FIELD]
        parts: int64_t = 0
        keys: int64_t = 0
        if properties.p != cython.NULL and properties.n:
            return 0
        count: cython.int = _count_batch(at, end, cython.address(parts), cython.address(keys))
        parts += count * self._properties.added_max
        if count == 0 or not self._records.reserve(topic, parts, count, keys):
            return 0
        # A queue without a message must not exist.
        if topic.queues[queue_id] is None and not self._are_common(at, end):
            return 0
        self._answers.reserve(out, count)
        send_queue: SendQueue = self._queue(topic, queue_id, count)
        # Only a message that is not common ends the loop early; its effects are undone.
        units_before: cython.int = send_queue.count
        bytes_before: int64_t = send_queue.stored_bytes
        answers_before: int64_t = out.count
        self._records.mark()
        self._answers.begin(path.header.opaque)
        while at < end:
            properties = _batched_properties(at)
            if not self._is_common(properties):
                self._records.go_back()
                send_queue.go_back(units_before, bytes_before)
                out.count = answers_before
                if units_before == 0:
                    self._touched.pop()
                return 0
            self._append(topic, send_queue, at + BATCH_HEAD, get32(at + 16), get32(at + 12))
            at += get32(at)
        self._answers.end(send_queue.queue_id, send_queue.next_offset + units_before)
        return 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_common(self, properties: Text) -> cython.bint:
        """Return true for common properties in a batch; `_properties` are ready then."""
        if is_ascii(properties.p, properties.n):
            return self._properties.normalize(properties, True)
        if is_utf8(properties.p, properties.n):
            return self._properties.normalize(properties, False)
        return False

    @cython.cfunc
    @cython.exceptval(check=False)
    def _are_common(self, at: cython.pointer(uint8_t), end: cython.pointer(uint8_t)) -> cython.bint:
        """Return true when all messages of a batch have common properties."""
        while at < end:
            if not self._is_common(_batched_properties(at)):
                return False
            at += get32(at)
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def _append(
        self,
        topic: SendTopic,
        send_queue: SendQueue,
        body: cython.pointer(uint8_t),
        body_bytes: uint32_t,
        flag: uint32_t,
    ) -> cython.void:
        self._answers.add_id(
            self._records.append(topic, send_queue, self._properties, body, body_bytes, flag)
        )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _batched_properties(at: cython.pointer(uint8_t)) -> Text:
    """Return the properties of one message of a batch."""
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
    """Count the messages of a batch, bytes of bodies and properties, and the maximum of keys.

    0 for a malformed batch, and for more than BATCH_MESSAGES_MAX messages.
    """
    size: int64_t
    body_bytes: int64_t
    properties_bytes: int64_t
    count: cython.int = 0
    while at < end:
        if count == BATCH_MESSAGES_MAX:
            return 0
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
    return count
