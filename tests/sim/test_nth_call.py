"""Every disk call fails once, or is the last one before a crash: after a restart all is well.

`CALLS` sets how many calls of each kind are tried.
"""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from core_broker.errors import StoreReadOnly
from core_broker.store import PutStatus
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.history import Found, History
from tests.support.stores import Bench, message, read_queue

ROOT = Path("/store")
CALLS = int(os.environ.get("CALLS", "20"))
OPERATIONS = ("write", "sync", "allocate", "truncate", "rename", "unlink", "open", "sync_dir")
TURNS = 60
QUEUE = ("TopicTest", 0)


class Died(BaseException):
    """The process was killed; no handler catches the exception."""


class Nth:
    """A fault at the n-th call of an operation."""

    def __init__(self, operation: str, number: int, strike: Callable[[], BaseException]) -> None:
        self.has_struck = False
        self._operation = operation
        self._left = number
        self._strike = strike

    def __call__(self, operation: str, path: Path) -> None:
        if operation == self._operation and not self.has_struck:
            self._left -= 1
            if self._left == 0:
                self.has_struck = True
                raise self._strike()


def workload(files: SimulatedFiles, history: History) -> None:
    """Start, put, flush, expire, delete a topic, stop: every kind of call happens."""
    bench = Bench(ROOT, files, flush_disk_type="SYNC_FLUSH", file_reserved_time=10_000).open()
    for turn in range(TURNS):
        number = history.next_number()
        body = b"%d " % number + b"x" * 600
        history.begin(number, QUEUE, body)
        result = bench.store.put(message(number, body=body))
        if turn % 20 == 5:
            bench.store.put(message(0, topic=f"Short{turn}"))
        try:
            bench.store.write_staged()
        except StoreReadOnly:
            continue
        if result.status is PutStatus.PUT_OK:
            on_disk(bench, history, number, result.offset_logical, result.offset_end)
        bench.run_io()
        if turn % 20 == 15:
            with suppress(OSError):  # the caller is notified
                bench.store.delete_topic(f"Short{turn - 10}")
        if turn % 10 == 9:
            bench.tick(61_000)
    files.fault = None
    assert not bench.store.stats().flush_waiters, "somebody still waits for the disk"
    bench.store.close()


def on_disk(bench: Bench, history: History, number: int, offset: int, end: int) -> None:
    def flushed(is_flushed: bool) -> None:
        if is_flushed:
            history.stored(number, offset)
            history.synced(number)

    bench.store.on_flushed(end, flushed)


def check(files: SimulatedFiles, history: History) -> None:
    bench = Bench(ROOT, files).open()
    found = [
        Found(each.queue_offset, int(each.body.split()[0]), each.body)
        for each in read_queue(bench.store)
    ]
    verdict = history.check({QUEUE: found})
    assert verdict.is_clean, verdict.problems
    bench.store.close()


@pytest.mark.parametrize("code", ["EIO", "ENOSPC"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_reliability_10_fault_at_the_nth_call(operation: str, code: str) -> None:
    """The call fails; the process goes on, and later loses power or stops."""
    for number in range(1, CALLS + 1):
        files, history = SimulatedFiles(number), History()
        fault = Nth(operation, number, lambda: OSError(getattr(errno, code), "commanded fault"))
        files.fault = fault
        try:
            workload(files, history)
        except OSError:
            assert not history.acknowledged  # the store could not be opened at all
        if not fault.has_struck:
            assert number > 1
            return
        if number % 2:
            files.power_cut()
            history.power_cut()
        else:
            files.kill()
        files.fault = None
        check(files, history)


@pytest.mark.parametrize("end", ["killed", "without power"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_reliability_10_death_at_the_nth_call(operation: str, end: str) -> None:
    """The process dies right before the call, and again during the restart."""
    for number in range(1, CALLS + 1):
        files, history = SimulatedFiles(number), History()
        has_struck = False
        for attempt in (number, 1 + number % 7, 1 + number % 3):
            fault = Nth(operation, attempt, Died)
            files.fault = fault
            with suppress(Died):
                workload(files, history)
            has_struck |= attempt == number and fault.has_struck
            if end == "killed":
                files.kill()
            else:
                files.power_cut()
                history.power_cut()
            files.fault = None
        check(files, history)
        if not has_struck:
            return
