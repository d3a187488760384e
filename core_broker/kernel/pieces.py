# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One answer as pieces of memory: a head, and ranges of the mapped log.

`send` passes the pieces to the socket with one call, so that the system copies the records straight
from the page cache; `join` copies them once into bytes. Adjacent ranges become one piece.
"""

import cython
from cython.cimports.core_broker.kernel.pieces import (
    MSG_DONTWAIT,
    MSG_NOSIGNAL,
    RANGES_MAX,
    iovec,
    msghdr,
    sendmsg,
)
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int64_t, uint8_t
from cython.cimports.libc.string import memcpy, memset


@cython.cclass
class Pieces:
    """Reused for each answer: write `head`, then `begin`, `add`, and `join` or `send`.

    The ranges must stay mapped and in memory until `join` or `send` returns.
    """

    def begin(self, head_bytes):
        """Begin an answer with the first bytes of `head`."""
        self._pieces[0].iov_base = cython.address(self.head[0])
        self._pieces[0].iov_len = head_bytes
        self._count = 1
        self._size = head_bytes
        return 0

    def add(self, at, size):
        """Add a range of memory."""
        last: cython.pointer(iovec) = cython.address(self._pieces[self._count - 1])
        end: cython.pointer(uint8_t) = cython.cast(cython.pointer(uint8_t), last.iov_base)
        self._size += size
        if self._count > 1 and end + last.iov_len == at:
            last.iov_len += size
            return 0
        if self._count > RANGES_MAX:
            raise ValueError("an answer has too many pieces")
        self._pieces[self._count].iov_base = at
        self._pieces[self._count].iov_len = size
        self._count += 1
        return 0

    def join(self):
        """Return the answer."""
        return self._copy(0)

    def send(self, descriptor):
        """Send the answer without waiting; return the bytes that the socket did not accept.

        After an error of the socket, all bytes are returned: the next write reports the error.
        """
        message: msghdr
        memset(cython.address(message), 0, cython.sizeof(msghdr))
        message.msg_iov = cython.address(self._pieces[0])
        message.msg_iovlen = self._count
        sent: int64_t = sendmsg(descriptor, cython.address(message), MSG_DONTWAIT | MSG_NOSIGNAL)
        return self._copy(max(sent, 0))

    def _copy(self, start):
        """Return a copy of the answer from its byte `start` on."""
        copy: bytes = PyBytes_FromStringAndSize(cython.NULL, self._size - start)
        to: cython.pointer(uint8_t) = cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(copy))
        at: cython.pointer(uint8_t)
        size: int64_t
        i: cython.int
        if start == self._size:
            return copy
        for i in range(self._count):
            at = cython.cast(cython.pointer(uint8_t), self._pieces[i].iov_base)
            size = self._pieces[i].iov_len
            if start >= size:
                start -= size
                continue
            memcpy(to, at + start, size - start)
            to += size - start
            start = 0
        return copy
