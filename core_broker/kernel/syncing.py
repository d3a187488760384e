# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Syncing files in a thread that never acquires the GIL.

A thread in Python acquires the GIL twice per flush, and the event loop releases the GIL twice.
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
    """Syncs one file at a time: `ask`, then `outcome` once the counter `done` has risen.

    Both counters are descriptors of eventfd() and belong to the caller; `asked` must be blocking.
    """

    _asked: cython.int
    _done: cython.int
    _descriptor: cython.int
    _errno: cython.int

    def __init__(self, asked: cython.int, done: cython.int) -> None:
        self._asked = asked
        self._done = done

    def ask(self, descriptor: cython.int) -> None:
        """Request a sync of a file."""
        self._descriptor = descriptor
        self._raise(self._asked)

    def stop(self) -> None:
        """Let `run` return."""
        self.ask(NOBODY)

    def outcome(self) -> int:
        """Return the error number of the last sync, 0 for success."""
        count: uint64_t = 0
        read(self._done, cython.address(count), COUNTER_BYTES)
        return self._errno

    def run(self) -> None:
        """Sync requested files until `stop`; the body of a thread."""
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
                write(self._done, cython.address(count), COUNTER_BYTES)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _raise(self, counter: cython.int) -> cython.int:
        count: uint64_t = 1
        if write(counter, cython.address(count), COUNTER_BYTES) < 0:
            PyErr_SetFromErrno(OSError)
        return 0
