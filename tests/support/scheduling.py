"""Distribution of tests over pytest-xdist workers, and the order of tests.

Some folders start heavy processes: Spark's JVM, foreign clients with send time-outs of seconds, a
whole Gantry with a browser. Each group below runs sequentially in one worker. The groups run first,
so that no group is still running after all other tests. All other tests are grouped by file; the
files with the longest tests come first, so that all workers end at about the same time.

Custom code, because xdist 3.8's `loadgroup` has no effect under pytest 9.2: `loadgroup` renames
`Item._nodeid`, and pytest 9.2 does not read `Item._nodeid`.
"""

from typing import Any

import pytest

#: Tests that share the running clients and clusters of their folder.
CLIENTS = (
    "tests/compat/test_acceptance.py",
    "tests/compat/test_consuming.py",
    "tests/compat/test_refusals.py",
    "tests/compat/test_retries.py",
    "tests/compat/test_secured.py",
    "tests/compat/test_traces.py",
    "tests/compat/test_transactions.py",
)
#: Beginnings of names; the first group that fits counts.
SERIAL_GROUPS = (
    CLIENTS,
    ("tests/browser/",),
    ("tests/up/",),
    ("tests/compat/",),
    ("tests/spark/",),
)
#: Files with tests of ten seconds and more, behind the groups.
LONG = (
    "tests/unit/kernel/test_absent.py",
    "tests/crash/",
    "tests/client/",
    "tests/api/test_schemathesis.py",
    "tests/api/test_bundles.py",
    "tests/unit/launcher/",
)
ORDER = (*(name for group in SERIAL_GROUPS for name in group), *LONG)


def scope_of(nodeid: str) -> str:
    """The xdist scope of a test: a group, or the file of the test."""
    for number, beginnings in enumerate(SERIAL_GROUPS):
        if nodeid.startswith(beginnings):
            return f"group {number}"
    return nodeid.partition("::")[0]


def sort_key(nodeid: str) -> int:
    """The sort key of a test: the groups, the long files, all other files."""
    for position, beginning in enumerate(ORDER):
        if nodeid.startswith(beginning):
            return position
    return len(ORDER)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort tests by folder after pytest-randomly; the random order stays within each folder."""
    items.sort(key=lambda item: sort_key(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    config.option.loadscopereorder = False  # reordering would start files with many tests first
    return GroupScheduling(config, log)
