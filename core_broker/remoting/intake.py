"""From the reads of one connection to commands: the read buffer, frames cut in two, the hot path.

All connections of an endpoint read into one buffer. Where there is a hot path, it sees each read
first and takes what it knows; the rest becomes commands. The short beginning of a frame at the end
of a read is kept and put before the next read, so that the hot path sees it whole; longer ones are
collected by the splitter.
"""

from collections.abc import Callable

from core_broker.errors import ProtocolError
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.frames import FrameSplitter, is_short_begin

#: Takes requests from the begin of the read buffer, which holds so many bytes; returns how many.
HotPath = Callable[[int], int]


class Intake:
    """What one connection has received. `take` follows each read into `room`."""

    __slots__ = ("_buffer", "_cut", "_hot_path", "_splitter", "has_taken")

    def __init__(self, buffer: memoryview, frame_bytes_max: int, hot_path: HotPath | None) -> None:
        self._buffer = buffer
        self._splitter = FrameSplitter(frame_bytes_max)
        self._hot_path = hot_path
        self._cut = b""
        #: The last read made a request, here or in the hot path.
        self.has_taken = False

    @property
    def fault(self) -> ProtocolError | None:
        """Why nothing more can be read."""
        return self._splitter.fault

    @property
    def oversize(self) -> bool:
        """The fault is a frame longer than the limit."""
        return self._splitter.oversize

    @property
    def pending_bytes(self) -> int:
        """Bytes of an unfinished frame."""
        return len(self._cut) or self._splitter.pending_bytes

    def room(self) -> memoryview:
        """Where the next read goes."""
        cut = self._cut
        if not cut:
            return self._buffer
        self._buffer[: len(cut)] = cut
        return self._buffer[len(cut) :]

    def is_filled_by(self, count: int) -> bool:
        """Whether a read of so many bytes used all the room, so that more may wait."""
        return len(self._cut) + count == len(self._buffer)

    def take(self, count: int) -> list[RemotingCommand]:
        """Take the `count` bytes just read; returns the commands, but for those taken already."""
        end = len(self._cut) + count
        start = 0
        splitter, hot_path = self._splitter, self._hot_path
        if hot_path is not None and not splitter.pending_bytes:
            start = hot_path(end)
            data = self._buffer[start:end]
            if start == end or is_short_begin(data):
                self._cut = bytes(data)
                self.has_taken = start > 0
                return []
        self._cut = b""
        commands = splitter.feed(self._buffer[start:end])
        self.has_taken = start > 0 or bool(commands)
        if hot_path is not None:
            self._cut = splitter.release()
        return commands
