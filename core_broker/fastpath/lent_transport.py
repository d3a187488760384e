"""The transport of a connection whose socket the kernel uses, too."""

import asyncio
from typing import Any, Protocol


class KernelSide(Protocol):
    """The kernel's use of a connection's socket."""

    def settle(self) -> None:
        """Wait until the writer thread has no answers of the connection."""

    def leave_to_transport(self) -> None:
        """Let the transport send the next bytes, behind all earlier answers."""

    def pause_reading(self) -> bool:
        """Read no more for a while; False when the transport reads."""

    def resume_reading(self) -> bool:
        """Read again; False when the transport must read."""


class LentTransport(asyncio.Transport):
    """Forwards every call to `transport`, once the kernel is done with the socket.

    Unsent bytes of the writer thread must stay in front of later bytes, and a socket must not be
    closed while the thread sends. While the kernel reads, the transport's reading is paused.
    """

    def __init__(self, transport: asyncio.Transport, kernel: KernelSide) -> None:
        super().__init__()
        self._transport = transport
        self._kernel = kernel

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Ask the transport; extra info does not change while answers are sent."""
        return self._transport.get_extra_info(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the high and low water marks, bytes."""
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Return the unsent bytes."""
        self._kernel.settle()
        return self._transport.get_write_buffer_size()

    def is_closing(self) -> bool:
        """Return True when the transport is closing or closed."""
        self._kernel.settle()
        return self._transport.is_closing()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes behind the writer thread's bytes."""
        self._kernel.leave_to_transport()
        self._transport.write(data)

    def close(self) -> None:
        """Close when everything is sent."""
        self._kernel.settle()
        self._kernel.pause_reading()
        self._transport.close()

    def abort(self) -> None:
        """Close now."""
        self._kernel.settle()
        self._kernel.pause_reading()
        self._transport.abort()

    def pause_reading(self) -> None:
        """Read no more for a while."""
        self._kernel.settle()
        if not self._kernel.pause_reading():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._kernel.settle()
        if not self._kernel.resume_reading():
            self._transport.resume_reading()
