"""A master's replication listener whose behaviour a test scripts."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from core_broker.ha.frames import REPORT_BYTES, encode_packet_header

#: Serves one connection of a slave: its reports, and a function that writes bytes.
Script = Callable[["SlaveLink"], Awaitable[None]]


class SlaveLink:
    """The master's end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def report(self) -> int:
        """Return the next report; EOFError when the slave has closed the connection."""
        return int.from_bytes(await self._reader.readexactly(REPORT_BYTES), "big")

    async def reported(self, offset: int) -> None:
        """Wait for the report of an offset."""
        while await self.report() != offset:
            pass

    async def closed(self) -> None:
        """Wait until the slave closes the connection."""
        with suppress(EOFError, ConnectionError):
            while True:
                await self.report()

    async def send(self, data: bytes) -> None:
        """Write bytes as they are."""
        self._writer.write(data)
        await self._writer.drain()

    async def packet(self, offset: int, body: bytes = b"") -> None:
        """Write one packet, or a heartbeat."""
        await self.send(encode_packet_header(offset, len(body)) + body)


class HaMaster:
    """Runs `script` for each connection; `served` counts the connections whose script ended."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.addr = ""
        self.connections = 0
        self.failures: list[Exception] = []
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.addr = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        if kind is None:
            assert not self.failures, self.failures

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self.script(SlaveLink(reader, writer))
        except (EOFError, ConnectionError):
            pass
        except Exception as failure:  # noqa: BLE001 - the test fails at the end
            self.failures.append(failure)
        finally:
            writer.close()
