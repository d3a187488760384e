"""Fixtures for remoting tests: real loopback sockets, under both event loops."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack

import pytest
import uvloop

from tests.unit.remoting.peers import Loopback
from tests.unit.remoting.tls_peers import Files, Tls


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Each asynchronous test runs once per event loop."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
async def loopback() -> AsyncIterator[Loopback]:
    """Makes servers, clients and raw peers, and closes them after the test."""
    async with AsyncExitStack() as stack:
        yield Loopback(stack)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def tls(loopback: Loopback, files: Files) -> Tls:
    return Tls(loopback, files)
