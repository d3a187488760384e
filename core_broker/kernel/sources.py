# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""The queue of a pull for one consumer group: its units, its filter by tag, checks of its records.

Units are laid out in store/consume_queue.py, records in message/record.py.
"""

import cython
from cython.cimports.core_broker.kernel.crc import body_crc
from cython.cimports.core_broker.kernel.layout import RECORD_MAGIC_V1, RECORD_MIN, UNIT_BYTES
from cython.cimports.core_broker.kernel.octets import get16, get32, get64
from cython.cimports.cpython.bytes import PyBytes_AS_STRING
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint32_t
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcmp

#: Units that are read at once and kept for the next pulls: four pulls of 32 messages; doubled for a
#: consumer that reads on behind them, up to the maximum.
KEPT_UNITS = cython.declare(cython.int, 128)
KEPT_UNITS_MAX = cython.declare(cython.int, 512)
#: Number of kept unit ranges, for consumers at different offsets.
RANGES = cython.declare(cython.int, 4)
#: Mask of the slots for tags codes that are known to be right.
KNOWN_MASK = cython.declare(cython.int, 31)
RECORD_MAGIC_V2 = cython.declare(uint32_t, 0xDAA320AB)
CRC_MASK = cython.declare(uint32_t, 0x7FFFFFFF)
#: Bits of a record's system flag, and the bytes that an IPv6 host has more than an IPv4 host.
BORN_HOST_V6 = cython.declare(uint32_t, 0x10)
STORE_HOST_V6 = cython.declare(uint32_t, 0x20)
V6_EXTRA = cython.declare(cython.int, 12)


@cython.cclass
class PullSource:
    """One queue for one group and subscription, where pulls need no check by the slow path.

    `queue` is the store's queue; `read(queue, offset, count)` returns the bytes of units from an
    offset on, empty when they are not in memory. `codes` are the tags codes of the subscription,
    None for every message. `suggested` is the broker id that answers suggest.
    """

    def __init__(
        self,
        queue: object,
        read: object,
        target: object,
        codes: frozenset[int] | None,
        suggested: int,
    ) -> None:
        i: cython.int = 0
        slot: cython.int
        self.queue = queue
        self.accept = None if codes is None else codes.__contains__
        self._read = read
        self.topic = queue.topic.encode()
        self.queue_id = queue.queue_id
        self.target = target
        self.suggested = suggested
        self._units = [b""] * RANGES
        for slot in range(KNOWN_MASK + 1):
            self._known[slot] = slot ^ 1  # the code of another slot, so no code matches
        self._code_count = -1
        if codes is not None:
            self._codes = cython.cast(
                cython.pointer(int32_t), malloc(max(len(codes), 1) * cython.sizeof(int32_t))
            )
            if self._codes == cython.NULL:
                raise MemoryError
            for code in codes:
                self._codes[i] = code
                i += 1
            self._code_count = i

    def __dealloc__(self):
        free(self._codes)

    def forget_counts(self) -> None:
        """Count pulls, messages and bytes from 0 again."""
        self.pulls = self.messages = self.stored_bytes = 0

    def passes(self, tags_code):
        """Return true when the filter lets a message pass."""
        i: cython.int
        if self._code_count < 0:
            return True
        for i in range(self._code_count):
            if self._codes[i] == tags_code:
                return True
        return False

    def knows(self, tags_code):
        """Return true when a record of the queue is known to have the tags code.

        A rejected message with another code is left to the slow path, since the unit may be
        damaged.
        """
        slot: cython.int = (tags_code ^ (tags_code >> 8)) & KNOWN_MASK
        if self._known[slot] == tags_code:
            return True
        if tags_code not in self.queue.known_codes:
            return False
        self._known[slot] = tags_code
        return True

    def unit(self, offset):
        """Return the unit of an offset of the queue; NULL when it is not in memory."""
        number: cython.int = self._range
        if offset < self._first[number] or offset >= self._end[number]:
            number = self._select_range(offset)
            if offset >= self._end[number]:
                return cython.NULL
        return self._at[number] + (offset - self._first[number]) * UNIT_BYTES

    def _select_range(self, offset):
        """Select the range with the unit of an offset, reading units when no range has it."""
        number: cython.int = -1
        requested: cython.int = KEPT_UNITS
        i: cython.int
        for i in range(RANGES):
            if self._first[i] <= offset < self._end[i]:
                self._range = i
                return i
            if self._end[i] == offset and self._requested[i]:
                number = i
        if number >= 0:
            requested = min(2 * self._requested[number], KEPT_UNITS_MAX)
        else:
            number = self._next_range
            self._next_range = (number + 1) % RANGES
        units: bytes = self._read(self.queue, offset, requested)
        self._units[number] = units
        self._at[number] = cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(units))
        self._first[number] = offset
        self._end[number] = offset + len(units) // UNIT_BYTES
        self._requested[number] = requested
        self._range = number
        return number

    def owns(self, record, offset_physical, size, offset):
        """Return true for a whole record that belongs to this queue at `offset`.

        By its unit, the record has `size` bytes at `offset_physical` of the log. The form in Python
        is Owner in store/log_reader.py.
        """
        magic: uint32_t
        flags: uint32_t
        body_at: int64_t = 88
        body_bytes: int64_t
        if size < RECORD_MIN or get32(record) != size or get64(record + 28) != offset_physical:
            return False
        magic = get32(record + 4)
        if magic != RECORD_MAGIC_V1 and magic != RECORD_MAGIC_V2:
            return False
        if cython.cast(int32_t, get32(record + 12)) != self.queue_id:
            return False
        if get64(record + 20) != offset:
            return False
        flags = get32(record + 36)
        if flags & BORN_HOST_V6:
            body_at += V6_EXTRA
        if flags & STORE_HOST_V6:
            body_at += V6_EXTRA
        if body_at > size:
            return False
        body_bytes = get32(record + body_at - 4)
        if not self._is_topic(
            record + body_at + body_bytes, record + size, magic == RECORD_MAGIC_V2
        ):
            return False
        return body_crc(record + body_at, cython.cast(uint32_t, body_bytes)) & CRC_MASK == get32(
            record + 8
        )

    def _is_topic(self, at, end, is_long):
        """Return true when `at` has the topic, and behind the topic properties up to `end`."""
        count: cython.int = cython.cast(cython.int, len(self.topic))
        name: cython.p_char = PyBytes_AS_STRING(self.topic)
        if end - at < 1 + is_long + count + 2:
            return False
        if is_long:
            if get16(at) != cython.cast(uint32_t, count):
                return False
        elif at[0] != count:
            return False
        at += 1 + is_long
        if memcmp(at, name, count):
            return False
        at += count + 2
        return get16(at - 2) == end - at
