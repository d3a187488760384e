"""A name server on free ports, and a client of the name server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.config import NamesrvConfig
from namesrv.server import NameServer
from tests.unit.namesrv.namesrv_client import NamesrvClient


@pytest.fixture
def config(tmp_path: Path) -> NamesrvConfig:
    return NamesrvConfig(
        bind_address="127.0.0.1",
        listen_port=0,
        http_port=0,
        kv_config_path=str(tmp_path / "namesrv" / "kvConfig.json"),
        config_store_path=str(tmp_path / "namesrv.properties"),
    )


@pytest.fixture
async def server(config: NamesrvConfig) -> AsyncIterator[NameServer]:
    started = NameServer(config)
    await started.start()
    yield started
    await started.stop()


@pytest.fixture
async def client(server: NameServer) -> AsyncIterator[NamesrvClient]:
    client = NamesrvClient(f"127.0.0.1:{server.port}")
    yield client
    await client.remoting.close()
