"""Name server addresses from a web server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from core_broker.client import Message, Producer
from core_broker.client import name_servers as module
from core_broker.client.addr_lookup import lookup_url
from core_broker.client.name_servers import parse_addrs
from core_broker.errors import ClientError, ConnectFailed
from core_broker.remoting.codes import RequestCode
from tests.support.scripted_peer import ScriptedPeer, stored


class WebServer:
    """Answers every GET with one text."""

    def __init__(self) -> None:
        self.status = "200 OK"
        self.text = ""
        self.request_lines: list[str] = []
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.request_lines.append(head.splitlines()[0])
        writer.write(f"HTTP/1.1 {self.status}\r\nConnection: close\r\n\r\n{self.text}".encode())
        await writer.drain()
        writer.close()


@pytest.fixture
async def web() -> AsyncIterator[WebServer]:
    web = WebServer()
    server = await asyncio.start_server(web.answer, "127.0.0.1", 0)
    web.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/rocketmq/nsaddr"
    async with server:
        yield web


@pytest.fixture
async def peer() -> AsyncIterator[ScriptedPeer]:
    async with ScriptedPeer() as scripted:
        scripted.serve_route(["T", "U"], {"b": scripted.addr})
        scripted.on(RequestCode.SEND_MESSAGE_V2, stored)
        yield scripted


async def test_the_list_is_asked_for_once(web: WebServer, peer: ScriptedPeer) -> None:
    web.text = f"{peer.addr}\n"
    async with Producer("PG", f"{web.url}?nofix=1") as producer:
        for topic in ("T", "U", "T"):
            await producer.send(Message(topic, b"hi"))
    assert web.request_lines == ["GET /rocketmq/nsaddr?nofix=1 HTTP/1.1"]


@pytest.mark.parametrize(
    ("status", "text"), [("404 Not Found", "no"), ("200 OK", ""), ("200 OK", "<html>" * 99)]
)
async def test_without_a_list_nothing_can_be_sent(web: WebServer, status: str, text: str) -> None:
    web.status, web.text = status, text
    async with Producer("PG", web.url) as producer:
        with pytest.raises((ConnectFailed, ClientError)):
            await producer.send(Message("T", b"hi"))


async def test_an_older_list_serves_while_the_web_server_is_away(
    web: WebServer,
    peer: ScriptedPeer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(module, "LOOKUP_INTERVAL_S", 0.0)
    web.text = peer.addr
    async with Producer("PG", web.url) as producer:
        await producer.send(Message("T", b"hi"))
        web.status = "500 Oops"
        await producer.send(Message("U", b"hi"))
    assert "was not renewed" in caplog.text


def test_a_scheme_without_a_path_names_the_server_itself() -> None:
    assert parse_addrs("http://mq.example:8080;other:9876") == ["mq.example:8080", "other:9876"]
    assert lookup_url("http://mq.example:8080") is None
    assert lookup_url("http://mq.example:8080/") is None
    assert lookup_url("host:9876") is None
    assert lookup_url("https://mq.example/nsaddr") is not None


async def test_without_an_address_the_environment_tells(
    peer: ScriptedPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", peer.addr)
    async with Producer("PG") as producer:
        assert (await producer.send(Message("T", b"hi"))).queue_offset == 7
    monkeypatch.delenv("NAMESRV_ADDR")
    with pytest.raises(ClientError, match="NAMESRV_ADDR"):
        Producer("PG")
