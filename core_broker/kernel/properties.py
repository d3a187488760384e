# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The properties of a message, as the slow path stores them.

    name 0x01 value 0x02 name 0x01 value …

The format is in message/properties.py. Messages with a delay level, a timer property or a
transaction, and messages with a property that comes twice, are for the slow path.
"""

import cython
from cython.cimports.core_broker.kernel.octets import Text, same
from cython.cimports.libc.stdint import uint8_t
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memchr, memcmp, memcpy, memmove

PROPERTIES_MAX = cython.declare(cython.int, 32767)
#: Minimum size of a property, bytes: name, separator and value of one character each.
SHORTEST = cython.declare(cython.int, 3)
NAMES_MAX = cython.declare(cython.int, 32)
WAIT_BYTES = cython.declare(cython.int, 5)


@cython.cclass
class Properties:
    """The properties of the message in hand: `count` bytes of `text`, and pointers into `text`."""

    def __cinit__(self, added: bytes):
        self._added = added
        self.added_max = cython.cast(cython.int, len(added)) + 1
        self.text = cython.cast(cython.pointer(uint8_t), malloc(PROPERTIES_MAX + 1))
        if self.text == cython.NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.text)

    def normalize(self, given, is_ascii):
        """Copy properties, the broker's own behind them; false when the slow path must decide.

        Properties that are not ASCII are valid UTF-8.
        """
        names: Text[32]
        value: Text
        count: cython.int = 0
        i: cython.int
        at: cython.pointer(uint8_t) = given.p
        end: cython.pointer(uint8_t) = at + given.n
        stop: cython.pointer(uint8_t)
        to: cython.pointer(uint8_t) = self.text
        added: cython.pointer(uint8_t) = self._added
        added_bytes: cython.int = cython.cast(cython.int, len(self._added))
        self.is_ascii = is_ascii
        self.unique_key.p = self.keys.p = self.tags.p = self.wait.p = cython.NULL
        if given.p == cython.NULL:
            at = end = to
        if end - at + added_bytes >= PROPERTIES_MAX:
            return False
        while at < end:
            stop = cython.cast(cython.pointer(uint8_t), memchr(at, 2, end - at))
            if stop == cython.NULL:
                stop = end
            value.p = cython.cast(cython.pointer(uint8_t), memchr(at, 1, stop - at))
            if stop - at >= SHORTEST and value.p > at and value.p + 1 < stop:
                if count == NAMES_MAX:
                    return False
                names[count].p = at
                names[count].n = cython.cast(cython.int, value.p - at)
                for i in range(count):
                    if names[i].n == names[count].n and not memcmp(names[i].p, at, names[i].n):
                        return False
                memcpy(to, at, stop - at)
                value.n = cython.cast(cython.int, stop - value.p - 1)
                value.p = to + names[count].n + 1
                if not self._note(names[count], value):
                    return False
                to += stop - at
                to[0] = 2
                to += 1
                count += 1
            at = stop + 1
        memcpy(to, added, added_bytes)
        self.count = cython.cast(cython.int, to + added_bytes - self.text)
        return True

    def _note(self, name, value):
        """Keep a property that the kernel uses; false for a property of the slow path."""
        if name.n == 4:
            if same(name, b"KEYS", 4):
                self.keys = value
            elif same(name, b"TAGS", 4):
                self.tags = value
            elif same(name, b"WAIT", 4):
                self.wait = value
        elif name.n == 8:
            if same(name, b"UNIQ_KEY", 8):
                self.unique_key = value
            return not (same(name, b"TRAN_MSG", 8) or same(name, b"TRACE_ON", 8))
        elif name.n == 5:
            return not same(name, b"DELAY", 5)
        elif name.n == 7:
            return not same(name, b"CLUSTER", 7)
        elif name.n == 10:
            return not same(name, b"MSG_REGION", 10)
        elif name.n >= 14:
            return not (
                same(name, b"TIMER_DELAY_MS", 14)
                or same(name, b"TIMER_DELAY_SEC", 15)
                or same(name, b"TIMER_DELIVER_MS", 16)
            )
        return True

    def drop_wait(self):
        """Remove WAIT: single messages are stored without the property."""
        if self.wait.p == cython.NULL:
            return
        start: cython.pointer(uint8_t) = self.wait.p - WAIT_BYTES
        gone: cython.int = WAIT_BYTES + self.wait.n + 1
        end: cython.pointer(uint8_t) = self.text + self.count
        memmove(start, start + gone, end - start - gone)
        self.count -= gone
        if self.unique_key.p > start:
            self.unique_key.p -= gone
        if self.keys.p > start:
            self.keys.p -= gone
        if self.tags.p > start:
            self.tags.p -= gone
