"""The demo's switch: kills a replica when the console asks, so that people can see a failover.

Only `manage.py demo --replicas N` opens the port, on the loopback interface, and only the console
gets the token. One line per connection:

    TOKEN kill PORT  ->  killed NAME  or  refused REASON
"""

import asyncio
import hmac
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

LOOPBACK: Final = "127.0.0.1"
LINE_BYTES_MAX: Final = 256
#: Time for the line of a connection, seconds.
LINE_WAIT_S: Final = 5.0


class DemoControl:
    """A listener from `start` to `close`; `names` are the programs of the replicas by port."""

    def __init__(self, names: Mapping[str, str], namesrv_addr: str) -> None:
        self._names = names
        self._namesrv_addr = namesrv_addr
        self._token = secrets.token_urlsafe(24)
        self._server: asyncio.Server | None = None
        #: Kills a program by name; returns False when the program does not run.
        self.kill: Callable[[str], bool] = lambda _name: False

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._converse, LOOPBACK, 0, limit=LINE_BYTES_MAX)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    @property
    def text(self) -> str:
        """Return port, token and cluster for the console: the value of GANTRY_DEMO_CONTROL."""
        assert self._server is not None, "start() comes first"
        port = self._server.sockets[0].getsockname()[1]
        return f"{port} {self._token} {self._namesrv_addr}"

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(LINE_WAIT_S):
                line = await reader.readline()
            writer.write(f"{self._answer(line)}\n".encode())
            await writer.drain()
        except (TimeoutError, OSError, ValueError):
            pass  # no line in time, or a line that is too long
        finally:
            with suppress(OSError):
                writer.close()

    def _answer(self, line: bytes) -> str:
        token, _blank, wanted = line.decode("utf-8", "replace").strip().partition(" ")
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return "refused wrong token"
        verb, _blank, port = wanted.partition(" ")
        name = self._names.get(port)
        if verb != "kill" or name is None:
            return "refused no replica of this demo"
        return f"killed {name}" if self.kill(name) else f"refused {name} does not run"
