"""The connections of a broker whose usual sends are taken without a command (express_sends.py)."""

import asyncio
import time
from collections.abc import Iterable

from core_broker.fastpath.python_sends import BEGINNINGS, PythonSends
from core_broker.message.hosts import packed_address
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Endpoint
from core_broker.remoting.frame_layout import (
    FRAME_HEAD_BYTES,
    HEADER_BYTES_MAX,
    LENGTH_BYTES,
    unpack_frame_head,
)


class PythonConnection(Connection):
    """A connection whose reads are looked through for usual sends first."""

    def __init__(self, endpoint: Endpoint, sends: PythonSends) -> None:
        super().__init__(endpoint)
        self._sends = sends
        self._frame_bytes_max = endpoint.limits.frame_bytes_max
        self._in_flight_max = endpoint.limits.in_flight_max
        self._write_high_water_bytes = endpoint.limits.write_high_water_bytes
        #: The peer's address as a record holds it; empty for IPv6.
        self.peer_record = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        super().connection_made(transport)
        if self.peer_host and ":" not in self.peer_host:
            address = packed_address(self.peer_host)
            self.peer_record = address + self.peer_port.to_bytes(4, "big")

    def _take(self, data: memoryview) -> None:
        if self._unfinished:
            if begun := self._splitter.release():
                data = memoryview(begun + data)
            elif self._splitter.pending_bytes:
                super()._take(data)
                return
        if taken := self._take_sends(data):
            self._looks = 0
            if taken == len(data) and not self._unfinished:
                return
            data = data[taken:]
        super()._take(data)

    def _run(self, commands: Iterable[RemotingCommand]) -> None:
        self._sends.look_again()
        super()._run(commands)

    def _take_sends(self, view: memoryview) -> int:
        """Take sends from the beginning of a read, up to the first that is not usual.

        Returns how many bytes they had.
        """
        data = bytes(view)
        if (
            not data.startswith(BEGINNINGS, FRAME_HEAD_BYTES)
            or self._stalled
            or not self.peer_record
        ):
            return 0
        sends = self._sends
        room = self._write_high_water_bytes - self._out_bytes
        count_max = self._in_flight_max - self._held
        if count_max <= 0 or not sends.is_open((time.monotonic() - self.arrived) * 1000):
            return 0
        answers: list[bytes] = []
        start, end = 0, len(data)
        try:
            while end - start >= FRAME_HEAD_BYTES:
                length, word = unpack_frame_head(data, start)
                body_at = start + FRAME_HEAD_BYTES + word
                stop = start + LENGTH_BYTES + length
                if word > HEADER_BYTES_MAX or length > self._frame_bytes_max:
                    break
                if not body_at <= stop <= end:
                    break
                answer = sends.take(
                    self.peer_record, data[start + FRAME_HEAD_BYTES : body_at], data[body_at:stop]
                )
                if answer is None:
                    break
                answers.append(answer)
                start = stop
                room -= len(answer)
                if room <= 0 or len(answers) >= count_max:
                    break
        finally:
            if answers:
                self._deliver(answers)
        return start

    def _deliver(self, answers: list[bytes]) -> None:
        """Send answers when the turn ends, or when the disk has what was stored."""
        frames = answers[0] if len(answers) == 1 else b"".join(answers)
        if self._sends.waits_for_disk:
            self._sends.hold_back(self, frames, len(answers))
            self._held += len(answers)
            return
        self._out.append(frames)
        self._out_bytes += len(frames)
        if self._out_bytes >= self._write_high_water_bytes:
            self._grow_out(0)
        elif not self._is_dirty:
            self._is_dirty = True
            self._endpoint.mark_dirty(self)
