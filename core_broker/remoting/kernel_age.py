"""Since when bytes have waited in the system's receive buffer of a connection.

The system does not tell when a byte arrived, but it tells how many wait. A read that fills our
buffer may leave bytes behind: asked then, their number says that the next so many bytes have been
there since that moment at least. So what is known is never longer than the truth, and costs one
system call per backlog, none for a connection that we keep up with.
"""

import asyncio
import fcntl
import termios
import time
from array import array


class KernelAge:
    """What is known of one connection's backlog. Times are seconds of the monotonic clock."""

    __slots__ = ("_since", "pending")

    def __init__(self) -> None:
        #: Bytes that were there when we last asked and have not been read yet.
        self.pending = 0
        self._since = 0.0

    def since(self, transport: asyncio.Transport, read_bytes: int, turn_began: float) -> float:
        """Since when the last of the bytes just read have waited at least; asks when it must."""
        since = self._since if read_bytes <= self.pending else turn_began
        self.pending = max(self.pending - read_bytes, 0)
        if self.pending == 0:
            self.pending = waiting_bytes(transport)
            self._since = time.monotonic()
        return since


def waiting_bytes(transport: asyncio.Transport) -> int:
    """How many bytes of a connection the system holds for us."""
    socket = transport.get_extra_info("socket")
    if socket is None or transport.is_closing():
        return 0
    count = array("i", [0])
    fcntl.ioctl(socket.fileno(), termios.FIONREAD, count)
    return count[0]
