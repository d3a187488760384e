"""Which tests share a worker when several run at a time (pytest-xdist), and in which order.

Some folders start heavy things: Spark's JVM, foreign clients with send time-outs of seconds, a
whole Gantry with a browser before it. Each room below runs in one worker, one test after the other,
and the rooms begin first, so that no worker is left with one at the end. Of all other tests, those
of one file stay together.

Own code, because xdist 3.8's `loadgroup` has no effect under pytest 9.2: it renames `Item._nodeid`,
which that pytest no longer reads.
"""

from typing import Any

import pytest

ROOMS = (
    ("tests/spark/", "tests/compat/"),
    ("tests/browser/", "tests/up/"),
)


def room_of(nodeid: str) -> str:
    """Name the unit of work a test belongs to."""
    for number, folders in enumerate(ROOMS):
        if nodeid.startswith(folders):
            return f"room {number}"
    return nodeid.partition("::")[0]


def place_of(nodeid: str) -> int:
    """Folders of the rooms in their order, then everything else."""
    folders = [folder for room in ROOMS for folder in room]
    for place, folder in enumerate(folders):
        if nodeid.startswith(folder):
            return place
    return len(folders)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """After pytest-randomly has mixed the tests; the mixed order stays within each folder."""
    items.sort(key=lambda item: place_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class RoomScheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return room_of(nodeid)

    config.option.loadscopereorder = False  # it would start files with many tests first
    return RoomScheduling(config, log)
