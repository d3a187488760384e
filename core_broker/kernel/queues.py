# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The topics and queues that the kernel sends to, and the units that one turn adds.

Units are laid out in store/consume_queue.py.
"""

import cython
from cython.cimports.core_broker.kernel.layout import UNIT_BYTES
from cython.cimports.core_broker.kernel.octets import java_hash, put32, put64
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import uint8_t, uint32_t
from cython.cimports.libc.stdlib import free, malloc, realloc


@cython.cclass
class SendQueue:
    """One queue of a topic, and what the sends of this turn add to it.

    `queue` is whatever keeps the units; its `next_offset` is that of the next message.
    """

    def __cinit__(self, queue: object, queue_id: cython.int):
        self.queue = queue
        self.queue_id = queue_id
        self._room = UNITS_AT_FIRST
        self._units = cython.cast(cython.pointer(uint8_t), malloc(self._room * UNIT_BYTES))
        if self._units == cython.NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._units)

    def take_units(self):
        """The units of this turn; the next one begins with none."""
        units = PyBytes_FromStringAndSize(
            cython.cast(cython.p_char, self._units), self.count * UNIT_BYTES
        )
        self.count = 0
        return units

    def take_counts(self) -> tuple:
        """How many messages were stored, and their bytes, since this was asked before."""
        counts = self.messages, self.stored_bytes
        self.messages = self.stored_bytes = 0
        return counts

    def reserve(self, more):
        """Make room for so many more units."""
        if self.count + more > self._room:
            room: cython.int = 2 * (self.count + more)
            grown: cython.pointer(uint8_t) = cython.cast(
                cython.pointer(uint8_t), realloc(self._units, room * UNIT_BYTES)
            )
            if grown == cython.NULL:
                raise MemoryError
            self._units = grown
            self._room = room
        return 0

    def go_back(self, count, stored_bytes):
        """Be as it was with so many units and bytes."""
        self.messages -= self.count - count
        self.stored_bytes = stored_bytes
        self.count = count

    def add(self, offset, size, tags_code):
        """Add the unit of one message, for which there is room."""
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
    """A topic to which messages may be sent without a second look."""

    def __cinit__(self, name: bytes, queue_count: int):
        text: cython.pointer(uint8_t) = name
        self.name = name
        self.key_seed = 31 * java_hash(text, len(name), 0) + KEY_SEPARATOR
        self.queues = [None] * queue_count
