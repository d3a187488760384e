"""A name server and a broker in this process, reached over real sockets."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from core_broker.broker import Broker
from core_broker.config import NamesrvConfig
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import Header
from namesrv.server import NameServer
from tests.support.broker_requests import pull_header, send_header
from tests.support.stores import store_config

MakeBroker = Callable[..., Awaitable[Broker]]


def broker_config(root: Path, **changes: Any) -> Any:
    """Settings of a small broker on free ports of the loopback."""
    settings: dict[str, Any] = {
        "broker_name": "broker-a",
        "broker_ip1": "127.0.0.1",
        "bind_address": "127.0.0.1",
        "listen_port": 0,
        "http_port": -1,
        "mapped_file_size_commit_log": 1024 * 1024,
        "message_delay_level": "1s 1s 1s 1s 1s",
    }
    return store_config(root, **settings | changes)


class WireClient:
    """A client of one broker or name server."""

    def __init__(self, addr: str) -> None:
        self.addr = addr
        self.received: list[RemotingCommand] = []
        self._client = RemotingClient(name="test", dispatch=self._on_request)

    def _on_request(self, connection: object, command: RemotingCommand) -> None:
        self.received.append(command)

    async def request(
        self, code: int, header: Header | dict[str, str] | None = None, body: bytes = b""
    ) -> RemotingCommand:
        """Send a request and return the response."""
        command = RemotingCommand.request(code, header, body)
        return await self._client.invoke(self.addr, command, 10_000)

    async def send(
        self, topic: str, body: bytes = b"x", properties: str = "", **fields: Any
    ) -> RemotingCommand:
        """Send one message."""
        return await self.request(310, send_header(topic, properties, **fields), body)

    async def pull(self, topic: str, offset: int = 0, **fields: Any) -> RemotingCommand:
        """Pull, with long polling for new messages."""
        return await self.request(11, pull_header(topic, offset, **{"sys_flag": 6, **fields}))

    async def oneway(self, code: int, header: Header, body: bytes = b"") -> None:
        """Send a one-way request."""
        await self._client.oneway(self.addr, RemotingCommand.request(code, header, body))

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()


@pytest_asyncio.fixture
async def namesrv(tmp_path: Path) -> AsyncIterator[NameServer]:
    """A running name server."""
    server = NameServer(namesrv_config(tmp_path))
    await server.start()
    yield server
    await server.stop()


def namesrv_config(folder: Path, port: int = 0) -> NamesrvConfig:
    """Settings of a name server with its files in the folder."""
    return NamesrvConfig(
        listen_port=port,
        http_port=-1,
        bind_address="127.0.0.1",
        kv_config_path=str(folder / "kvConfig.json"),
        config_store_path=str(folder / "namesrv.properties"),
    )


@pytest_asyncio.fixture
async def start_broker(tmp_path: Path) -> AsyncIterator[MakeBroker]:
    """Return a function that starts a broker on the store `tmp_path/store`."""
    running: list[Broker] = []

    async def start(settings_file: Path | None = None, **settings: Any) -> Broker:
        broker = Broker(broker_config(tmp_path / "store", **settings), settings_file)
        running.append(broker)
        await broker.start()
        return broker

    yield start
    for broker in running:
        await broker.stop()


@pytest_asyncio.fixture
async def connect() -> AsyncIterator[Callable[[str], WireClient]]:
    """Return a function that creates a client of an address."""
    clients: list[WireClient] = []

    def make(addr: str) -> WireClient:
        clients.append(WireClient(addr))
        return clients[-1]

    yield make
    for client in clients:
        await client.close()


@pytest.fixture
def namesrv_addr(namesrv: NameServer) -> str:
    """Address of the name server."""
    return f"127.0.0.1:{namesrv.port}"
