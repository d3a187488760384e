"""Fixtures for remoting tests: real loopback sockets, under both event loops."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack

import pytest
import uvloop

from core_broker.fastpath import has_kernel
from tests.unit.remoting.peers import Loopback
from tests.unit.remoting.tls_peers import Files, Tls

#: Modules whose servers are read by the event loop, and by the kernel's poller.
READ_BY_BOTH = {"test_server", "test_server_limits", "test_waiting"}


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Each asynchronous test runs once per event loop."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test of a server runs once per way to read, where the kernel is compiled."""
    is_read_by_both = metafunc.module.__name__.rpartition(".")[2] in READ_BY_BOTH
    if is_read_by_both and has_kernel() and "loopback" in metafunc.fixturenames:
        ways = {"by the loop": False, "polled": True}
        metafunc.parametrize("loopback", ways.values(), indirect=True, ids=ways.keys())


@pytest.fixture
async def loopback(request: pytest.FixtureRequest) -> AsyncIterator[Loopback]:
    """Makes servers, clients and raw peers, and closes them after the test."""
    async with AsyncExitStack() as stack:
        yield Loopback(stack, is_polled=getattr(request, "param", False))


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def tls(loopback: Loopback, files: Files) -> Tls:
    return Tls(loopback, files)
