"""Fixtures for tests of every kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.cluster import Cluster

pytest_plugins = ["tests.compat.summary", "tests.support.must_beat", "tests.support.scheduling"]

# A loaded machine is no failure.
settings.register_profile("house", deadline=None)
settings.load_profile("house")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A name server and a broker of the test's own, which it may kill and restart."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with Cluster(folder) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A name server and a broker for all tests of a worker; each uses topics of its own."""
    with Cluster(tmp_path_factory.mktemp("shared-cluster")) as cluster:
        yield cluster
