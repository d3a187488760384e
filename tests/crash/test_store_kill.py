"""kill -9 of a process that writes into a store, at random moments, also while it recovers.

`RUNS` sets how many kills; `FIRST_SEED` where the random moments begin.
"""

import os
import random
import shutil
import subprocess
import sys
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import pytest

from tests.crash.store_writer import QUEUES, SETTINGS
from tests.support.stores import Bench, read_queue

pytestmark = pytest.mark.crash

ROOT = Path(__file__).resolve().parents[2]
RUNS = int(os.environ.get("RUNS", "3"))
FIRST_SEED = int(os.environ.get("FIRST_SEED", "0"))
ACKNOWLEDGED_MAX = 3000

#: Queue id → logical offset → number of the message.
Acknowledged = dict[int, dict[int, int]]


def live_and_die(folder: Path, flush: str, life: int, generator: random.Random) -> bytes:
    """Let a process write until it is killed; returns what it printed."""
    command = [sys.executable, "-m", "tests.crash.store_writer", str(folder), flush, str(life)]
    is_killed_early = generator.random() < 0.25
    lines_wanted = 0 if is_killed_early else generator.randint(1, ACKNOWLEDGED_MAX)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            if is_killed_early:
                printed = b""
                with suppress(subprocess.TimeoutExpired):
                    process.wait(generator.uniform(0.1, 0.6))
            else:
                printed = process.stdout.readline()
                assert printed == b"ready\n", "the store did not recover"
                for _ in range(lines_wanted):
                    printed += process.stdout.readline()
        finally:
            process.kill()
        return printed + process.stdout.read()


def take_note(printed: bytes, acknowledged: Acknowledged) -> None:
    for line in printed.splitlines(keepends=True):
        if line.endswith(b"\n") and line != b"ready\n":
            queue_id, offset, number = map(int, line.split())
            assert offset not in acknowledged[queue_id], "an offset was given twice"
            acknowledged[queue_id][offset] = number


def check(folder: Path, acknowledged: Acknowledged) -> None:
    """Recover a copy of the folder, so that the next life recovers the original itself."""
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    bench = Bench(copy, **SETTINGS).open()
    for queue_id in range(QUEUES):
        found = read_queue(bench.store, queue_id=queue_id)
        assert [each.queue_offset for each in found] == list(range(len(found)))
        numbers = [int(each.properties["UNIQ_KEY"][-12:], 16) for each in found]
        assert len(set(numbers)) == len(numbers), "a message is stored twice"
        lost = {
            offset: number
            for offset, number in acknowledged[queue_id].items()
            if offset >= len(numbers) or numbers[offset] != number
        }
        assert not lost
    bench.store.close()
    shutil.rmtree(copy)


@pytest.mark.timeout(120 + 10 * RUNS)
@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
def test_nothing_acknowledged_is_lost(tmp_path: Path, flush: str) -> None:
    folder = tmp_path / "store"
    acknowledged: Acknowledged = defaultdict(dict)
    for life in range(FIRST_SEED, FIRST_SEED + RUNS):
        take_note(live_and_die(folder, flush, life, random.Random(life)), acknowledged)
        if folder.exists():
            check(folder, acknowledged)
    assert any(acknowledged.values()) or RUNS < 3
