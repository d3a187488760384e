# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Heartbeats (code 34) that say what the one before them said, byte for byte.

A connection keeps its last heartbeat, once the plain path (processors/clients.py) has found that it
changes nothing. The same bytes again change nothing either, as long as nobody else has changed what
they are about: then only the time is noted when the client was seen.
"""

import cython
from cython.cimports.core_broker.kernel.fast_path import FastHandler, FastPath
from cython.cimports.core_broker.kernel.octets import put_decimal
from cython.cimports.core_broker.kernel.scan import Header
from cython.cimports.core_broker.kernel.templates import put_lengths, put_text
from cython.cimports.cpython.bytes import PyBytes_AS_STRING
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t
from cython.cimports.libc.string import memcmp

ONEWAY = cython.declare(cython.int, 2)
FRAME_HEAD = cython.declare(cython.int, 8)
NUMBERS_BYTES = cython.declare(cython.int, 32)


@cython.cclass
class KeptHeartbeat:
    """A heartbeat that changed nothing: who sent it, what it said, and how things were then."""

    body = cython.declare(bytes, visibility="readonly")
    #: The name of the client's language, as it stands in headers.
    language = cython.declare(bytes, visibility="readonly")
    version = cython.declare(int64_t, visibility="readonly")
    client = cython.declare(object, visibility="readonly")
    state = cython.declare(object, visibility="readonly")

    def __init__(
        self, body: bytes, language: bytes, version: int, client: object, state: object
    ) -> None:
        self.body = body
        self.language = language
        self.version = version
        self.client = client
        self.state = state


@cython.cclass
class CompiledHeartbeats(FastHandler):
    """Takes heartbeats that were heard before.

    `shell.renew(beat, waited_ms)` notes that the client was seen, and is false when things are not
    as they were, or the request has waited for long. `answer_parts` stand in an answer before and
    behind its opaque.
    """

    #: Heartbeats that went this way.
    beats = cython.declare(int64_t, visibility="readonly")

    _shell: object
    _parts: tuple

    def __init__(self, shell: object, answer_parts: tuple) -> None:
        self._shell = shell
        self._parts = answer_parts

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def take(
        self, asked: FastPath, body: cython.pointer(uint8_t), body_bytes: uint32_t
    ) -> cython.bint:
        header: Header = asked.header
        first: cython.pointer(uint8_t)
        at: cython.pointer(uint8_t)
        if asked.line.beat is None or asked.line._stalled:
            return False
        beat: KeptHeartbeat = cython.cast(KeptHeartbeat, asked.line.beat)
        if (header.flag and header.flag != ONEWAY) or header.version != beat.version:
            return False
        if header.language.p == cython.NULL or header.language.n != len(beat.language):
            return False
        if memcmp(header.language.p, PyBytes_AS_STRING(beat.language), len(beat.language)):
            return False
        if body_bytes != len(beat.body) or memcmp(body, PyBytes_AS_STRING(beat.body), body_bytes):
            return False
        first = asked.out.reserve(len(self._parts[0]) + len(self._parts[1]) + NUMBERS_BYTES)
        if not self._shell.renew(beat, asked.waited_ms):
            return False
        if not header.flag:
            at = put_text(first + FRAME_HEAD, self._parts[0])
            at = put_text(put_decimal(at, header.opaque), self._parts[1])
            put_lengths(first, at - first, 0)
            asked.out.count += at - first
        self.beats += 1
        return True
