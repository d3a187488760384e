"""state/statistics.py: counters, and their growth per minute, hour and day."""

import pytest

from core_broker.state.statistics import (
    BROKER_PUT_NUMS,
    DLQ_PUT_NUMS,
    GROUP_GET_NUMS,
    QUEUE_PUT_SIZE,
    SAMPLE_INTERVAL_MS,
    SNDBCK_PUT_NUMS,
    TOPIC_PUT_NUMS,
    TOPIC_PUT_SIZE,
    Statistics,
)


def send(statistics: Statistics, topic: str, queue_id: int, count: int, size: int) -> None:
    puts = statistics.puts_of(topic)
    puts.count_of[queue_id] += count
    puts.bytes_of[queue_id] += size


def test_unknown_items_have_no_statistics() -> None:
    assert Statistics("C").view(TOPIC_PUT_NUMS, "T") is None


def test_a_minute_of_steady_sending() -> None:
    statistics = Statistics("C")
    for number in range(10):
        send(statistics, "T", 0, 100, 1000)
        statistics.sample(number * SAMPLE_INTERVAL_MS)
    view = statistics.view(TOPIC_PUT_NUMS, "T")
    assert view is not None
    assert (view.stats_minute.sum, view.stats_minute.tps, view.stats_minute.avgpt) == (600, 10, 1)
    size = statistics.view(TOPIC_PUT_SIZE, "T")
    assert size is not None
    assert (size.stats_minute.sum, size.stats_minute.avgpt) == (6000, 10)


def test_an_hour_and_a_day_grow_in_longer_steps() -> None:
    statistics = Statistics("C")
    for number in range(6 * 60 * 3 + 1):
        send(statistics, "T", 0, 1, 10)
        statistics.sample(number * SAMPLE_INTERVAL_MS)
    view = statistics.view(TOPIC_PUT_NUMS, "T")
    assert view is not None
    assert view.stats_minute.sum == 6
    assert view.stats_hour.sum == 360
    assert view.stats_day.sum == 1080
    assert view.stats_day.tps == pytest.approx(0.1)


def test_sums_over_queues_and_topics() -> None:
    statistics = Statistics("C")
    send(statistics, "T", 0, 1, 10)
    send(statistics, "T", 3, 2, 20)
    send(statistics, "U", 0, 4, 40)
    totals = statistics.totals()
    assert totals[TOPIC_PUT_NUMS] == {"T": 3, "U": 4}
    assert totals[QUEUE_PUT_SIZE] == {"T@0": 10, "T@3": 20, "U@0": 40}
    assert totals[BROKER_PUT_NUMS] == {"C": 7}


def test_the_total_of_the_broker_outlives_a_topic() -> None:
    statistics = Statistics("C")
    send(statistics, "T", 0, 5, 50)
    send(statistics, "U", 0, 1, 10)
    statistics.got("G", "T", 0, 5, 50, 0)
    statistics.totals()
    statistics.forget_topic("T")
    statistics.forget_topic("unknown")
    totals = statistics.totals()
    assert totals[BROKER_PUT_NUMS] == {"C": 6}
    assert totals[TOPIC_PUT_NUMS] == {"U": 1}
    assert GROUP_GET_NUMS not in totals


def test_messages_received_and_dead_lettered_by_groups() -> None:
    statistics = Statistics("C")
    statistics.sample(0)
    statistics.got("G", "T", 0, 32, 3200, 3)
    statistics.got("G", "T", 1, 8, 800, 1)
    statistics.got_from_disk("G", "T", 8)
    statistics.dead_lettered("G")
    statistics.add(SNDBCK_PUT_NUMS, "T@G")
    statistics.sample(10_000)
    totals = statistics.totals()
    assert totals[GROUP_GET_NUMS] == {"T@G": 40}
    assert totals[DLQ_PUT_NUMS] == {"G": 1}
    assert totals[SNDBCK_PUT_NUMS] == {"T@G": 1}
    assert totals["GROUP_GET_FROM_DISK_NUMS"] == {"T@G": 8}
    assert statistics.get_total == 40
    assert statistics.get_time_max_ms == 3


def test_the_rate_of_a_group_needs_two_readings() -> None:
    statistics = Statistics("C")
    assert statistics.group_get_tps("G", "T") == 0.0
    statistics.got("G", "T", 0, 10, 100, 0)
    statistics.sample(0)
    assert statistics.group_get_tps("G", "T") == 0.0
    statistics.got("G", "T", 0, 50, 500, 0)
    statistics.sample(10_000)
    assert statistics.group_get_tps("G", "T") == 5.0


def test_a_deleted_group_loses_its_counters_only() -> None:
    statistics = Statistics("C")
    statistics.got("G", "T", 0, 1, 1, 0)
    statistics.got("H", "T", 0, 1, 1, 0)
    statistics.forget_group("G")
    assert statistics.totals()[GROUP_GET_NUMS] == {"T@H": 1}


def test_no_rate_without_elapsed_time() -> None:
    statistics = Statistics("C")
    for _ in range(3):
        send(statistics, "T", 0, 1, 1)
        statistics.sample(5)
    view = statistics.view(TOPIC_PUT_NUMS, "T")
    assert view is not None
    assert view.stats_minute.tps == 0.0
