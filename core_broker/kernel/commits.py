# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Commits of offsets (code 15), which consumers mostly send as notices that nobody answers."""

import cython
from cython.cimports.core_broker.kernel.fast_path import FastHandler, FastPath
from cython.cimports.core_broker.kernel.fields import GROUP_FIELD, TOPIC_FIELD, NamedHeader
from cython.cimports.core_broker.kernel.octets import put_decimal
from cython.cimports.core_broker.kernel.templates import put_lengths, put_text
from cython.cimports.libc.stdint import uint8_t, uint32_t

ONEWAY = cython.declare(cython.int, 2)
FRAME_HEAD = cython.declare(cython.int, 8)
NUMBERS_BYTES = cython.declare(cython.int, 32)
#: Targets that are kept; one more, and all are asked for again.
TARGETS_MAX = cython.declare(cython.int, 20000)


@cython.cclass
class CompiledCommits(FastHandler):
    """Takes commits that are usual.

    `shell.target(group, topic, queue_id) -> tuple | None` says whether offsets may be committed
    there, once and for all; `shell.commit(target, offset)` commits, and is false when that needs a
    second look. `answer_parts` stand in an answer before and behind its opaque.
    """

    _shell: object
    _parts: tuple
    _targets: dict

    def __init__(self, shell: object, answer_parts: tuple) -> None:
        self._shell = shell
        self._parts = answer_parts
        self._targets = {}

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def take(
        self, asked: FastPath, body: cython.pointer(uint8_t), body_bytes: uint32_t
    ) -> cython.bint:
        header: NamedHeader = cython.cast(NamedHeader, asked.header)
        first: cython.pointer(uint8_t)
        at: cython.pointer(uint8_t)
        if (header.flag and header.flag != ONEWAY) or not header.read_commit():
            return False
        target = self._target(header)
        if target is None:
            return False
        first = asked.out.reserve(len(self._parts[0]) + len(self._parts[1]) + NUMBERS_BYTES)
        if not self._shell.commit(target, header.commit):
            return False
        if not header.flag:
            at = put_text(first + FRAME_HEAD, self._parts[0])
            at = put_text(put_decimal(at, header.opaque), self._parts[1])
            put_lengths(first, at - first, 0)
            asked.out.count += at - first
        return True

    @cython.cfunc
    def _target(self, header: NamedHeader) -> object:
        key: bytes = header.key()
        if key is None:
            return None
        target = self._targets.get(key)
        if target is None:
            target = self._shell.target(
                header.text(GROUP_FIELD), header.text(TOPIC_FIELD), header.queue_id
            )
            if target is not None:
                if len(self._targets) >= TARGETS_MAX:
                    self._targets.clear()
                self._targets[key] = target
        return target
