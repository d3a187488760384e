# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Writing the head of an answer from a template (fastpath/templates.py)."""

import cython
from cython.cimports.core_broker.kernel.octets import put32
from cython.cimports.cpython.bytes import PyBytes_AS_STRING
from cython.cimports.libc.stdint import uint32_t
from cython.cimports.libc.string import memcpy

FRAME_HEAD = cython.declare(cython.int, 8)


def put_text(at, text):
    """Write a text; return its end."""
    memcpy(at, PyBytes_AS_STRING(text), len(text))
    return at + len(text)


def put_lengths(frame, head, body):
    """Write the two lengths of a frame: `head` bytes with the lengths, `body` bytes behind."""
    put32(frame, cython.cast(uint32_t, head + body - 4))
    put32(frame + 4, cython.cast(uint32_t, head - FRAME_HEAD))
