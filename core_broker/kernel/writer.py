# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A thread for the answers of a busy iteration: the event loop reads on while the system sends.

Sending takes the system about as long as the broker needs for all other work of a request. The
thread has no part in the broker's state: it gets one batch of bytes and sockets at a time and never
acquires the GIL. The event loop sends the rest of a batch before the next batch, or before any
other use of one of its connections.
"""

import cython
from cython.cimports.core_broker.kernel.writer import (
    MSG_DONTWAIT,
    MSG_NOSIGNAL,
    next_of,
    put,
    sched_yield,
    seen,
    sem_destroy,
    sem_init,
    sem_post,
    sem_wait,
    send,
)
from cython.cimports.cpython.bytes import PyBytes_AS_STRING
from cython.cimports.cpython.exc import PyErr_SetFromErrno
from cython.cimports.libc.stdint import int64_t, uint8_t

WRITES_MAX = cython.declare(cython.int, 256)
#: Bits of each half of `_next`.
HALF_BITS = cython.declare(cython.int, 32)
LOWER_HALF = cython.declare(int64_t, 0xFFFFFFFF)


@cython.cclass
class Writer:
    """Sends one batch at a time: `add` for each socket, `begin`, and `join` before the next one."""

    def __cinit__(self):
        if sem_init(cython.address(self._asked), 0, 0):
            PyErr_SetFromErrno(OSError)
        self._is_made = True
        self._protocols = []
        self._answers = []

    def __dealloc__(self):
        if self._is_made:
            sem_destroy(cython.address(self._asked))

    def run(self) -> None:
        """Send batches until `stop`; the body of a thread."""
        with cython.nogil:
            while not self._is_over:
                if not sem_wait(cython.address(self._asked)):
                    self._help()

    def stop(self) -> None:
        """Let `run` return; no batch may be under way."""
        self._is_over = True
        sem_post(cython.address(self._asked))

    def add(self, protocol, descriptor, answers):
        """Add answers to the next batch."""
        at: cython.pointer(uint8_t) = cython.cast(
            cython.pointer(uint8_t), PyBytes_AS_STRING(answers)
        )
        self._protocols.append(protocol)
        self._answers.append(answers)
        self._writes[self._count].descriptor = descriptor
        self._writes[self._count].data = at
        self._writes[self._count].size = len(answers)
        self._count += 1
        self.is_full = self._count == WRITES_MAX
        return 0

    def begin(self):
        """Start to send the batch."""
        if self._count:
            self.is_busy = True
            self.batches += 1
            self._sent = 0
            put(cython.address(self._next), cython.cast(int64_t, self._count) << HALF_BITS)
            sem_post(cython.address(self._asked))
        return 0

    def join(self):
        """Send the rest of the batch; returns each protocol with the bytes that the system left."""
        rest: int64_t
        i: cython.int
        self._help()
        while seen(cython.address(self._sent)) < self._count:
            sched_yield()
        put(cython.address(self._next), 0)
        batch: list = self._protocols
        for i in range(self._count):
            rest = self._writes[i].size - max(self._writes[i].sent, 0)
            batch[i] = (batch[i], self._answers[i][-rest:] if rest else b"")
        self._protocols = []
        self._answers.clear()
        self._count = 0
        self.is_busy = self.is_full = False
        return batch

    def _help(self):
        """Send answers that no thread has begun to send."""
        taken: int64_t = next_of(cython.address(self._next))
        i: int64_t = taken & LOWER_HALF
        while i < taken >> HALF_BITS:
            self._writes[i].sent = send(
                self._writes[i].descriptor,
                self._writes[i].data,
                self._writes[i].size,
                MSG_DONTWAIT | MSG_NOSIGNAL,
            )
            next_of(cython.address(self._sent))
            taken = next_of(cython.address(self._next))
            i = taken & LOWER_HALF
