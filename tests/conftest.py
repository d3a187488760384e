"""Fixtures for tests of every kind."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import translation
from hypothesis import settings

from tests.support.cluster import Cluster
from tests.support.site import built_site

pytest_plugins = [
    "tests.compat.summary",
    "tests.support.must_beat",
    "tests.support.scheduling",
    "tests.support.second_runs",
]

# No deadline per example, since examples are slow on a loaded machine.
settings.register_profile("house", deadline=None)
settings.load_profile("house")


@pytest.fixture(autouse=True)
def no_language_of_a_request() -> Iterator[None]:
    """End the language that a request of the test's client has activated in this thread."""
    yield
    translation.deactivate()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A name server and a broker for one test, which may kill and restart them."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with Cluster(folder) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A name server and a broker for all tests of a worker; topics differ per test."""
    with Cluster(tmp_path_factory.mktemp("shared-cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built documentation site, built once for all workers."""
    base = tmp_path_factory.getbasetemp()
    # Without workers, the parent also has the folders of other runs.
    return built_site(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)
