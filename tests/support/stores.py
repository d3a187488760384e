"""Stores for tests: small files, numbered messages, executors driven by the test."""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from core_broker.config import BrokerConfig
from core_broker.message.model import MessageExt, MessageInner
from core_broker.message.record import decode_record
from core_broker.store import (
    ColdRead,
    GetStatus,
    MessageStore,
    PutResult,
    PutStatus,
    QueryResult,
)
from core_broker.store.files import File, Files
from core_broker.store.io_threads import Done, Job

SEGMENT_BYTES = 16 * 1024
QUEUE_FILE_BYTES = 20 * 20
NOW_MS = 1_700_000_000_000
T = TypeVar("T")


def store_config(root: Path, **changes: Any) -> BrokerConfig:
    """Settings with small files, so that a test rolls over files of every kind."""
    settings: dict[str, Any] = {
        "store_path_root_dir": str(root),
        "mapped_file_size_commit_log": SEGMENT_BYTES,
        "mapped_file_size_consume_queue": QUEUE_FILE_BYTES,
        "max_hash_slot_num": 64,
        "max_index_num": 50,
        "disk_space_warning_level_ratio": 100,
        "disk_space_clean_forcibly_ratio": 100,
        "disk_max_used_space_ratio": 95,
    }
    return BrokerConfig(**settings | changes)


def message(
    number: int = 0,
    *,
    topic: str = "TopicTest",
    queue_id: int = 0,
    body: bytes | None = None,
    properties: dict[str, str] | None = None,
) -> MessageInner:
    """A message with its number in body, tag and keys."""
    if properties is None:
        properties = {
            "KEYS": f"order-{number} customer-{number % 7}",
            "UNIQ_KEY": f"7F00000100002A9F0000{number:012X}",
            "TAGS": f"Tag{number % 3}",
        }
    return MessageInner(
        topic,
        queue_id,
        b"message %d" % number if body is None else body,
        properties,
        born_timestamp=NOW_MS,
        born_host=("127.0.0.1", 40000),
        store_host=("127.0.0.1", 10911),
    )


class ManualExecutor:
    """An executor driven by the test; jobs of cold reads run immediately."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.jobs: deque[tuple[Job, Done]] = deque()
        self._is_manual = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Keep the jobs from now on."""
        self._is_manual = not self.name.startswith(("store-read", "store-repair"))

    def hold(self) -> None:
        """Keep all jobs from now on."""
        self._is_manual = True

    def submit(self, job: Job, done: Done) -> None:
        """Keep a job for `step`."""
        self.jobs.append((job, done))
        if not self._is_manual:
            self.run()

    def sync(self, file: File, done: Done) -> None:
        """Keep the sync as a job for `step`."""
        self.submit(file.sync, done)

    def step(self) -> bool:
        """Run the oldest job; return False without one."""
        if not self.jobs:
            return False
        job, done = self.jobs.popleft()
        error: Exception | None = None
        try:
            job()
        except OSError as raised:
            error = raised
        done(error)
        return True

    def run(self) -> None:
        """Run all jobs, including jobs submitted meanwhile."""
        while self.step():
            pass

    def close(self) -> None:
        """Run the pending jobs; later jobs run immediately."""
        self._is_manual = False
        self.run()


class StillLoop:
    """An event loop with a stopped clock."""

    def call_later(self, delay: float, callback: Callable[..., None], *args: object) -> "StillLoop":
        """Return a handle; never call back."""
        return self

    def cancel(self) -> None:
        """Cancel the handle."""


class Bench:
    """A store with a manual clock and manual executors."""

    def __init__(
        self,
        root: Path,
        files: Files | None = None,
        *,
        memory_bytes: int | None = None,
        **changes: Any,
    ) -> None:
        self.now_ms = NOW_MS
        self.executors: dict[str, ManualExecutor] = {}
        self.store = MessageStore(
            store_config(root, **changes),
            files=files,
            clock_ms=lambda: self.now_ms,
            executors=self._executor,
            memory_bytes=memory_bytes,
        )

    def _executor(self, name: str) -> ManualExecutor:
        executor = self.executors[name] = ManualExecutor(name)
        return executor

    def open(self) -> "Bench":
        """Load and start."""
        self.store.load()
        self.store.start(StillLoop())  # type: ignore[arg-type]
        return self

    def run_io(self) -> None:
        """Run all pending jobs of the executors."""
        while any(executor.step() for executor in self.executors.values()):
            pass

    def tick(self, ms: int = 1000) -> None:
        """Advance the clock, then tick."""
        self.now_ms += ms
        self.store.tick(self.now_ms)
        self.run_io()

    def put(self, *inners: MessageInner) -> list[PutResult]:
        """Put messages one by one, in one event-loop iteration."""
        results = [self.store.put(each) for each in inners]
        assert [each.status for each in results] == [PutStatus.PUT_OK] * len(results)
        self.store.write_staged()
        return results

    def put_many(self, count: int, *, first: int = 0, **changes: Any) -> list[PutResult]:
        """Put numbered messages, one per event-loop iteration."""
        return [self.put(message(number, **changes))[0] for number in range(first, first + count)]


def warmed(store: MessageStore, ask: Callable[[], T]) -> T:
    """Return the result of `ask`, repeated after each cold read."""
    while True:
        try:
            return ask()
        except ColdRead as cold:
            store.cold_reads.warm(cold, _raise)


def _raise(error: Exception | None) -> None:
    if error is not None:
        raise error


def query(
    store: MessageStore,
    key: str,
    max_count: int = 64,
    begin_ms: int = 0,
    end_ms: int = 1 << 62,
    *,
    topic: str = "TopicTest",
) -> QueryResult:
    """Query by key, outside of an event loop."""
    return asyncio.run(store.query(topic, key, max_count, begin_ms, end_ms))


def read_queue(
    store: MessageStore, topic: str = "TopicTest", queue_id: int = 0
) -> list[MessageExt]:
    """Read a whole queue as a consumer does."""
    offset, end = store.queue_range(topic, queue_id)
    found: list[MessageExt] = []
    while offset < end:
        result = warmed(store, partial(store.get, topic, queue_id, offset, 32))
        assert result.status is GetStatus.FOUND, result
        found += [decode_record(each, check_crc=True) for each in result.records]
        offset = result.next_offset
    return found


def chance(generator: random.Random, share: float) -> bool:
    """Return True with this probability."""
    return generator.random() < share
