"""A slave of a master's replication port that does what a test says."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from core_broker.ha.frames import PacketSplitter, encode_report

READ_BYTES = 64 * 1024
#: Generous bound for a busy machine, seconds.
WAIT_S = 60.0


class ScriptedSlave:
    """Keeps the received bytes; acknowledges only when told, or always with `acknowledges`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._splitter = PacketSplitter()
        #: Offset of the first byte of `log`, None before the first packet with bytes.
        self.start: int | None = None
        self.log = bytearray()
        #: Sizes of the packets with bytes, and offsets of the heartbeats.
        self.sizes: list[int] = []
        self.heartbeats: list[int] = []
        self.acknowledges = False
        self.is_closed = False

    @property
    def end(self) -> int:
        """End of the received log."""
        return (self.start or 0) + len(self.log)

    def report(self, offset: int) -> None:
        """Send a report."""
        self._writer.write(encode_report(offset))

    def send(self, data: bytes) -> None:
        """Send any bytes."""
        self._writer.write(data)

    async def until(self, is_reached: Callable[[], bool]) -> None:
        """Read packets until a condition holds; fails when the master closes first."""
        async with asyncio.timeout(WAIT_S):
            while not is_reached():
                assert await self._receive(), "the master closed the connection"

    async def closed(self) -> None:
        """Read until the master closes the connection."""
        async with asyncio.timeout(WAIT_S):
            while await self._receive():
                pass

    async def _receive(self) -> bool:
        try:
            data = await self._reader.read(READ_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            self.is_closed = True
            return False
        for offset, body in self._splitter.feed(data):
            if not body:
                self.heartbeats.append(offset)
                continue
            if self.start is None:
                self.start = offset
            assert offset == self.end, "a gap between two packets"
            self.log += body
            self.sizes.append(len(body))
        if self.acknowledges and self.start is not None:
            self.report(self.end)
        return True

    def close(self) -> None:
        """Disconnect."""
        self._writer.close()


@asynccontextmanager
async def slave_of(port: int, request: int | None = 0) -> AsyncIterator[ScriptedSlave]:
    """Connect to a replication port and request an offset; None requests nothing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    slave = ScriptedSlave(reader, writer)
    if request is not None:
        slave.report(request)
    try:
        yield slave
    finally:
        slave.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
