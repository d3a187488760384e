# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""Records with their queue units and index keys, until the shell takes them.

The formats are in message/record.py, store/consume_queue.py and store/index_items.py.
"""

import cython
from cython.cimports.core_broker.kernel.crc import body_crc
from cython.cimports.core_broker.kernel.layout import RECORD_HEAD, RECORD_MAGIC_V1, RECORD_MIN
from cython.cimports.core_broker.kernel.memory import Memory
from cython.cimports.core_broker.kernel.octets import Text, java_hash, put32, put64
from cython.cimports.core_broker.kernel.utf8 import java_hash_utf8
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint32_t
from cython.cimports.libc.string import memchr, memcpy

#: Size of an index entry, bytes: key hash, commit log offset of the record, store time.
ENTRY_BYTES = cython.declare(cython.int, 24)
#: Maximum memory that is kept for the next iteration, bytes.
KEPT_BYTES_MAX = cython.declare(int64_t, 4 << 20)


def keys_max(properties):
    """Return the maximum number of index keys of some properties."""
    return 1 + (0 if properties.keys.p == cython.NULL else (properties.keys.n + 1) // 2)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def hash_of(text: Text, is_ascii: cython.bint, seed: uint32_t) -> uint32_t:
    """Return Java's hash of a text behind the text with the hash `seed`."""
    if is_ascii:
        return java_hash(text.p, text.n, seed)
    return java_hash_utf8(text.p, text.n, seed)


@cython.cclass
class Records:
    """Records that follow each other in the log from the offset of `place` on."""

    def __init__(self, host: bytes, is_indexing: bool):
        self._host = host
        self._is_indexing = is_indexing
        self._made = Memory()
        self._spare = Memory()
        self._entries = Memory()

    def place(self, position, capacity, now):
        """Set the log offset of the first record, the bytes that fit behind, and the store time."""
        self._position = position
        self._end = position + capacity
        self.now = now

    def reserve(self, topic, parts, count, keys):
        """Reserve memory for messages with `parts` bytes of bodies and properties.

        False when the records do not fit into the log's segment.
        """
        size: int64_t = parts + count * (RECORD_MIN + cython.cast(int64_t, len(topic.name)))
        if self._position + size > self._end:
            return False
        self._made.reserve(size)
        self._entries.reserve(keys * ENTRY_BYTES)
        return True

    def mark(self):
        """Save the position for `go_back`."""
        self._marked_made = self._made.count
        self._marked_entries = self._entries.count
        self._marked_position = self._position
        self._marked_messages = self.messages

    def go_back(self):
        """Drop the records and keys since `mark`; the units are the queue's."""
        self._made.count = self._marked_made
        self._entries.count = self._marked_entries
        self._position = self._marked_position
        self.messages = self._marked_messages

    def take(self):
        """Hand over the records as a buffer, without a copy."""
        made: Memory = self._made
        self.messages = 0
        view = memoryview(made)
        # The store has mostly released the buffer of the iteration before.
        self._made = Memory() if self._spare.lent else self._spare
        self._made.count = 0
        self._spare = made if made.count <= KEPT_BYTES_MAX else Memory()
        return view

    def take_entries(self):
        """Hand over the index entries."""
        return self._entries.take()

    def append(self, topic, queue, properties, body, body_bytes, flag):
        """Write one record, its unit and its index keys; return the record's log offset."""
        name: cython.pointer(uint8_t) = topic.name
        name_bytes: cython.int = cython.cast(cython.int, len(topic.name))
        at: cython.pointer(uint8_t) = self._made.start + self._made.count
        size: int64_t = RECORD_MIN + body_bytes + name_bytes + properties.count
        tags_code: int64_t = 0
        put32(at, cython.cast(uint32_t, size))
        put32(at + 4, RECORD_MAGIC_V1)
        put32(at + 8, body_crc(body, body_bytes) & 0x7FFFFFFF)
        put32(at + 12, queue.queue_id)
        put32(at + 16, flag)
        put64(at + 20, queue.next_offset + queue.count)
        put64(at + 28, self._position)
        put32(at + 36, cython.cast(uint32_t, self.sys_flag))
        put64(at + 40, self.born)
        memcpy(at + 48, cython.cast(cython.p_char, self.peer), 8)
        put64(at + 56, self.now)
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
            tags_code = cython.cast(int32_t, hash_of(properties.tags, properties.is_ascii, 0))
        queue.add(self._position, size, tags_code)
        if self._is_indexing:
            self._index(topic, properties)
        self.newest = self._position
        self._position += size
        self._made.count += size
        self.messages += 1
        return self.newest

    def _index(self, topic, properties):
        """Add the keys of the message in hand: the unique key, then every key of KEYS."""
        at: cython.pointer(uint8_t) = properties.keys.p
        end: cython.pointer(uint8_t)
        stop: cython.pointer(uint8_t)
        key: Text
        if properties.unique_key.p != cython.NULL:
            self._index_key(topic, properties.unique_key, properties.is_ascii)
        if at == cython.NULL:
            return
        end = at + properties.keys.n
        while at < end:
            stop = cython.cast(cython.pointer(uint8_t), memchr(at, 32, end - at))
            if stop == cython.NULL:
                stop = end
            if stop > at:
                key.p = at
                key.n = cython.cast(cython.int, stop - at)
                self._index_key(topic, key, properties.is_ascii)
            at = stop + 1

    def _index_key(self, topic, key, is_ascii):
        code: int32_t = cython.cast(int32_t, hash_of(key, is_ascii, topic.key_seed))
        if code < 0:
            code = -code if code != -2147483648 else 0
        entry: cython.pointer(int64_t) = cython.cast(
            cython.pointer(int64_t), self._entries.start + self._entries.count
        )
        entry[0] = code
        entry[1] = self._position
        entry[2] = self.now
        self._entries.count += ENTRY_BYTES
