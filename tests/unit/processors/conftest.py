"""A desk for every test of a processor."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.desk import Desk

MakeDesk = Callable[..., Desk]


@pytest_asyncio.fixture
async def make_desk(tmp_path: Path) -> AsyncIterator[MakeDesk]:
    """Return a function that makes a desk with settings of its own."""
    desks: list[Desk] = []

    def make(**settings: object) -> Desk:
        folder = tmp_path / str(len(desks))
        folder.mkdir()
        desks.append(Desk(folder, **settings))
        return desks[-1]

    yield make
    for desk in desks:
        desk.close()


@pytest_asyncio.fixture
async def desk(make_desk: MakeDesk) -> Desk:
    """A desk with the default settings."""
    return make_desk()


@pytest.fixture
def topic(desk: Desk) -> str:
    """A topic with four queues."""
    return desk.topic("T")
