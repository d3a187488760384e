"""Rates over the last minute, and failures over the last hour."""

from core_broker.client.consumer.stats import ConsumerStats, Window

NOW = 1_700_000_000_000


def test_a_window_counts_its_span_and_forgets_what_is_older() -> None:
    window = Window(60_000)
    window.add(NOW, 5, 10)
    window.add(NOW + 30_000, 7, 30)
    assert window.totals(NOW + 30_000) == (12, 40, 2)
    assert window.per_second(NOW + 30_000) == 12 / 60
    assert window.mean_ms(NOW + 30_000) == 20
    assert window.totals(NOW + 61_000) == (7, 30, 1)
    assert window.totals(NOW + 200_000) == (0, 0, 0)
    assert window.mean_ms(NOW + 200_000) == 0


def test_a_window_holds_no_more_slots_than_seconds() -> None:
    window = Window(60_000)
    for step in range(1000):
        window.add(NOW + step * 250, 1)
    assert len(window._slots) <= 61


def test_status_tells_pulls_successes_and_failures_apart() -> None:
    stats = ConsumerStats()
    stats.pulled(NOW, 6, 8)
    stats.consumed(NOW, 2, 10, success=True)
    stats.consumed(NOW, 1, 20, success=False)
    status = stats.status(NOW)
    assert (status.pull_tps, status.pull_rt) == (6 / 60, 8)
    assert (status.consume_ok_tps, status.consume_failed_tps) == (2 / 60, 1 / 60)
    assert status.consume_rt == 15
    later = stats.status(NOW + 120_000)
    assert (later.consume_failed_tps, later.consume_failed_msgs) == (0, 1)
