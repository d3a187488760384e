"""Names of topics and groups."""

import pytest

from core_broker.errors import ClientError
from core_broker.message import topics


@pytest.mark.parametrize("name", ["T", "%RETRY%CG", "a|b-c_9", "t" * 127, "%RETRY%" + "g" * 248])
def test_legal_topics(name: str) -> None:
    topics.validate_topic(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "blank"),
        ("  ", "blank"),
        ("a b", r"allowing only \^\[%\|a-zA-Z0-9_-\]\+\$"),
        ("a/../b", "illegal characters"),
        ("topic\n", "illegal characters"),
        ("订单", "illegal characters"),
        ("t" * 128, "127"),
        ("%DLQ%" + "g" * 251, "255"),
    ],
)
def test_illegal_topics(name: str, reason: str) -> None:
    with pytest.raises(ClientError, match=reason):
        topics.validate_topic(name)


@pytest.mark.parametrize("name", ["CG", "g" * 255])
def test_legal_groups(name: str) -> None:
    topics.validate_group(name)


@pytest.mark.parametrize("name", ["", "a b", "g\0", "g" * 256])
def test_illegal_groups(name: str) -> None:
    with pytest.raises(ClientError):
        topics.validate_group(name)


def test_derived_names() -> None:
    assert topics.retry_topic("CG") == "%RETRY%CG"
    assert topics.dlq_topic("CG") == "%DLQ%CG"
    assert topics.reply_topic("DefaultCluster") == "DefaultCluster_REPLY_TOPIC"


def test_the_systems_own() -> None:
    assert topics.is_system_topic("TBW102")
    assert topics.is_system_topic("rmq_sys_wheel_timer")
    assert not topics.is_system_topic("Orders")
    assert topics.SEND_FORBIDDEN_TOPICS < topics.SYSTEM_TOPICS
    assert topics.TRACE_TOPIC not in topics.SEND_FORBIDDEN_TOPICS
    assert topics.is_system_group("TOOLS_CONSUMER")
    assert topics.is_system_group("CID_RMQ_SYS_TRANS")
    assert not topics.is_system_group("CG")
