"""The state of Spark on pages: a request never waits for the check."""

import threading
from threading import Event

import pytest

from console.services.jobs import spark
from console.services.jobs.spark import KEPT_S, Availability

DEADLINE_S = 60


def test_pages_show_the_last_check_and_renew_it_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [Availability(usable=False, reason="no Java"), Availability(usable=True)]
    begun, may_end = Event(), Event()

    def check() -> Availability:
        begun.set()
        assert may_end.wait(DEADLINE_S)
        return checks.pop(0)

    def finish() -> None:
        assert begun.wait(DEADLINE_S)
        running = [each for each in threading.enumerate() if each.name == "check-spark"]
        may_end.set()
        for each in running:
            each.join(DEADLINE_S)
        begun.clear()
        may_end.clear()

    monkeypatch.setattr(spark, "_ask", check)
    monkeypatch.setattr(spark, "_kept", None)
    assert spark.last_known() is None, "unknown before the first check"
    finish()
    first = spark.last_known()
    assert first == Availability(usable=False, reason="no Java")
    assert spark._kept is not None
    monkeypatch.setattr(spark, "_kept", (spark._kept[0] - KEPT_S - 1, first))
    assert spark.last_known() == first, "the old result, while the check runs"
    finish()
    assert spark.last_known() == Availability(usable=True)
