# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Topics and queues for sends, with the units that one iteration adds.

Units are laid out in store/consume_queue.py.
"""

import cython
from cython.cimports.core_broker.kernel.layout import UNIT_BYTES
from cython.cimports.core_broker.kernel.octets import java_hash, put32, put64
from cython.cimports.core_broker.kernel.queue_tail import QueueTail
from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
from cython.cimports.libc.stdint import uint8_t, uint32_t
from cython.cimports.libc.stdlib import free, malloc, realloc
from cython.cimports.libc.string import memcpy


@cython.cclass
class SendQueue:
    """One queue of a topic, and the units that this iteration adds.

    `queue` is the store's queue; `queue.next_offset` is the logical offset of the next message.
    """

    def __cinit__(self, queue: object, queue_id: cython.int):
        self.queue = queue
        self.queue_id = queue_id
        self._capacity = UNITS_AT_FIRST
        self._units = cython.cast(cython.pointer(uint8_t), malloc(self._capacity * UNIT_BYTES))
        if self._units == cython.NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._units)

    def enter_units(self):
        """Append the units of this iteration to the store's queue; returns the queue."""
        tail: QueueTail = self.queue
        units: bytearray = tail._tail
        before: cython.Py_ssize_t = len(units)
        PyByteArray_Resize(units, before + self.count * UNIT_BYTES)
        memcpy(PyByteArray_AS_STRING(units) + before, self._units, self.count * UNIT_BYTES)
        tail._appended_end = self.end
        tail.next_offset += self.count
        self.count = 0
        return tail

    def forget_counts(self) -> None:
        """Count messages and bytes from 0 again."""
        self.messages = self.stored_bytes = 0

    def reserve(self, more):
        """Reserve memory for `more` units."""
        if self.count + more > self._capacity:
            capacity: cython.int = 2 * (self.count + more)
            grown: cython.pointer(uint8_t) = cython.cast(
                cython.pointer(uint8_t), realloc(self._units, capacity * UNIT_BYTES)
            )
            if grown == cython.NULL:
                raise MemoryError
            self._units = grown
            self._capacity = capacity
        return 0

    def go_back(self, count, stored_bytes):
        """Go back to `count` units and `stored_bytes` bytes."""
        self.messages -= self.count - count
        self.stored_bytes = stored_bytes
        self.count = count

    def add(self, offset, size, tags_code):
        """Add the unit of one message; its memory is reserved."""
        unit: cython.pointer(uint8_t) = self._units + self.count * UNIT_BYTES
        put64(unit, offset)
        put32(unit + 8, cython.cast(uint32_t, size))
        put64(unit + 12, tags_code)
        self.count += 1
        self.messages += 1
        self.stored_bytes += size
        self.end = offset + size


@cython.cclass
class SendTopic:
    """A topic whose sends need no check by the slow path."""

    def __cinit__(self, name: bytes, queue_count: int):
        text: cython.pointer(uint8_t) = name
        self.name = name
        self.key_seed = 31 * java_hash(text, len(name), 0) + KEY_SEPARATOR
        self.queues = [None] * queue_count
