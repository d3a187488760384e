"""The frame layer of the remoting protocol: splits a byte stream into commands, without I/O.

The layout of a frame is in frame_layout.py. Compatible with RocketMQ's NettyDecoder.
"""

from core_broker.errors import ProtocolError
from core_broker.limits import FRAME_BYTES_MAX, HEADER_TEXT_BYTES_MAX
from core_broker.remoting.command import RemotingCommand, decode_parts
from core_broker.remoting.frame_faults import foreign_protocol
from core_broker.remoting.frame_layout import (
    FRAME_HEAD_BYTES,
    HEADER_BYTES_MAX,
    LENGTH_BYTES,
    SERIALIZE_TYPE_SHIFT,
    pack_frame_head,
    unpack_frame_head,
)

#: Maximum size of a frame, bytes, whose incomplete beginning is kept in the read buffer, so that
#: the next read completes the frame.
CUT_BYTES_MAX = 128 * 1024


class FrameSplitter:
    """Splits received bytes of any chunking into commands.

    `feed` returns the commands completed by the new bytes. A malformed frame ends the stream: the
    commands before the frame are still returned, `fault` describes the error, and every later
    `feed` raises `fault`. `feed` copies the bytes, so the caller may reuse the buffer.
    """

    __slots__ = ("_frame_bytes_max", "_needed", "_rest", "fault", "oversize")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._rest = bytearray()
        self._needed = FRAME_HEAD_BYTES
        self.fault: ProtocolError | None = None
        #: True when the fault is a frame longer than the limit.
        self.oversize = False

    @property
    def pending_bytes(self) -> int:
        """Bytes of the incomplete frame, buffered for the next `feed`."""
        return len(self._rest)

    def release(self) -> bytes:
        """Take the incomplete frame out, if it is short, so that another reader can complete it."""
        if self._needed > CUT_BYTES_MAX:
            return b""
        rest = bytes(self._rest)
        self._rest.clear()
        self._needed = FRAME_HEAD_BYTES
        return rest

    def feed(self, data: bytes | bytearray | memoryview) -> list[RemotingCommand]:
        """Take the next bytes of the stream and return the completed commands, in order."""
        if self.fault is not None:
            raise self.fault
        if not self._rest:
            with memoryview(data) as view:
                commands, used = self._split(view)
                self._rest += view[used:]
            return commands
        self._rest += data
        if len(self._rest) < self._needed:
            return []
        with memoryview(self._rest) as view:
            commands, used = self._split(view)
        del self._rest[:used]
        return commands

    def _split(self, view: memoryview) -> tuple[list[RemotingCommand], int]:
        """Decode every whole frame in `view`; returns the commands and their size in bytes."""
        commands: list[RemotingCommand] = []
        start, end = 0, len(view)
        try:
            while end - start >= FRAME_HEAD_BYTES:
                length, word = unpack_frame_head(view, start)
                stop = start + LENGTH_BYTES + length
                header_bytes = word & HEADER_BYTES_MAX
                header_end = start + FRAME_HEAD_BYTES + header_bytes
                if (
                    header_end > stop
                    or length > self._frame_bytes_max
                    or header_bytes > HEADER_TEXT_BYTES_MAX
                ):
                    raise self._refusal(length, word)
                if stop > end:
                    break
                header = bytes(view[start + FRAME_HEAD_BYTES : header_end])
                commands.append(
                    decode_parts(word >> SERIALIZE_TYPE_SHIFT, header, bytes(view[header_end:stop]))
                )
                start = stop
        except ProtocolError as fault:
            self.fault = fault
            return commands, end
        self._needed = stop - start if end - start >= FRAME_HEAD_BYTES else FRAME_HEAD_BYTES
        return commands, start

    def _refusal(self, length: int, word: int) -> ProtocolError:
        if length > self._frame_bytes_max:
            self.oversize = True
            if protocol := foreign_protocol(pack_frame_head(length, word)):
                return ProtocolError(
                    f"this looks like {protocol}; the port speaks RocketMQ's remoting protocol"
                )
            return ProtocolError(
                f"a frame of {length} bytes is longer than the limit of {self._frame_bytes_max}"
            )
        if (word & HEADER_BYTES_MAX) <= length - LENGTH_BYTES:
            self.oversize = True
            return ProtocolError(
                f"a header of {word & HEADER_BYTES_MAX} bytes is longer than the limit of "
                f"{HEADER_TEXT_BYTES_MAX}"
            )
        return ProtocolError(
            f"a frame of {length} bytes cannot hold a header of {word & HEADER_BYTES_MAX} bytes"
        )
