"""The console's own pulls, subtracted from the consumption that Apache brokers count."""

from console.gateway.brokers.consumption import without_own_reads
from console.gateway.engine.own_reads import OwnReads

ADDR = "h:10911"
NOW_MS = 1_800_000_000_000
TABLE = {
    "bootTimestamp": "1",
    "msgGetTotalTodayNow": "140",
    "msgGetTotalTodayMorning": "0",
    "getTransferedTps": "10.0 2.0 0.2",
}


def test_pulls_of_the_console_are_no_consumption() -> None:
    own = OwnReads()
    own.add(ADDR, 60, NOW_MS - 3_000)
    own.add(ADDR, 40, NOW_MS)
    own.add("other:1", 1_000, NOW_MS)
    table = without_own_reads(TABLE, own, ADDR, NOW_MS)
    assert table["msgGetTotalTodayNow"] == "40"
    ten_s, minute, ten_min = map(float, table["getTransferedTps"].split())
    assert (ten_s, round(minute, 3), round(ten_min, 3)) == (0.0, 0.333, 0.033)


def test_a_gantry_broker_does_not_count_them() -> None:
    own = OwnReads()
    own.add(ADDR, 60, NOW_MS)
    table = {**TABLE, "gantryUnmeasured": "dispatchMaxBuffer"}
    assert without_own_reads(table, own, ADDR, NOW_MS) is table


def test_midnight_and_a_restart_of_the_broker_end_what_is_subtracted() -> None:
    own = OwnReads()
    own.add(ADDR, 100, NOW_MS)
    without_own_reads(TABLE, own, ADDR, NOW_MS)
    midnight = {**TABLE, "msgGetTotalTodayNow": "150", "msgGetTotalTodayMorning": "140"}
    table = without_own_reads(midnight, own, ADDR, NOW_MS)
    assert (table["msgGetTotalTodayNow"], table["msgGetTotalTodayMorning"]) == ("50", "40")
    own.add(ADDR, 5, NOW_MS)
    table = without_own_reads({**midnight, "msgGetTotalTodayNow": "155"}, own, ADDR, NOW_MS)
    assert (table["msgGetTotalTodayNow"], table["msgGetTotalTodayMorning"]) == ("50", "40")
    restarted = {**TABLE, "bootTimestamp": "2", "msgGetTotalTodayNow": "7"}
    table = without_own_reads(restarted, own, ADDR, NOW_MS)
    assert table["msgGetTotalTodayNow"] == "7"


def test_counts_of_old_seconds_are_dropped() -> None:
    own = OwnReads()
    for second in range(2_000):
        own.add(ADDR, 1, NOW_MS + second * 1_000)
    assert own.rate(ADDR, 600, NOW_MS + 1_999_000) == 1.0
    assert own.since(ADDR, "start", "1") == 2_000
