"""The demo's receiver of alarms: a webhook on the loopback interface that shows each notice.

Only `manage.py demo` opens the port. A POST is a notice of the console as JSON: its title goes to
the terminal and to the page of the address, which lists the last notices.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

LOOPBACK: Final = "127.0.0.1"
PATH: Final = "/notices"
#: Maximum number of notices on the page.
NOTICES_MAX: Final = 50
#: Maximum size of the head and of the body of a request, bytes, and of a shown title, characters.
HEAD_BYTES_MAX: Final = 16 * 1024
BODY_BYTES_MAX: Final = 256 * 1024
TITLE_CHARS_MAX: Final = 300
#: Time for the request of a connection, seconds.
REQUEST_WAIT_S: Final = 5.0
NONE_YET: Final = "No notice yet."


class DemoReceiver:
    """A listener from `start` to `close`; `say` prints the line of a notice."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._server: asyncio.Server | None = None
        self._titles: deque[str] = deque(maxlen=NOTICES_MAX)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._converse, LOOPBACK, 0, limit=HEAD_BYTES_MAX)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    @property
    def url(self) -> str:
        assert self._server is not None, "start() comes first"
        return f"http://{LOOPBACK}:{self._server.sockets[0].getsockname()[1]}{PATH}"

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_WAIT_S):
                status, text = await self._answer(reader)
                body = text.encode()
                head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
                head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        except (TimeoutError, OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            pass  # no complete request in time
        finally:
            with suppress(OSError):
                writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[str, str]:
        """Read a request; return status and text of the answer."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _version = head[0].split(" ")
        if path != PATH:
            return "404 Not Found", ""
        if method == "GET":
            return "200 OK", "\n".join(self._titles) or NONE_YET
        if method != "POST":
            return "405 Method Not Allowed", ""
        size = _length(head[1:])
        if not 0 <= size <= BODY_BYTES_MAX:
            return "413 Content Too Large", ""
        return self._accept(await reader.readexactly(size))

    def _accept(self, body: bytes) -> tuple[str, str]:
        try:
            title = json.loads(body)["title"]
        except (ValueError, LookupError, TypeError):
            title = None
        if not isinstance(title, str):
            return "400 Bad Request", ""
        # A title has names of topics and groups: no control sequence reaches the terminal.
        shown = "".join(each if each.isprintable() else "?" for each in title[:TITLE_CHARS_MAX])
        self._titles.appendleft(shown)
        self._say(f"demo receiver: {shown}")
        return "200 OK", "ok"


def _length(lines: list[str]) -> int:
    """Return the value of Content-Length; -1 without a number."""
    for line in lines:
        name, _colon, value = line.partition(":")
        if name.lower() == "content-length" and value.strip().isdecimal():
            return int(value)
    return -1
