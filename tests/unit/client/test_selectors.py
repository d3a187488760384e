"""Queue selectors."""

import pytest

from core_broker.client.selectors import by_hash, by_machine_room, by_random
from core_broker.errors import ClientError
from core_broker.message.model import Message
from core_broker.remoting.bodies import MessageQueue

MESSAGE = Message("T", b"hi")


def queues(count: int) -> list[MessageQueue]:
    return [MessageQueue("T", "b", number) for number in range(count)]


@pytest.mark.parametrize(
    ("key", "java_hash"),
    [
        ("", 0),
        ("TagA", 2598919),
        ("TopicTest#OrderID001", -1231272886),
        (7, 7),
        (-7, -7),
        (-(2**31), -(2**31)),
        (2**31, -(2**31)),
        (2**32 + 5, 4),
        (-(2**40), -256),
        (2**63 - 1, -(2**31)),
        (True, 1231),
        (False, 1237),
    ],
)
def test_the_queue_that_java_would_choose(key: object, java_hash: int) -> None:
    for count in (1, 3, 8, 1000):
        # In Java a remainder has the dividend's sign; the selector uses the absolute value.
        expected = abs(java_hash) % count
        assert by_hash(queues(count), MESSAGE, key).queue_id == expected


@pytest.mark.parametrize("key", [None, 1.5, b"bytes", object(), 2**63, -(2**63) - 1])
def test_an_illegal_sharding_key_raises(key: object) -> None:
    with pytest.raises(ClientError, match="sharding key"):
        by_hash(queues(4), MESSAGE, key)


def test_any_queue() -> None:
    assert {by_random(queues(3), MESSAGE, None).queue_id for _ in range(200)} == {0, 1, 2}


def test_queues_of_a_room() -> None:
    spread = [MessageQueue("T", name, 0) for name in ("r1@a", "r2@b", "r1@c", "d")]
    select = by_machine_room({"r1"})
    broker_names = {select(spread, MESSAGE, None).broker_name for _ in range(200)}
    assert broker_names == {"r1@a", "r1@c"}
    with pytest.raises(ClientError, match="r9"):
        by_machine_room({"r9"})(spread, MESSAGE, None)
