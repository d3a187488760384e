"""The wall clock jumps while messages are sent: offsets, store times and retention hold.

The tests of delays and leases cover clock jumps of their state machines.
"""

from pathlib import Path

import pytest

from core_broker.store.retention import HOUR_MS
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.stores import NOW_MS, Bench, message, read_queue

ROOT = Path("/store")
YEAR_MS = 365 * 24 * HOUR_MS
JUMPS = {"-1 h": -HOUR_MS, "+1 h": HOUR_MS, "+10 y": 10 * YEAR_MS, "stands still": 0}
EVERY_HOUR = ";".join(str(hour) for hour in range(24))


class JumpingBench(Bench):
    """A bench with a jumping wall clock and a steady monotonic clock."""

    def jump(self, by_ms: int) -> None:
        self.now_ms += by_ms


@pytest.mark.parametrize("jump", JUMPS)
def test_reliability_11_offsets_and_store_times_survive_clock_jumps(jump: str) -> None:
    files = SimulatedFiles()
    bench = JumpingBench(ROOT, files)
    bench.open()
    for number in range(60):
        if number == 30:
            bench.jump(JUMPS[jump])
        bench.put(message(number))
        if number % 20 == 19:
            now_ms = bench.now_ms
            bench.store.close()
            bench = JumpingBench(ROOT, files)
            bench.now_ms = now_ms
            bench.open()
    found = read_queue(bench.store)
    assert [each.queue_offset for each in found] == list(range(60))
    times = [each.store_timestamp for each in found]
    assert times == sorted(times), "a store time went backwards"
    bench.store.close()


def test_reliability_11_retention_does_not_believe_a_clock_that_jumps() -> None:
    """Files age by the monotonic clock; a jump of ten years deletes no file."""
    wall = [NOW_MS]
    files = SimulatedFiles(clock_ms=lambda: wall[0])
    bench = JumpingBench(ROOT, files, delete_when=EVERY_HOUR, file_reserved_time=72)
    bench.open()
    monotonic_ms = 1_000

    def pass_time(step_ms: int, times: int, jump_ms: int = 0) -> None:
        nonlocal monotonic_ms
        for _ in range(times):
            monotonic_ms += step_ms
            bench.now_ms = wall[0] = wall[0] + step_ms + jump_ms
            bench.store.tick(monotonic_ms)
            bench.run_io()

    pass_time(60_000, 2)
    bench.put_many(150, body=b"x" * 500)
    pass_time(60_000, 1, jump_ms=10 * YEAR_MS)
    pass_time(HOUR_MS, 71)
    assert bench.store.min_offset_physical == 0
    # Now three days have really passed.
    pass_time(HOUR_MS, 5)
    assert bench.store.min_offset_physical > 0
    bench.store.close()
