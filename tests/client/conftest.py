"""Fixtures for tests of the client on a real cluster: unique names per test, and short delays.

With CLIENT_TEST_NAMESRV=host:port the tests run against a running cluster, for example an Apache
RocketMQ. The cluster must have one broker, traceTopicEnable=true, messageDelayLevel=1s 1s 1s …,
transactionTimeOut=3000 and transactionCheckInterval=500.
"""

import asyncio
import itertools
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from core_broker.client import AdminClient
from core_broker.remoting.bodies import TopicConfig
from tests.client.receiving import ClusterAddrs
from tests.support.cluster import Cluster

_numbers = itertools.count(1)
#: A random part of all names: an external cluster still has the names of earlier runs.
_run = secrets.token_hex(3)

#: Eighteen short delay levels: a message becomes a dead letter in seconds, not hours.
SHORT_DELAYS = " ".join(["1s"] * 18)


class OutsideCluster(NamedTuple):
    """An external, already running cluster."""

    namesrv_addr: str
    broker_addr: str


@pytest.fixture(scope="session")
def quick_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterAddrs]:
    """A cluster with retry delays of one second and a trace topic."""
    outside = os.environ.get("CLIENT_TEST_NAMESRV")
    if outside:
        yield OutsideCluster(outside, asyncio.run(_only_broker(outside)))
        return
    folder: Path = tmp_path_factory.mktemp("quick-cluster")
    settings = {
        "message_delay_level": SHORT_DELAYS,
        "trace_topic_enable": True,
        # A check before the producer's answer is no fault, but no test expects it.
        "transaction_time_out": 3_000,
        "transaction_check_interval": 500,
    }
    with Cluster(folder, **settings) as cluster:
        yield cluster


async def _only_broker(namesrv_addr: str) -> str:
    async with AdminClient(namesrv_addr) as admin:
        (broker,) = (await admin.cluster_info()).broker_addr_table.values()
    assert broker.master_addr is not None
    return broker.master_addr


@pytest.fixture
async def admin(quick_cluster: ClusterAddrs) -> AsyncIterator[AdminClient]:
    async with AdminClient(quick_cluster.namesrv_addr) as client:
        yield client


@pytest.fixture
def group() -> str:
    """A group name unique to the test."""
    return f"group-{_run}-{next(_numbers)}"


@pytest.fixture
def new_topic(quick_cluster: Cluster, admin: AdminClient) -> Callable[..., Awaitable[str]]:
    """Creates topics with names unique to the test."""

    async def make(queues: int = 4) -> str:
        name = f"topic-{_run}-{next(_numbers)}"
        config = TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues)
        await admin.create_topic(quick_cluster.broker_addr, config)
        return name

    return make
