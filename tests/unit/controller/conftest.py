"""A single controller on free ports, and brokers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.config import ControllerConfig
from core_broker.controller.server import Controller
from tests.support.controllers import (
    ControllerClient,
    ScriptedBroker,
    controller_configs,
    leader_of,
)


@pytest.fixture
def config(tmp_path: Path) -> ControllerConfig:
    return controller_configs(tmp_path, 1)[0]


@pytest.fixture
async def controller(config: ControllerConfig) -> AsyncIterator[Controller]:
    started = Controller(config)
    try:
        await started.start()
        await leader_of([started])
        yield started
    finally:
        await started.stop()


@pytest.fixture
async def client(controller: Controller) -> AsyncIterator[ControllerClient]:
    client = ControllerClient(controller.peers.own.address)
    yield client
    await client.close()


@pytest.fixture
async def brokers(client: ControllerClient) -> list[ScriptedBroker]:
    """Two brokers of a set; the first is the master, both are in sync and send no heartbeats."""
    both = [ScriptedBroker(client, "broker-a", f"127.0.0.1:1091{n}") for n in (1, 2)]
    for broker in both:
        await broker.join()
        await broker.beat()
    assert (await both[0].elect()).code == 0
    assert (await both[0].alter(1, 2)).code == 0
    return both
