# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""What a consumer group may pull of one queue: its units, its filter by tag, whose records.

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

#: Units that are fetched at once and kept for the next pulls: four of 32, and up to the second
#: number for who goes on where they end.
KEPT_UNITS = cython.declare(cython.int, 128)
KEPT_UNITS_MAX = cython.declare(cython.int, 512)
#: One queue may be read at so many places in turn.
PLACES = cython.declare(cython.int, 4)
RECORD_MAGIC_V2 = cython.declare(uint32_t, 0xDAA320AB)
CRC_MASK = cython.declare(uint32_t, 0x7FFFFFFF)
#: Bits of the system flag of records, and what a host of IPv6 has more than one of IPv4.
BORN_HOST_V6 = cython.declare(uint32_t, 0x10)
STORE_HOST_V6 = cython.declare(uint32_t, 0x20)
V6_EXTRA = cython.declare(cython.int, 12)


@cython.cclass
class PullSource:
    """One queue for one group and subscription, when pulling from it needs no second look.

    `queue` keeps the units: its `min_offset` and `max_offset` bound them, and `read(queue, offset,
    count)` returns the bytes of some from an offset on, none when they are not at hand. `codes` are
    those of the tags wanted, None all. `suggested` is the broker that answers recommend.
    """

    def __init__(
        self,
        queue: object,
        read: object,
        group: str,
        codes: frozenset[int] | None,
        suggested: int,
    ) -> None:
        i: cython.int = 0
        self.queue = queue
        self.accept = None if codes is None else codes.__contains__
        self._read = read
        self.topic = queue.topic.encode()
        self.queue_id = queue.queue_id
        #: Group, topic and queue id, as an offset is committed.
        self.target = (group, queue.topic, queue.queue_id)
        self.suggested = suggested
        self._units = [b""] * PLACES
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

    def take_counts(self) -> tuple[int, int, int]:
        """Pulls, messages and bytes handed out since the last time."""
        counts = (self.pulls, self.messages, self.stored_bytes)
        self.pulls = self.messages = self.stored_bytes = 0
        return counts

    def wants(self, tags_code):
        """Whether the filter lets a message pass."""
        i: cython.int
        if self._code_count < 0:
            return True
        for i in range(self._code_count):
            if self._codes[i] == tags_code:
                return True
        return False

    def unit(self, offset):
        """The unit of an offset that the queue has; NULL when it is not at hand."""
        place: cython.int = self._place
        if offset < self._first[place] or offset >= self._behind[place]:
            place = self._turn_to(offset)
            if offset >= self._behind[place]:
                return cython.NULL
        return self._at[place] + (offset - self._first[place]) * UNIT_BYTES

    def _turn_to(self, offset):
        """The place that has the unit of an offset, if it is at hand; pulls go on there."""
        place: cython.int = -1
        wanted: cython.int = KEPT_UNITS
        i: cython.int
        for i in range(PLACES):
            if self._first[i] <= offset < self._behind[i]:
                self._place = i
                return i
            if self._behind[i] == offset and self._wanted[i]:
                place = i
        if place >= 0:
            wanted = min(2 * self._wanted[place], KEPT_UNITS_MAX)
        else:
            place = self._next_place
            self._next_place = (place + 1) % PLACES
        units: bytes = self._read(self.queue, offset, wanted)
        self._units[place] = units
        self._at[place] = cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(units))
        self._first[place] = offset
        self._behind[place] = offset + len(units) // UNIT_BYTES
        self._wanted[place] = wanted
        self._place = place
        return place

    def owns(self, record, place, size, offset):
        """Whether a record is whole and says itself that it is the one wanted.

        It lies at `place` of the log with `size` bytes by its unit, at `offset` of the queue. The
        plain form of this is Owner in store/log_reader.py.
        """
        magic: uint32_t
        flags: uint32_t
        body_at: int64_t = 88
        body_bytes: int64_t
        if size < RECORD_MIN or get32(record) != size or get64(record + 28) != place:
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
        """Whether the topic stands there, and behind it properties up to the end."""
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
