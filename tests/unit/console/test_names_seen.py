"""Names of topics and groups in answers, for a reader who sees `pay-…` only."""

from dataclasses import replace
from typing import Any

import pytest

from console.gateway.groups.changes import GroupImpact
from console.gateway.groups.metrics import GroupMetrics
from console.gateway.groups.progress import Progress
from console.gateway.kicks import QueueMove
from console.gateway.messages.deliveries import Delivery, GroupDelivery
from console.gateway.names_seen import HIDDEN_NAME, NamesSeen
from console.gateway.overview import (
    BEHIND_SHOWN,
    Behind,
    DeadLetters,
    Overview,
    Totals,
    load_of,
)
from console.gateway.topics.changes import TopicImpact
from console.gateway.topics.metrics import TopicMetrics
from core_broker.remoting.bodies import (
    ConsumerRunningInfo,
    ConsumeStatus,
    MessageQueue,
    ProcessQueueInfo,
    SubscriptionData,
)


def is_pay(name: str) -> bool:
    return name.startswith("pay-")


SEEN = NamesSeen(is_pay, is_pay)


@pytest.mark.parametrize(
    ("topic", "is_seen"),
    [
        ("pay-orders", True),
        ("closed", False),
        ("%RETRY%pay-billing", True),
        ("%DLQ%pay-billing", True),
        ("%RETRY%closed", False),
        ("%DLQ%closed", False),
    ],
)
def test_topics_of_a_group_follow_the_group(topic: str, is_seen: bool) -> None:
    assert SEEN.topic(topic) is is_seen


def test_the_running_information_of_a_client_has_the_seen_topics() -> None:
    queues = [MessageQueue(topic=each, broker_name="b", queue_id=0) for each in ("pay-a", "closed")]
    info = ConsumerRunningInfo(
        properties={"PROP_X": "1"},
        subscription_set=[SubscriptionData(topic=each.topic) for each in queues],
        mq_table={each: ProcessQueueInfo() for each in queues},
        status_table={each.topic: ConsumeStatus() for each in queues},
        jstack="threads",
    )
    [client, shown] = SEEN.filtered(("client", info))
    assert client == "client"
    assert [each.topic for each in shown.subscription_set] == ["pay-a"]
    assert [each.topic for each in shown.mq_table] == ["pay-a"]
    assert list(shown.status_table) == ["pay-a"]
    assert (shown.properties, shown.jstack) == (info.properties, "threads")
    assert len(info.mq_table) == 2, "the answer in the cache stays whole"


def test_totals_stay_where_names_go() -> None:
    metrics = TopicMetrics(5, 5, None, None, lags={"pay-a": 1, "closed": 7})
    impact = TopicImpact(metrics, ("b",), 8, (("pay-a", 1), ("closed", 2)), 8)
    shown: Any = SEEN.filtered(impact)
    assert shown.clients == impact.clients == 3
    assert shown.online_groups == (("pay-a", 1), (HIDDEN_NAME, 2))
    assert (shown.lag, shown.numbers.groups) == (8, ("pay-a",))
    numbers = shown.numbers
    assert (numbers.group_count, numbers.worst_lag, numbers.worst_group) == (2, 7, None)
    own = SEEN.filtered(TopicMetrics(5, 5, None, None, lags={"pay-a": 8, "closed": 7}))
    assert (own.worst_lag, own.worst_group) == (8, "pay-a")
    progress = Progress(7, 0, None, None, ("closed", "pay-a"))
    seen = replace(progress, topics=(HIDDEN_NAME, "pay-a"), unseen_topics=1)
    assert SEEN.filtered(progress) == SEEN.filtered(SEEN.filtered(progress)) == seen
    group = GroupImpact(("b",), 1, ("pay-a", "closed"), 9, 0, 0)
    assert SEEN.filtered(group) == replace(group, topics=("pay-a",), unseen_topics=1)
    assert SEEN.filtered(SEEN.filtered(group)).topic_count == 2
    move = QueueMove("pay-a", "closed", "b", 0, None)
    assert SEEN.filtered((move,)) == (replace(move, topic=HIDDEN_NAME),)


def test_the_overview_of_a_cluster_has_the_seen_names_and_whole_sums() -> None:
    numbers = GroupMetrics(9, 0, None, None, ("pay-a",), 1, 0)
    names = [f"closed-{number}" for number in range(BEHIND_SHOWN)]
    behind = tuple(Behind(name, numbers) for name in (*names, "pay-last"))
    load = load_of(())
    letters = (DeadLetters("closed", 5, None), DeadLetters("pay-a", 2, 7))
    whole = Overview(load, (), 3, 3, 3, ("closed", "pay-a"), Totals(54, behind, 0), letters)
    seen: Any = SEEN.filtered(whole)
    assert (seen.unread_topics, seen.unseen_topics, seen.unread_topic_count) == (("pay-a",), 1, 2)
    assert seen.dead_letters == letters[1:]
    assert (seen.dead_letter_count, seen.dead_letter_group_count) == (7, 2)
    assert [each.name for each in seen.totals.highest] == ["pay-last"], "behind the first five"
    assert (seen.total_lag, seen.totals.unseen_behind) == (54, BEHIND_SHOWN)
    unknown: Any = SEEN.filtered(replace(whole, totals=None, dead_letters=None))
    assert (unknown.totals, unknown.dead_letter_count) == (None, None)


def test_rows_of_unseen_groups_go_and_other_values_stay() -> None:
    rows = tuple(GroupDelivery(each, Delivery.CONSUMED) for each in ("pay-a", "closed"))
    assert SEEN.filtered({"x": rows}) == {"x": rows[:1]}
    for value in (None, 7, "closed", ("closed",), {"closed": 1}):
        assert SEEN.filtered(value) == value
