# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Heartbeats (code 34) that repeat the last heartbeat of their connection byte for byte.

A heartbeat is kept with the connection when the slow path (processors/clients.py) has handled it
without a change to any table. While the tables stay unchanged, equal bytes change nothing either:
the kernel only has the time noted at which the client was alive.
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
    """A heartbeat that changed nothing: its client, its bytes, and the table state behind it."""

    body = cython.declare(bytes, visibility="readonly")
    #: Name of the client's language, as in headers.
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
    """Takes repeated heartbeats.

    `shell.renew(heartbeat, waited_ms)` notes that the client is alive; false when a table has
    changed, or when the request has waited too long. `answer_template` is cut at the opaque.
    """

    #: Heartbeats taken since the start.
    heartbeats = cython.declare(int64_t, visibility="readonly")

    _shell: object
    _parts: tuple

    def __init__(self, shell: object, answer_template: tuple) -> None:
        self._shell = shell
        self._parts = answer_template

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def take(
        self, path: FastPath, body: cython.pointer(uint8_t), body_bytes: uint32_t
    ) -> cython.bint:
        header: Header = path.header
        first: cython.pointer(uint8_t)
        at: cython.pointer(uint8_t)
        if path.protocol.kept_heartbeat is None or path.protocol.state.is_stalled:
            return False
        kept: KeptHeartbeat = cython.cast(KeptHeartbeat, path.protocol.kept_heartbeat)
        if (header.flag and header.flag != ONEWAY) or header.version != kept.version:
            return False
        if header.language.p == cython.NULL or header.language.n != len(kept.language):
            return False
        if memcmp(header.language.p, PyBytes_AS_STRING(kept.language), len(kept.language)):
            return False
        if body_bytes != len(kept.body) or memcmp(body, PyBytes_AS_STRING(kept.body), body_bytes):
            return False
        first = path.out.reserve(len(self._parts[0]) + len(self._parts[1]) + NUMBERS_BYTES)
        if not self._shell.renew(kept, path.waited_ms):
            return False
        if not header.flag:
            at = put_text(first + FRAME_HEAD, self._parts[0])
            at = put_text(put_decimal(at, header.opaque), self._parts[1])
            put_lengths(first, at - first, 0)
            path.out.count += at - first
        self.heartbeats += 1
        return True
