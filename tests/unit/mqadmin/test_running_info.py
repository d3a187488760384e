"""Running info of consumers as text, and warnings about stuck queues."""

import pytest

from core_broker.mqadmin.running_info import (
    SETTLING_MS,
    STUCK_MS,
    running_info_lines,
    same_subscription,
    stuck_queue_warnings,
)
from core_broker.remoting.bodies import (
    ConsumerRunningInfo,
    ConsumeStatus,
    MessageQueue,
    ProcessQueueInfo,
    SubscriptionData,
)

NOW_MS = 10_000_000
QUEUE = MessageQueue(topic="TA", broker_name="broker-a", queue_id=0)


def info(
    *topics: str, state: ProcessQueueInfo | None = None, **properties: str
) -> ConsumerRunningInfo:
    usual = {"PROP_CONSUME_TYPE": "CONSUME_PASSIVELY", "PROP_CONSUMER_START_TIMESTAMP": "0"}
    return ConsumerRunningInfo(
        properties=usual | properties,
        subscription_set=[SubscriptionData(topic=topic) for topic in topics],
        mq_table={QUEUE: state} if state else {},
        status_table={"TA": ConsumeStatus(pull_rt=1.5, consume_failed_msgs=3)},
        jstack="a thread",
    )


def test_lines() -> None:
    lines = list(running_info_lines(info("TA", state=ProcessQueueInfo(commit_offset=10))))
    assert lines[0] == "#Consumer Properties#"
    assert "PROP_CONSUME_TYPE                       : CONSUME_PASSIVELY" in lines
    subscription = "001 Topic: TA                                       ClassFilter: false    "
    assert subscription + "SubExpression: *" in lines
    for title in ("Subscription", "Offset", "MQ Detail", "RT&TPS", "jstack"):
        assert f"#Consumer {title}#" in lines
    offset = "TA                                broker-a                          0     10"
    assert any(line.startswith(offset) for line in lines)
    assert any("ProcessQueueInfo [commitOffset=10," in line for line in lines)
    assert lines[-1] == "a thread"


def test_members_with_equal_subscriptions() -> None:
    assert same_subscription({"a": info("T", "U"), "b": info("U", "T")}, NOW_MS)
    assert not same_subscription({"a": info("T"), "b": info("U")}, NOW_MS)
    assert not same_subscription({"a": info()}, NOW_MS)
    assert same_subscription({}, NOW_MS)


@pytest.mark.parametrize("started", [str(NOW_MS - SETTLING_MS), "", "x", "-1"])
def test_members_in_the_grace_period_or_without_a_start_time(started: str) -> None:
    young = info("T", PROP_CONSUMER_START_TIMESTAMP=started)
    assert same_subscription({"a": young, "b": info("U")}, NOW_MS)


def test_pull_consumers_are_not_checked() -> None:
    pulling = info("T", state=ProcessQueueInfo(), PROP_CONSUME_TYPE="CONSUME_ACTIVELY")
    assert same_subscription({"a": pulling, "b": info("U")}, NOW_MS)
    assert not list(stuck_queue_warnings("a", pulling, NOW_MS))


def test_a_stuck_queue() -> None:
    consumed_ms = NOW_MS - STUCK_MS - 1
    stuck = ProcessQueueInfo(cached_msg_count=1, last_consume_timestamp=consumed_ms)
    (complaint,) = stuck_queue_warnings("c", info("TA", state=stuck), NOW_MS)
    assert "can't consume for a while, maybe blocked, 60001ms" in complaint
    idle = ProcessQueueInfo(cached_msg_count=0, last_consume_timestamp=consumed_ms)
    assert not list(stuck_queue_warnings("c", info("TA", state=idle), NOW_MS))


def test_queues_of_orderly_consumers() -> None:
    def complaints(**state: int | bool) -> list[str]:
        queue = ProcessQueueInfo(**state)
        member = info("TA", state=queue, PROP_CONSUMEORDERLY="true")
        return list(stuck_queue_warnings("c", member, NOW_MS))

    (complaint,) = complaints(locked=False, last_lock_timestamp=NOW_MS - 5)
    assert complaint.endswith("can't lock for a while, 5ms")
    (complaint,) = complaints(locked=True, droped=True, try_unlock_times=2)
    assert complaint.endswith("unlock 2 times, still failed")
    assert not complaints(locked=True)
