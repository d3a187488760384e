# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Syncing files in a thread that never asks for the interpreter.

A thread in Python would wait for its turn twice a flush, and make the event loop give way twice.
"""

import cython
from cython.cimports.core_broker.kernel.syncing import sync_data
from cython.cimports.cpython.exc import PyErr_SetFromErrno
from cython.cimports.libc.errno import EINTR, errno
from cython.cimports.libc.stdint import uint64_t
from cython.cimports.posix.unistd import read, write

COUNTER_BYTES = cython.declare(cython.int, 8)
NOBODY = cython.declare(cython.int, -1)


@cython.cclass
class Syncer:
    """Syncs one file at a time: `ask`, then `outcome` once the counter `told` has risen.

    Both counters are those of `eventfd`, and belong to the caller; `asked` must be a blocking one.
    """

    _asked: cython.int
    _told: cython.int
    _descriptor: cython.int
    _errno: cython.int

    def __init__(self, asked: cython.int, told: cython.int) -> None:
        self._asked = asked
        self._told = told

    def ask(self, descriptor: cython.int) -> None:
        """Have what was written to a file put on the disk."""
        self._descriptor = descriptor
        self._raise(self._asked)

    def stop(self) -> None:
        """Let `run` return."""
        self.ask(NOBODY)

    def outcome(self) -> int:
        """The error number of what was asked, 0 without one."""
        count: uint64_t = 0
        read(self._told, cython.address(count), COUNTER_BYTES)
        return self._errno

    def run(self) -> None:
        """Do what is asked until it is enough; the body of a thread."""
        count: uint64_t = 1
        got: cython.Py_ssize_t
        with cython.nogil:
            while True:
                got = read(self._asked, cython.address(count), COUNTER_BYTES)
                if got < 0 and errno == EINTR:
                    continue
                if got < 0 or self._descriptor == NOBODY:
                    break
                self._errno = errno if sync_data(self._descriptor) else 0
                count = 1
                write(self._told, cython.address(count), COUNTER_BYTES)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _raise(self, counter: cython.int) -> cython.int:
        count: uint64_t = 1
        if write(counter, cython.address(count), COUNTER_BYTES) < 0:
            PyErr_SetFromErrno(OSError)
        return 0
