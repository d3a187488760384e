# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Offset commits (code 15), which consumers mostly send as one-way notices, without an answer."""

import cython
from cython.cimports.core_broker.kernel.fast_path import FastHandler, FastPath
from cython.cimports.core_broker.kernel.fields import GROUP_FIELD, TOPIC_FIELD, NamedHeader
from cython.cimports.core_broker.kernel.octets import put_decimal
from cython.cimports.core_broker.kernel.templates import put_lengths, put_text
from cython.cimports.libc.stdint import uint8_t, uint32_t

ONEWAY = cython.declare(cython.int, 2)
FRAME_HEAD = cython.declare(cython.int, 8)
NUMBERS_BYTES = cython.declare(cython.int, 32)
#: Maximum number of kept targets; one more, and all are dropped.
TARGETS_MAX = cython.declare(cython.int, 20000)


@cython.cclass
class CompiledCommits(FastHandler):
    """Takes offset commits.

    `shell.target(group, topic, queue_id)` returns a CommitTarget, which is kept for ever, or None
    when the slow path must refuse the commit. `shell.commit(target, offset)` commits; false when
    the slow path must decide. `answer_template` is cut at the opaque.
    """

    _shell: object
    _parts: tuple
    _targets: dict

    def __init__(self, shell: object, answer_template: tuple) -> None:
        self._shell = shell
        self._parts = answer_template
        self._targets = {}

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def take(
        self, path: FastPath, body: cython.pointer(uint8_t), body_bytes: uint32_t
    ) -> cython.bint:
        header: NamedHeader = cython.cast(NamedHeader, path.header)
        first: cython.pointer(uint8_t)
        at: cython.pointer(uint8_t)
        if (header.flag and header.flag != ONEWAY) or not header.read_commit():
            return False
        target = self._target(header)
        if target is None:
            return False
        first = path.out.reserve(len(self._parts[0]) + len(self._parts[1]) + NUMBERS_BYTES)
        if not self._shell.commit(target, header.commit):
            return False
        if not header.flag:
            at = put_text(first + FRAME_HEAD, self._parts[0])
            at = put_text(put_decimal(at, header.opaque), self._parts[1])
            put_lengths(first, at - first, 0)
            path.out.count += at - first
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
