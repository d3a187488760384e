"""Fixtures for tests of the client on a real cluster: names of a test's own, and short delays."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from core_broker.client import AdminClient
from core_broker.remoting.bodies import TopicConfig
from tests.support.cluster import Cluster

_numbers = itertools.count(1)

#: Eighteen levels that all come at once, so that a dead letter takes seconds and not hours.
SHORT_DELAYS = " ".join(["1s"] * 18)


@pytest.fixture(scope="session")
def quick_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that retries after one second and keeps traces."""
    folder: Path = tmp_path_factory.mktemp("quick-cluster")
    with Cluster(folder, message_delay_level=SHORT_DELAYS, trace_topic_enable=True) as cluster:
        yield cluster


@pytest.fixture
async def admin(quick_cluster: Cluster) -> AsyncIterator[AdminClient]:
    async with AdminClient(quick_cluster.namesrv_addr) as client:
        yield client


@pytest.fixture
def group() -> str:
    """A group of the test's own."""
    return f"group-{next(_numbers)}"


@pytest.fixture
def new_topic(quick_cluster: Cluster, admin: AdminClient) -> Callable[..., Awaitable[str]]:
    """Makes topics of the test's own."""

    async def make(queues: int = 4) -> str:
        name = f"topic-{next(_numbers)}"
        config = TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues)
        await admin.create_topic(quick_cluster.broker_addr, config)
        return name

    return make
