"""Messages that groups never consumed: untraced messages, judged by subscriptions."""

from pathlib import Path
from typing import Any

import pytest

from console.services.analytics import queries
from console.services.analytics.aggregates import Scope
from console.services.analytics.duck import reading
from console.services.analytics.ranges import on_grid
from console.services.analytics.unconsumed import missed, never_consumed
from tests.unit.analytics.lakes import BEGIN_MS, edge, make_lake, never, subscription, untraced
from trace.lake import HOUR_MS

HOUR = Scope(on_grid(BEGIN_MS, BEGIN_MS + HOUR_MS))
LATER_MS = BEGIN_MS + HOUR_MS


@pytest.mark.parametrize(
    ("tags", "known", "judged"),
    [
        ("open", None, "unknown"),
        ("open", subscription("orders", "billing"), "pending"),
        ("open", subscription("orders", "billing", "open || paid"), "pending"),
        ("open", subscription("orders", "billing", "paid"), "filtered"),
        ("", subscription("orders", "billing", "paid"), "filtered"),
        ("", subscription("orders", "billing", "*"), "pending"),
        (None, subscription("orders", "billing", "paid"), "unknown"),
        (None, subscription("orders", "billing", "*"), "pending"),
        ("open", subscription("orders", "billing", consumed_until_ms=LATER_MS), "passed"),
        ("open", subscription("orders", "billing", consumed_until_ms=None), "unknown"),
        (
            "paid",
            subscription("orders", "billing", "paid", consumed_until_ms=None),
            "unknown",
        ),
        (
            "open",
            subscription("orders", "billing", "paid", consumed_until_ms=None),
            "filtered",
        ),
        ("open", subscription("orders", "billing", expression_type="SQL92"), "unknown"),
        (
            "open",
            subscription("orders", "billing", expression_type="SQL92", consumed_until_ms=LATER_MS),
            "passed",
        ),
        ("open", subscription("orders", "mail", consumed_until_ms=LATER_MS), "unknown"),
        ("open", subscription("mail", "billing", consumed_until_ms=LATER_MS), "unknown"),
    ],
)
def test_each_state(
    tmp_path: Path, tags: str | None, known: dict[str, Any] | None, judged: str
) -> None:
    lake = make_lake(
        tmp_path,
        untraced=[untraced(5, "orders", "billing", 3, tags)],
        slow=[{**never(5, "M"), "tags": tags}],
        edges=[edge("shop", "orders", None, 9), edge("shop", "orders", "billing", 6, untraced=3)],
        subscriptions=[known] if known else [],
    )
    wanted = {"pending": (3, 0), "unknown": (0, 3)}.get(judged, (0, 0))
    with reading(lake, lake.snapshot()) as reader:
        [billing] = [each for each in queries.edges(reader, HOUR) if each.is_consuming]
        assert (billing.never_consumed, billing.unconfirmed) == wanted
        steps = queries.funnel(reader, HOUR, queries.overview(reader, HOUR).total)
        counts = {step.name: step.count for step in steps}
        assert (counts["never_consumed"], counts["unconfirmed"]) == wanted
        listed = [row.reason for row in never_consumed(reader, HOUR, 50)]
    assert listed == ([judged] if any(wanted) else [])


def test_a_filter_counts_for_the_messages_of_its_time(tmp_path: Path) -> None:
    change_ms = BEGIN_MS + 10 * 60_000
    lake = make_lake(
        tmp_path,
        untraced=[untraced(at, "orders", "billing", 1, "open") for at in (5, 15)],
        subscriptions=[
            subscription("orders", "billing", "paid", until_ms=change_ms),
            subscription("orders", "billing", "open", since_ms=change_ms),
        ],
    )
    with reading(lake, lake.snapshot()) as reader:
        assert missed(reader, HOUR)["orders", "billing"].pending == 1
        early = Scope(on_grid(BEGIN_MS, change_ms))
        assert missed(reader, early) == {}


def test_never_consumed_messages_come_newest_first(tmp_path: Path) -> None:
    lake = make_lake(tmp_path, slow=[never(4, "N"), never(5, "M"), never(6, "O", "mail")])
    with reading(lake, lake.snapshot()) as reader:
        rows = never_consumed(reader, HOUR, 50)
        assert [row.msg_id for row in rows] == ["O", "M", "N"]
        assert (rows[0].latency_ms, rows[0].start_ms, rows[0].kind) == (None, None, "normal")
        assert len(never_consumed(reader, HOUR, 2)) == 2
        mail = never_consumed(reader, Scope(HOUR.range, topic="mail"), 50)
    assert [row.msg_id for row in mail] == ["O"]


def test_a_group_that_consumed_nothing_has_an_edge(tmp_path: Path) -> None:
    lake = make_lake(
        tmp_path,
        untraced=[untraced(5, "orders", "billing", 3)],
        subscriptions=[subscription("orders", "billing")],
    )
    with reading(lake, lake.snapshot()) as reader:
        [found] = queries.edges(reader, HOUR)
    assert (found.messages, found.attempts, found.never_consumed) == (0, 0, 3)


def test_without_a_readable_file_nothing_is_known(tmp_path: Path) -> None:
    lake = make_lake(
        tmp_path,
        untraced=[untraced(5, "orders", "billing", 3)],
        subscriptions=[subscription("orders", "billing")],
    )
    lake.subscriptions_file(1).write_bytes(b"broken")
    with reading(lake, lake.snapshot()) as reader:
        assert missed(reader, HOUR)["orders", "billing"].unknown == 3
        assert reader.broken == ["subscriptions/run=1.parquet"]
