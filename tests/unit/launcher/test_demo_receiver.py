"""The demo's receiver of alarms: prints and lists titles, and survives every request."""

import asyncio
import json
from urllib.parse import urlsplit

import pytest

from console.launcher.demo_receiver import (
    BODY_BYTES_MAX,
    HEAD_BYTES_MAX,
    NONE_YET,
    NOTICES_MAX,
    TITLE_CHARS_MAX,
    DemoReceiver,
)


class World:
    """A receiver, and the printed lines."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.receiver = DemoReceiver(self.said.append)

    async def send(self, request: bytes) -> str:
        parts = urlsplit(self.receiver.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        try:
            writer.write(request)
            writer.write_eof()
            return (await reader.read()).decode()
        except ConnectionError:
            return ""
        finally:
            writer.close()

    async def post(self, body: bytes, path: str = "/notices") -> str:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        return await self.send(head.encode() + body)

    async def page(self) -> str:
        answer = await self.send(b"GET /notices HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer.startswith("HTTP/1.1 200 OK\r\n")
        return answer.partition("\r\n\r\n")[2]


async def test_notices_are_printed_and_listed_newest_first() -> None:
    world = World()
    await world.receiver.start()
    try:
        assert await world.page() == NONE_YET
        for title in ("[warning] one", "[已恢复] 二"):
            body = json.dumps({"title": title, "alarms": []}).encode()
            assert (await world.post(body)).startswith("HTTP/1.1 200 OK\r\n")
        assert world.said == ["demo receiver: [warning] one", "demo receiver: [已恢复] 二"]
        assert await world.page() == "[已恢复] 二\n[warning] one"
        for number in range(NOTICES_MAX):
            await world.post(json.dumps({"title": f"n{number}"}).encode())
        assert (await world.page()).splitlines()[-1] == "n0", "the list is bounded"
    finally:
        world.receiver.close()


async def test_no_control_sequence_reaches_the_terminal() -> None:
    world = World()
    await world.receiver.start()
    try:
        await world.post(json.dumps({"title": "\x1b[2Jgone\r\n" + "x" * 999}).encode())
        (line,) = world.said
        assert line.startswith("demo receiver: ?[2Jgone??xxx")
        assert len(line) == len("demo receiver: ") + TITLE_CHARS_MAX
    finally:
        world.receiver.close()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /other HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "404"),
        (b"PUT /notices HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "405"),
        (b"POST /notices HTTP/1.1\r\n\r\n", "413"),
        (b"POST /notices HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "413"),
        (f"POST /notices HTTP/1.1\r\nContent-Length: {BODY_BYTES_MAX + 1}\r\n\r\n".encode(), "413"),
        (b"POST /notices HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "400"),
        (b"POST /notices HTTP/1.1\r\nContent-Length: 2\r\n\r\n[]", "400"),
        (b"POST /notices HTTP/1.1\r\nContent-Length: 3\r\n\r\n\xff\xfe\xfd", "400"),
        (b'POST /notices HTTP/1.1\r\nContent-Length: 11\r\n\r\n{"title":1}', "400"),
        (b"POST /notices HTTP/1.1\r\nContent-Length: 9\r\n\r\n{}", ""),
        (b"nonsense\r\n\r\n", ""),
        (b"", ""),
        (b"x" * 4 * HEAD_BYTES_MAX, ""),
    ],
)
async def test_other_requests_are_refused(request_bytes: bytes, status: str) -> None:
    world = World()
    await world.receiver.start()
    try:
        answer = await world.send(request_bytes)
        assert answer.removeprefix("HTTP/1.1 ")[:3] == status
        assert world.said == []
        assert await world.page() == NONE_YET, "the receiver still answers"
    finally:
        world.receiver.close()
