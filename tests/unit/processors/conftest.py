"""A broker for every test of a processor."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.broker_harness import BrokerHarness

MakeBroker = Callable[..., BrokerHarness]


@pytest_asyncio.fixture
async def make_broker(tmp_path: Path) -> AsyncIterator[MakeBroker]:
    """Return a function that creates a broker with the given settings."""
    brokers: list[BrokerHarness] = []

    def make(**settings: object) -> BrokerHarness:
        folder = tmp_path / str(len(brokers))
        folder.mkdir()
        brokers.append(BrokerHarness(folder, **settings))
        return brokers[-1]

    yield make
    for broker in brokers:
        broker.close()


@pytest_asyncio.fixture
async def broker(make_broker: MakeBroker) -> BrokerHarness:
    """A broker with the default settings."""
    return make_broker()


@pytest.fixture
def topic(broker: BrokerHarness) -> str:
    """A topic with four queues."""
    return broker.topic("T")
