"""Subscriptions of groups: filters over time, and the time that committed offsets have passed."""

from trace.subscriptions import (
    PERIODS_MAX,
    Filter,
    Found,
    QueueOffsets,
    Subscription,
    consumed_until_ms,
    filter_of,
    merged,
)

NOW_MS = 1_000_000
PAID = filter_of("TAG", "paid")


def found(
    filter_: Filter | None = PAID, until_ms: int | None = 500, group: str = "billing"
) -> Found:
    return Found("orders", group, filter_, until_ms)


def told(*answers: Found | None) -> list[Subscription]:
    """The rows after one answer per second; None is a second without an answer."""
    rows: list[Subscription] = []
    for second, answer in enumerate(answers):
        rows = merged(rows, [answer] if answer else [], NOW_MS + second * 1000, oldest_ms=0)
    return rows


def test_filters_of_consumers() -> None:
    assert filter_of("TAG", " paid ||shipped|| ").accepted_tags == ["paid", "shipped"]
    for everything in ("*", "", " ", "paid || *", "||"):
        assert filter_of("TAG", everything).accepted_tags is None
    assert filter_of("SQL92", "a > 1 || b") == Filter("SQL92", "a > 1 || b", None)


def test_a_group_has_passed_what_every_queue_has_passed() -> None:
    done, behind = QueueOffsets(7, 7, 100), QueueOffsets(9, 3, 400)
    assert consumed_until_ms([done, QueueOffsets(0, 0, 0)], NOW_MS) == NOW_MS
    assert consumed_until_ms([done, behind, QueueOffsets(9, 8, 300)], NOW_MS) == 300
    assert consumed_until_ms([], NOW_MS) is None
    for unknown in (QueueOffsets(9, -1, 0), QueueOffsets(9, 0, 0), QueueOffsets(9, 3, 0)):
        assert consumed_until_ms([done, unknown], NOW_MS) is None


def test_a_new_filter_begins_a_period() -> None:
    everything = filter_of("TAG", "*")
    first, second = told(found(), found(), found(everything, 900))
    assert (first.since_ms, first.until_ms, first.accepted_tags) == (0, NOW_MS + 2000, ["paid"])
    assert (second.since_ms, second.until_ms, second.accepted_tags) == (NOW_MS + 2000, None, None)
    assert {row.consumed_until_ms for row in (first, second)} == {900}


def test_the_last_answer_stays_while_consumers_or_brokers_are_gone() -> None:
    [row] = told(found(), found(None, None), None)
    assert (row.accepted_tags, row.consumed_until_ms) == (["paid"], 500)
    assert row.asked_ms == NOW_MS + 1000
    [reset] = told(found(), found(None, 200))
    assert reset.consumed_until_ms == 200, "an offset may go back"
    [offline] = told(found(None, None))
    assert (offline.filter, offline.consumed_until_ms) == (Filter(), None)


def test_rows_are_bounded() -> None:
    rows = told(*(found(filter_of("TAG", f"t{number}")) for number in range(3 * PERIODS_MAX)))
    assert len(rows) == PERIODS_MAX
    assert (rows[0].since_ms, rows[-1].until_ms) == (0, None)
    later = NOW_MS * 10
    kept = merged(rows, [found(group="mail")], later, oldest_ms=later - 1)
    assert [row.consumer_group for row in kept] == ["mail"]
