# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The answers to sends as frames, one behind the other.

    parts[0] opaque parts[1] ids parts[2] queue id parts[3] queue offset parts[4]

The parts are a template of the slow path's answer (fastpath/templates.py).
"""

import cython
from cython.cimports.core_broker.kernel.memory import Memory
from cython.cimports.core_broker.kernel.octets import put32, put_decimal, put_hex16
from cython.cimports.libc.stdint import uint8_t, uint32_t
from cython.cimports.libc.string import memcpy

FRAME_HEAD = cython.declare(cython.int, 8)
#: Maximum size of the three numbers of an answer and its frame head, bytes.
NUMBERS_BYTES = cython.declare(cython.int, 72)
#: Size of a message id and the comma before the id, bytes.
ID_BYTES = cython.declare(cython.int, 33)
COMMA = cython.declare(cython.int, 44)


@cython.cclass
class Answers:
    """Writes answers: `reserve`, `begin`, `add_id` for each message, `end`."""

    def __init__(self, parts: tuple, id_prefix: bytes):
        self._parts = parts
        self._id_prefix = id_prefix
        self._longest = sum(map(len, parts)) + NUMBERS_BYTES

    def reserve(self, out, ids):
        """Reserve memory for one answer with `ids` message ids."""
        self._out = out
        out.reserve(self._longest + ids * ID_BYTES)
        return 0

    def begin(self, opaque):
        """Write an answer up to the message ids."""
        self._began_at = self._out.count
        self._has_id = False
        self._out.count += FRAME_HEAD
        self._put(self._parts[0])
        self._put_number(opaque)
        self._put(self._parts[1])

    def add_id(self, offset_physical):
        """Write the id of a message, which is its commit log offset."""
        out: Memory = self._out
        if self._has_id:
            out.start[out.count] = COMMA
            out.count += 1
        self._has_id = True
        self._put(self._id_prefix)
        out.count = put_hex16(out.start + out.count, offset_physical) - out.start

    def end(self, queue_id, queue_offset):
        """Write the fields behind the message ids, then the two lengths of the frame."""
        self._put(self._parts[2])
        self._put_number(queue_id)
        self._put(self._parts[3])
        self._put_number(queue_offset)
        self._put(self._parts[4])
        first: cython.pointer(uint8_t) = self._out.start + self._began_at
        size: uint32_t = cython.cast(uint32_t, self._out.count - self._began_at)
        put32(first, size - 4)
        put32(first + 4, size - FRAME_HEAD)

    def _put(self, text):
        out: Memory = self._out
        memcpy(out.start + out.count, cython.cast(cython.p_char, text), len(text))
        out.count += len(text)

    def _put_number(self, number):
        out: Memory = self._out
        out.count = put_decimal(out.start + out.count, number) - out.start
