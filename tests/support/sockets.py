"""A WebSocket client for an ASGI application, without a server.

Channels has a client too, but the testing package of Channels needs Daphne.
"""

import asyncio
import json
from typing import Any, Self

from asgiref.testing import ApplicationCommunicator

WAIT_S = 60.0


class Socket:
    """Connects on entry and disconnects on exit; all waits have a deadline."""

    def __init__(self, application: Any, path: str, headers: list[tuple[bytes, bytes]]) -> None:
        path, _, query = path.partition("?")
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": query.encode(),
            "headers": headers,
            "subprotocols": [],
        }
        self._app = ApplicationCommunicator(application, scope)
        self.accepted = False
        self.close_code: int | None = None

    async def __aenter__(self) -> Self:
        await self._app.send_input({"type": "websocket.connect"})
        output = await self._app.receive_output(WAIT_S)
        self.accepted = output["type"] == "websocket.accept"
        if not self.accepted:
            self.close_code = output.get("code")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._app.send_input({"type": "websocket.disconnect", "code": 1000})
        await self._app.wait(WAIT_S)

    async def say(self, text: str | None = None, data: bytes | None = None) -> None:
        await self._app.send_input({"type": "websocket.receive", "text": text, "bytes": data})

    async def hear(self) -> dict[str, Any] | None:
        """The next message; None after a close by the server, with the reason in `close_code`."""
        output = await self._app.receive_output(WAIT_S)
        if output["type"] == "websocket.close":
            self.close_code = output["code"]
            return None
        message: dict[str, Any] = json.loads(output["text"])
        return message

    async def hear_until(self, matches: Any) -> dict[str, Any]:
        """The next matching message; fails when the server closes before."""
        async with asyncio.timeout(WAIT_S):
            while True:
                message = await self.hear()
                assert message is not None, f"closed with {self.close_code}"
                if matches(message):
                    return message

    async def closed(self) -> int | None:
        """Wait for the close by the server; returns the close code."""
        async with asyncio.timeout(WAIT_S):
            while self.close_code is None and await self.hear() is not None:
                pass
        return self.close_code
