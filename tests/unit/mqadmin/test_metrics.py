"""Metrics of brokers whose answers lack values."""

import pytest

from core_broker.mqadmin.clusters import _LOADS, _TOTALS, _load, _totals
from core_broker.mqadmin.metrics import _first, _yesterday
from core_broker.mqadmin.probes import _average, _average_text, _hello_body
from core_broker.mqadmin.statistics import day_count
from core_broker.remoting.bodies import BrokerStatsData, BrokerStatsItem

BROKER = {"clusterName": "c", "brokerName": "b", "brokerId": 0, "addr": "h:1"}


def test_missing_values_are_dashes_and_not_zeroes() -> None:
    assert _LOADS.row(BROKER | _load({})).split() == ["c", "b", "0", "h:1", *"------"]
    assert _TOTALS.row(BROKER | _totals({})).split() == ["c", "b", *"----"]


def test_values_of_a_broker() -> None:
    load = _load(
        {
            "putTps": "1.25 2 3",
            "getTransferredTps": "4.0 5 6",
            "sendThreadPoolQueueSize": "7",
            "sendThreadPoolQueueHeadWaitTimeMills": "8",
            "earliestMessageTimeStamp": "-1",
            "commitLogDiskRatio": "0.5",
            "brokerVersionDesc": "V4_9_8",
        }
    )
    assert (load["inTps"], load["outTps"]) == (1.25, 4.0)
    assert load["inLoad"].strip() == "1.25(7,8ms)"
    assert load["earliestMessageHours"] == 0.0
    totals = _totals(
        {
            "msgPutTotalYesterdayMorning": "1",
            "msgPutTotalTodayMorning": "3",
            "msgPutTotalTodayNow": "10",
        }
    )
    assert (totals["inTotalYesterday"], totals["inTotalToday"]) == (2, 7)
    assert totals["outTotalToday"] is None


@pytest.mark.parametrize("rates", [None, "", "   ", "x 1 2", "nothing"])
def test_malformed_rates_count_as_none(rates: str | None) -> None:
    assert _first(rates) == 0.0
    assert _load({"putTps": rates or ""})["inTps"] is None


def test_yesterday() -> None:
    table = {"msgPutTotalTodayMorning": "5", "msgPutTotalYesterdayMorning": "2"}
    assert _yesterday(table, "msgPutTotal") == 3
    assert _yesterday({}, "msgPutTotal") == 0


def test_the_first_send_does_not_count() -> None:
    assert _average([100, 1, 3]) == 2
    assert _average_text(_average([100])) == _average_text(_average([])) == "NaN"


@pytest.mark.parametrize(("size", "length"), [(1, 11), (11, 11), (12, 22), (128, 132)])
def test_bodies_are_whole_words(size: int, length: int) -> None:
    assert len(_hello_body(size)) == length


def test_a_young_broker_has_sums_by_hour_or_minute() -> None:
    minute, hour, day = BrokerStatsItem(sum=1), BrokerStatsItem(sum=2), BrokerStatsItem(sum=3)
    assert day_count(BrokerStatsData(stats_minute=minute, stats_hour=hour, stats_day=day)) == 3
    assert day_count(BrokerStatsData(stats_minute=minute, stats_hour=hour)) == 2
    assert day_count(BrokerStatsData(stats_minute=minute)) == 1
    assert day_count(BrokerStatsData()) == 0
