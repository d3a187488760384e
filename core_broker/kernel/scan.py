# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Reading the JSON header of a request.

The kernel reads headers as common clients write them: no blanks, strings of ASCII, whole numbers,
ext fields that are strings. Only the properties of a send may have characters beyond ASCII: most
clients write UTF-8, some write escapes (jsoncpp, Python). Other headers are for the slow path, so a
header means the same on both paths. Compatible with RocketMQ's RemotingSerializable and
SendMessageRequestHeaderV2.
"""

import cython
from cython.cimports.core_broker.kernel.octets import Text, same, unescaped_end
from cython.cimports.core_broker.kernel.utf8 import put_utf8, utf8_end
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcpy


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def read_number(
    at: cython.pointer(uint8_t), end: cython.pointer(uint8_t), value: cython.pointer(int64_t)
) -> cython.pointer(uint8_t):
    """Read a whole number of JSON; return its end, NULL for other text."""
    is_negative: cython.bint = at < end and at[0] == MINUS
    if is_negative:
        at += 1
    first: cython.pointer(uint8_t) = at
    number: int64_t = 0
    while at < end and ZERO <= at[0] <= NINE:
        number = number * 10 + (at[0] - ZERO)
        at += 1
        if at - first > DIGITS_MAX:
            return cython.NULL
    if at == first or (first[0] == ZERO and (at - first > 1 or is_negative)):
        return cython.NULL
    value[0] = -number if is_negative else number
    return at


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def read_hex4(at: cython.pointer(uint8_t), end: cython.pointer(uint8_t)) -> cython.int:
    """Read the four digits of an escape; -1 for other text."""
    value: cython.int = 0
    digit: cython.int
    i: cython.int
    if end - at < 4:
        return -1
    for i in range(4):
        digit = at[i]
        if ZERO <= digit <= NINE:
            digit -= ZERO
        elif 97 <= digit <= 102:
            digit -= 87
        elif 65 <= digit <= 70:
            digit -= 55
        else:
            return -1
        value = value * 16 + digit
    return value


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def read_plain(
    at: cython.pointer(uint8_t), end: cython.pointer(uint8_t), result: cython.pointer(Text)
) -> cython.pointer(uint8_t):
    """Read a string without escapes behind its opening quote; NULL for any other string."""
    stop: cython.pointer(uint8_t) = unescaped_end(at, end)
    if stop >= end or stop[0] != QUOTE:
        return cython.NULL
    result[0].p = at
    result[0].n = cython.cast(cython.int, stop - at)
    return stop + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_letter(at: cython.pointer(uint8_t), end: cython.pointer(uint8_t)) -> cython.bint:
    """Whether an ext field has the name of one letter and a string; `at` is before its name."""
    if end - at < LETTER_BYTES or at[1] != QUOTE or at[3] != QUOTE:
        return False
    return at[4] == COLON and at[5] == QUOTE and 97 <= at[2] <= 122


@cython.cclass
class Header:
    """The header in hand: its numbers, and the ext fields that the kernel uses."""

    def __cinit__(self):
        self.scratch = cython.cast(cython.pointer(uint8_t), malloc(SCRATCH_BYTES))
        if self.scratch == cython.NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.scratch)

    def read(self, at, count):
        """Read a header of `count` bytes; false for a header of the slow path."""
        here: cython.pointer(uint8_t) = cython.cast(cython.pointer(uint8_t), at)
        end: cython.pointer(uint8_t) = here + count
        behind: cython.pointer(uint8_t)
        name: Text
        i: cython.int
        for i in range(FIELDS):
            self.fields[i].p = cython.NULL
        self.free_at = self.scratch
        self.beyond_ascii = cython.NULL
        self.code = self.opaque = -1
        self.flag = self.version = 0
        self.language.p = cython.NULL
        if count < 2 or here[0] != OPENING:
            return False
        while True:
            if end - here < 4 or here[1] != QUOTE:
                return False
            behind = read_plain(here + 2, end, cython.address(name))
            if behind == cython.NULL:
                behind = self._string(here + 2, end, cython.address(name))
            here = behind
            if here == cython.NULL or here >= end or here[0] != COLON:
                return False
            here = self._member(name, here + 1, end)
            if here == cython.NULL or here >= end:
                return False
            if here[0] == CLOSING:
                return here + 1 == end and self.opaque >= 0 and self._has_common_characters()
            if here[0] != COMMA:
                return False

    def _has_common_characters(self):
        """Return true when at most the properties of a send have characters beyond ASCII."""
        return (
            self.beyond_ascii == cython.NULL or self.beyond_ascii == self.fields[PROPERTIES_FIELD].p
        )

    def _member(self, name, at, end):
        """Read the value of a member of the header, and return the value's end."""
        value: Text
        number: int64_t = 0
        if at >= end:
            return cython.NULL
        if at[0] == OPENING:
            # The second of two objects of ext fields would replace the first.
            if not same(name, b"extFields", 9) or self.fields[0].p != cython.NULL:
                return cython.NULL
            return self._ext_fields(at, end)
        if at[0] == QUOTE:
            if same(name, b"language", 8):
                return self._string(at + 1, end, cython.address(self.language))
            if not same(name, b"serializeTypeCurrentRPC", 23):
                return cython.NULL
            return self._string(at + 1, end, cython.address(value))
        at = read_number(at, end, cython.address(number))
        if number > INT_MAX or number < -INT_MAX:
            return cython.NULL
        if same(name, b"code", 4):
            self.code = number
        elif same(name, b"flag", 4):
            self.flag = number
        elif same(name, b"opaque", 6):
            self.opaque = number
        elif same(name, b"version", 7):
            self.version = number
        else:
            return cython.NULL
        return at

    def _ext_fields(self, at, end):
        """Read the object of ext fields from its brace at `at` on, and return its end."""
        name: Text
        value: Text
        behind: cython.pointer(uint8_t)
        while True:
            if _is_letter(at, end):
                name.p = at + 2
                name.n = 1
                at += LETTER_BYTES
            else:
                if end - at < 2 or at[1] != QUOTE:
                    return cython.NULL
                at = self._string(at + 2, end, cython.address(name))
                if at == cython.NULL or end - at < 2 or at[0] != COLON or at[1] != QUOTE:
                    return cython.NULL
                at += 2
            behind = read_plain(at, end, cython.address(value))
            if behind == cython.NULL:
                behind = self._string(at, end, cython.address(value))
            at = behind
            if at == cython.NULL or at >= end:
                return cython.NULL
            self._note(name, value)
            if at[0] == CLOSING:
                return at + 1
            if at[0] != COMMA:
                return cython.NULL

    def _note(self, name, value):
        """Keep an ext field, if the kernel uses the field."""
        if name.n == 1 and 97 <= name.p[0] <= 122:
            self.fields[name.p[0] - 97] = value

    def _string(self, at, end, result):
        """Read a string behind its opening quote, and return its end."""
        behind: cython.pointer(uint8_t) = read_plain(at, end, result)
        if behind != cython.NULL:
            return behind
        behind = unescaped_end(at, end)
        return self._copied(at, behind, end, result) if behind < end else cython.NULL

    def _copied(self, start, at, end, result):
        """Read a string into `scratch`: `at` is the end of its unescaped ASCII from `start` on."""
        to: cython.pointer(uint8_t) = self.free_at
        stop: cython.pointer(uint8_t)
        character: cython.int
        low: cython.int
        is_ascii: cython.bint = True
        # An unescaped string is never longer than its escaped form.
        if end - start > self.scratch + SCRATCH_BYTES - to:
            return cython.NULL
        while True:
            while at < end and at[0] >= 0x80:
                stop = utf8_end(at, end)
                if stop == at:
                    return cython.NULL
                is_ascii = False
                at = unescaped_end(stop, end)
            memcpy(to, start, at - start)
            to += at - start
            if at >= end:
                return cython.NULL
            if at[0] == QUOTE:
                if not is_ascii:
                    if self.beyond_ascii != cython.NULL:
                        return cython.NULL
                    self.beyond_ascii = self.free_at
                result[0].p = self.free_at
                result[0].n = cython.cast(cython.int, to - self.free_at)
                self.free_at = to
                return at + 1
            if at[0] != BACKSLASH or end - at < 2:
                return cython.NULL
            character = at[1]
            at += 2
            if character == UNICODE:
                character = read_hex4(at, end)
                at += 4
                if character < 0:
                    return cython.NULL
                if character & 0xF800 == 0xD800:
                    # Two escapes of UTF-16: a high surrogate, then a low one.
                    if end - at < 2 or at[0] != BACKSLASH or at[1] != UNICODE:
                        return cython.NULL
                    low = read_hex4(at + 2, end)
                    if character >= 0xDC00 or low & 0xFC00 != 0xDC00 or low < 0:
                        return cython.NULL
                    character = 0x10000 + ((character & 0x3FF) << 10) + (low & 0x3FF)
                    at += 6
            elif character != QUOTE and character != BACKSLASH and character != SLASH:
                return cython.NULL
            if character < 0x80:
                to[0] = cython.cast(uint8_t, character)
                to += 1
            else:
                to = put_utf8(to, cython.cast(uint32_t, character))
                is_ascii = False
            start = at
            at = unescaped_end(at, end)

    def number(self, field, value):
        """Read an ext field as a whole number of 64 bits."""
        text: Text = self.fields[field]
        if text.p == cython.NULL:
            return False
        return read_number(text.p, text.p + text.n, value) == text.p + text.n

    def is_true(self, field):
        """Return true for an ext field with the value true."""
        return self.fields[field].p != cython.NULL and same(self.fields[field], b"true", 4)

    def is_common_send(self):
        """Return true when the unused fields of a send have common values.

        Required: a, c, d. A message with reconsume times (j) is for the slow path.
        """
        number: int64_t = 0
        text: Text
        i: cython.int
        if self.fields[0].p == cython.NULL or self.fields[2].p == cython.NULL:
            return False
        if not self.number(3, cython.address(number)) or number > INT_MAX or number < -INT_MAX:
            return False
        text = self.fields[9]
        if text.p != cython.NULL and not same(text, b"0", 1):
            return False
        text = self.fields[11]
        if text.p != cython.NULL:
            if not self.number(11, cython.address(number)):
                return False
            if number > INT_MAX or number < -INT_MAX:
                return False
        for i in range(10, 13, 2):
            text = self.fields[i]
            if text.p != cython.NULL and not same(text, b"true", 4) and not same(text, b"false", 5):
                return False
        return True
