"""Fixtures: a small store with every kind of file, stopped in order."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from core_broker.message.topics import SCHEDULE_TOPIC
from core_broker.mqstore.folder import StoreFolder
from core_broker.mqstore.report import Report
from core_broker.mqstore.sizes import Sizes, find_sizes, read_settings
from core_broker.mqstore.verifying import verify
from tests.support.stores import Bench, message

#: Index sizes of tests/support/stores.py, which differ from RocketMQ's items per slot.
INDEX_SETTINGS: dict[str, str | None] = {"maxHashSlotNum": "64", "maxIndexNum": "50"}


def fill(root: Path, messages: int = 40) -> None:
    """Write messages of several queues: with and without keys, delayed messages, long messages."""
    bench = Bench(root).open()
    bench.put_many(messages)
    bench.put_many(messages // 4, topic="Other", queue_id=3, body=b"x" * 900)
    for level in ("1", "5"):
        properties = {"DELAY": level, "REAL_TOPIC": "TopicTest", "REAL_QID": "0"}
        queue_id = int(level) - 1
        bench.put(message(topic=SCHEDULE_TOPIC, queue_id=queue_id, properties=properties))
    bench.put(message(topic="Plain", properties={}))
    bench.store.close()


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A filled store; tests must not change the files."""
    root = tmp_path_factory.mktemp("filled") / "store"
    fill(root)
    return root


@pytest.fixture
def root(filled: Path, tmp_path: Path) -> Path:
    """A copy of the filled store."""
    copy = tmp_path / "store"
    shutil.copytree(filled, copy)
    return copy


def sizes_of(root: Path) -> Sizes:
    """Return the sizes of the filled store."""
    return find_sizes(StoreFolder(root), read_settings(None, INDEX_SETTINGS))


@pytest.fixture
def check(root: Path) -> Callable[[], Report]:
    """Verify the copy."""
    return lambda: verify(StoreFolder(root), sizes_of(root))
