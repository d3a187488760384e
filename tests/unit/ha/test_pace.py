"""Rate and budget of a replication connection in windows of one second."""

from core_broker.ha.pace import Pace


def test_the_rate_is_that_of_the_last_complete_second() -> None:
    pace = Pace()
    pace.sent(500, 10_000)
    pace.sent(300, 10_999)
    assert pace.last_second_bytes(10_999) == 0
    assert pace.last_second_bytes(11_000) == 800
    assert pace.last_second_bytes(12_000) == 0


def test_the_budget_is_renewed_each_second() -> None:
    pace = Pace()
    assert pace.budget(1_000, 10_000) == 1_000
    pace.sent(900, 10_500)
    assert pace.budget(1_000, 10_999) == 100
    pace.sent(900, 10_999)
    assert pace.budget(1_000, 10_999) == 0
    assert pace.budget(1_000, 11_000) == 1_000
