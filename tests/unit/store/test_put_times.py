"""Put times: percentiles and distribution of the last finished minute."""

from pathlib import Path

import pytest

from core_broker.store.put_times import WINDOW_MS, PutTimes
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.stores import Bench, message


@pytest.fixture
def times() -> PutTimes:
    times = PutTimes()
    times.tick(0)
    return times


def test_percentiles_are_of_the_last_finished_minute(times: PutTimes) -> None:
    times.add(0.0045, 990)
    times.add(0.250, 10)
    times.tick(WINDOW_MS - 1)
    assert times.percentile_ms(0.99) is None
    times.tick(WINDOW_MS)
    assert times.percentile_ms(0.99) == 5.0
    assert times.percentile_ms(0.999) == pytest.approx(295.0)
    times.add(7.0, 1)
    assert times.percentile_ms(0.99) == 5.0
    times.tick(2 * WINDOW_MS)
    assert times.percentile_ms(0.99) == 8000.0
    times.tick(3 * WINDOW_MS)
    assert times.percentile_ms(0.99) is None, "a minute without messages"
    assert times.longest_s == 7.0


def test_times_below_a_millisecond_are_told_apart(times: PutTimes) -> None:
    times.add(0.000123, 100)
    times.tick(WINDOW_MS)
    assert times.percentile_ms(0.99) == pytest.approx(0.15, abs=0.001)


def test_a_time_above_the_last_bucket_is_at_least_ten_seconds(times: PutTimes) -> None:
    times.add(300.0, 1)
    times.tick(WINDOW_MS)
    assert times.percentile_ms(0.99) == 10_000.0


def test_the_distribution_has_the_classes_of_rocketmq(times: PutTimes) -> None:
    for elapsed_ms in (0.2, 0.999, 1, 9.9, 10, 49, 50, 199, 200, 999, 1000, 5000, 9999, 10_000):
        times.add(elapsed_ms / 1000, 1)
    times.tick(WINDOW_MS)
    counts = {name: count for name, count in times.distribution().items() if count}
    assert counts == {
        "<=0ms": 2,
        "0~10ms": 2,
        "10~50ms": 2,
        "50~100ms": 1,
        "100~200ms": 1,
        "200~500ms": 1,
        "500ms~1s": 1,
        "1~2s": 1,
        "5~10s": 2,
        "10s~": 1,
    }


def test_a_write_is_timed_from_its_first_put(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, clock = Bench(Path("/store"), SimulatedFiles(0)).open(), [100.0]
    monkeypatch.setattr("core_broker.store.appender.time.monotonic", lambda: clock[0])
    for number in range(3):
        bench.store.put(message(number))
        clock[0] += 1.0
    assert bench.store.write_staged() == (100.0, 103.0, 103.0, 3)
    assert bench.store.write_staged() is None
    clock[0] += 50.0
    bench.store.put(message(3))
    assert bench.store.write_staged() == (153.0, 153.0, 153.0, 1)
