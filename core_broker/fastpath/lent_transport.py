"""The transport of a connection shared with the writer thread."""

import asyncio
from collections.abc import Callable
from typing import Any


class LentTransport(asyncio.Transport):
    """Forwards every call to `transport`, once the writer thread is done with the connection.

    Unsent bytes of the thread must stay in front of later bytes, and a socket must not be closed
    while the thread sends. `settle` waits for the thread.
    """

    def __init__(self, transport: asyncio.Transport, settle: Callable[[], None]) -> None:
        super().__init__()
        self._transport = transport
        self._settle = settle

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Ask the transport; extra info does not change while answers are sent."""
        return self._transport.get_extra_info(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the high and low water marks, bytes."""
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Return the unsent bytes."""
        self._settle()
        return self._transport.get_write_buffer_size()

    def is_closing(self) -> bool:
        """Return True when the transport is closing or closed."""
        self._settle()
        return self._transport.is_closing()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes behind the writer thread's bytes."""
        self._settle()
        self._transport.write(data)

    def close(self) -> None:
        """Close when everything is sent."""
        self._settle()
        self._transport.close()

    def abort(self) -> None:
        """Close now."""
        self._settle()
        self._transport.abort()

    def pause_reading(self) -> None:
        """Read no more for a while."""
        self._settle()
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._settle()
        self._transport.resume_reading()
