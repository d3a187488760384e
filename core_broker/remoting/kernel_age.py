"""A lower bound of the waiting time of bytes in a socket's receive buffer.

The system reports the number of unread bytes (FIONREAD), but not their arrival times. A read that
fills our buffer may leave bytes in the socket. FIONREAD then says how many bytes have already
arrived, so the next reads of these bytes have waited at least since the call. The bound never
exceeds the true waiting time. The cost is one system call per backlog, and none for a connection
without backlog.
"""

import asyncio
import fcntl
import termios
import time
from array import array


class KernelAge:
    """The backlog of one connection. Times are seconds of the monotonic clock."""

    __slots__ = ("_since", "pending")

    def __init__(self) -> None:
        #: Unread bytes among the bytes reported by the last FIONREAD.
        self.pending = 0
        self._since = 0.0

    def since(self, transport: asyncio.Transport, read_bytes: int, turn_began: float) -> float:
        """Latest possible arrival time of the bytes just read; may call FIONREAD."""
        since = self._since if read_bytes <= self.pending else turn_began
        self.pending = max(self.pending - read_bytes, 0)
        if self.pending == 0:
            self.pending = waiting_bytes(transport)
            self._since = time.monotonic()
        return since


def waiting_bytes(transport: asyncio.Transport) -> int:
    """Number of unread bytes in the socket's receive buffer; 0 with TLS, encrypted bytes."""
    socket = transport.get_extra_info("socket")
    is_encrypted = transport.get_extra_info("sslcontext") is not None
    if socket is None or is_encrypted or transport.is_closing():
        return 0
    count = array("i", [0])
    fcntl.ioctl(socket.fileno(), termios.FIONREAD, count)
    return count[0]
