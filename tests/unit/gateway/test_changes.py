"""Changes: settings applied to a configuration, differences, etags."""

import pytest

from console.gateway.changes import BrokerOutcome, brokers_named, check_unchanged, etag_of
from console.gateway.engine.errors import NotFound, PreconditionFailed
from console.gateway.engine.session import BrokerRef
from console.gateway.groups import changes as group_changes
from console.gateway.groups.changes import GroupSettings, merge_outcomes
from console.gateway.topics import changes as topic_changes
from console.gateway.topics.changes import TopicSettings
from core_broker.remoting.bodies import SubscriptionGroupConfig, TopicConfig

A, B = BrokerRef("a", 0, "h:1"), BrokerRef("b", 0, "h:2")


def test_settings_leave_alone_what_they_do_not_name() -> None:
    config = TopicConfig(
        topic_name="t", perm=7, read_queue_nums=3, topic_sys_flag=1, attributes={"k": "v"}
    )
    after = TopicSettings(write_queues=5).on(config)
    assert after.write_queue_nums == 5
    assert after.read_queue_nums == 3
    assert (after.perm, after.topic_sys_flag, after.attributes) == (7, 1, {"k": "v"})


def test_order_can_be_taken_away() -> None:
    config = TopicConfig(topic_name="t", order=True)
    assert TopicSettings(order=False).on(config).order is False
    assert TopicSettings().on(config).order is True


def test_differences_name_broker_and_field() -> None:
    held = [(A, TopicConfig(topic_name="t")), (B, TopicConfig(topic_name="t", perm=4))]
    found = topic_changes.differences(held, TopicSettings(perm=4))
    assert [(one.broker, one.field, one.before, one.after) for one in found] == [
        ("a", "perm", 6, 4)
    ]
    assert topic_changes.differences(held, TopicSettings()) == ()


def test_differences_of_a_group() -> None:
    held = [(A, SubscriptionGroupConfig(group_name="g"))]
    found = group_changes.differences(held, GroupSettings(consume_enable=False, retry_max_times=16))
    assert [(one.field, one.after) for one in found] == [("consume_enable", False)]


def test_an_etag_follows_every_broker_and_not_their_order() -> None:
    one, other = TopicConfig(topic_name="t"), TopicConfig(topic_name="t", perm=4)
    first = etag_of([(A, one), (B, other)])
    assert first == etag_of([(B, other), (A, one)])
    assert first != etag_of([(A, one), (B, one)])
    assert first != etag_of([(A, one)])


def test_replicas_of_one_name_have_an_etag() -> None:
    master, slave = BrokerRef("a", 0, "h:1"), BrokerRef("a", 1, "h:2")
    first = etag_of([(master, {"key": "x"}), (slave, {"key": "y"})])
    assert first == etag_of([(slave, {"key": "y"}), (master, {"key": "x"})])
    assert first != etag_of([(slave, {"key": "z"}), (master, {"key": "x"})])


def test_a_state_that_was_not_seen_is_refused() -> None:
    check_unchanged(None, "x")
    check_unchanged("x", "x")
    with pytest.raises(PreconditionFailed) as caught:
        check_unchanged("y", "x")
    assert caught.value.status == 412


def test_brokers_are_chosen_by_name() -> None:
    assert brokers_named([A, B], None) == [A, B]
    assert brokers_named([A, B], []) == [A, B]
    assert brokers_named([A, B], ["b", "b"]) == [B]
    with pytest.raises(NotFound, match="c"):
        brokers_named([A, B], ["a", "c"])


def test_outcomes_of_several_steps_keep_the_first_error() -> None:
    first = [BrokerOutcome("a", "h:1", None), BrokerOutcome("b", "h:2", "one")]
    second = [BrokerOutcome("a", "h:1", "two"), BrokerOutcome("b", "h:2", None)]
    merged = merge_outcomes(first, [*second, BrokerOutcome("c", "h:3", None)])
    assert [(one.broker, one.error) for one in merged] == [
        ("a", "two"),
        ("b", "one"),
        ("c", None),
    ]
