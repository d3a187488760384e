"""Rates and health."""

import pytest

from core_broker.store.health import Health
from core_broker.store.stats import Counters, RateMeter


def test_rates_are_over_ten_seconds_one_and_ten_minutes() -> None:
    counters = Counters()
    meter = RateMeter(counters)
    assert meter.rates()[0] == (0.0, 0.0, 0.0)
    for second in range(701):
        counters.put_times += 10 if second <= 600 else 20
        counters.get_found += 1
        counters.get_messages += 32
        meter.tick(second * 1000)
        meter.tick(second * 1000 + 400)  # too early for the next sample
    put, found, missed, messages = meter.rates()
    assert put == (20.0, 20.0, pytest.approx(10 + 10 / 6))
    assert found == (1.0, 1.0, 1.0)
    assert missed == (0.0, 0.0, 0.0)
    assert messages == (32.0, 32.0, 32.0)


def test_health_names_the_gravest_reason() -> None:
    health = Health()
    assert health.reason == "the store is not running"
    health.set_open(True)
    assert health.reason is None
    health.set_disk_refusal("disk")
    health.set_lag("lag")
    assert health.reason == "consume queues or index cannot be written: lag"
    health.set_lag(None)
    assert health.reason == "disk"
    health.set_disk_refusal(None)
    assert health.reason is None
    health.fail("first")
    health.fail("second")
    assert (health.has_failed, health.reason) == (True, "first")
