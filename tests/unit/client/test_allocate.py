"""Allocation strategies: known answers, and properties for random groups."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.client.consumer.allocate import (
    AllocateStrategy,
    averagely,
    averagely_by_circle,
    by_configuration,
    by_machine_room,
    consistent_hash,
    machine_room_nearby,
    sorted_client_ids,
    sorted_queues,
)
from core_broker.errors import ClientError
from core_broker.remoting.bodies import MessageQueue


def queues(count: int, broker: str = "b", topic: str = "T") -> list[MessageQueue]:
    return [MessageQueue(topic, broker, number) for number in range(count)]


def ids(strategy: AllocateStrategy, count: int, clients: list[str]) -> dict[str, list[int]]:
    return {
        client: [queue.queue_id for queue in strategy(client, queues(count), clients)]
        for client in clients
    }


CLIENTS = ["c0", "c1", "c2"]


def test_averagely() -> None:
    assert ids(averagely, 8, CLIENTS) == {"c0": [0, 1, 2], "c1": [3, 4, 5], "c2": [6, 7]}
    assert ids(averagely, 2, CLIENTS) == {"c0": [0], "c1": [1], "c2": []}


def test_averagely_by_circle() -> None:
    assert ids(averagely_by_circle, 8, CLIENTS) == {"c0": [0, 3, 6], "c1": [1, 4, 7], "c2": [2, 5]}


def test_consistent_hash() -> None:
    expected = {"c0": [3, 4, 6], "c1": [1, 2, 5], "c2": [0, 7]}
    assert ids(consistent_hash(), 8, CLIENTS) == expected


def test_consistent_hash_moves_only_the_queues_of_who_left() -> None:
    strategy = consistent_hash()
    before, after = ids(strategy, 64, CLIENTS), ids(strategy, 64, ["c0", "c2"])
    assert set(before["c0"]) <= set(after["c0"])
    assert set(before["c2"]) <= set(after["c2"])


def test_by_configuration() -> None:
    own = queues(3)[1:]
    assert by_configuration(own)("nobody", [], []) == own


def test_by_machine_room_takes_only_the_named_rooms() -> None:
    near, far = queues(5, "room1@a"), queues(5, "room2@b")
    strategy = by_machine_room({"room1"})
    everything = sorted_queues(near + far + queues(2, "noroom") + queues(2, "room1@a@b"))
    allocated = {client: strategy(client, everything, CLIENTS) for client in CLIENTS}
    assert {c: [q.queue_id for q in got] for c, got in allocated.items()} == {
        "c0": [0, 3],
        "c1": [1, 4],
        "c2": [2],
    }
    assert {queue.broker_name for got in allocated.values() for queue in got} == {"room1@a"}


def test_machine_room_nearby_gives_lonely_rooms_to_everybody() -> None:
    strategy = machine_room_nearby(
        averagely,
        room_of_queue=lambda queue: queue.broker_name.partition("-")[0],
        room_of_client=lambda client: client.partition("-")[0],
    )
    clients = ["r1-a", "r1-b", "r2-a"]
    everything = sorted_queues(queues(4, "r1-x") + queues(3, "r2-x") + queues(3, "r3-x"))
    allocated = {client: strategy(client, everything, clients) for client in clients}
    queue_ids = {
        client: [f"{queue.broker_name}:{queue.queue_id}" for queue in got]
        for client, got in allocated.items()
    }
    assert queue_ids == {
        "r1-a": ["r1-x:0", "r1-x:1", "r3-x:0"],
        "r1-b": ["r1-x:2", "r1-x:3", "r3-x:1"],
        "r2-a": ["r2-x:0", "r2-x:1", "r2-x:2", "r3-x:2"],
    }


SHARING = [
    averagely,
    averagely_by_circle,
    consistent_hash(),
    by_machine_room({"r"}),
    machine_room_nearby(
        averagely, lambda queue: str(queue.queue_id % 3), lambda client: client[-1]
    ),
]


@pytest.mark.parametrize("strategy", SHARING)
@given(count=st.integers(0, 40), clients=st.sets(st.text("abc012", min_size=1), min_size=1))
def test_every_queue_has_exactly_one_owner(
    strategy: AllocateStrategy, count: int, clients: set[str]
) -> None:
    everything, members = queues(count, "r@b"), sorted_client_ids(clients)
    allocated = [queue for client in members for queue in strategy(client, everything, members)]
    assert sorted(allocated) == everything


@pytest.mark.parametrize("strategy", SHARING)
def test_a_client_that_is_not_a_member_gets_nothing(strategy: AllocateStrategy) -> None:
    assert strategy("stranger", queues(8, "r@b"), CLIENTS) == []
    assert strategy("stranger", queues(8, "r@b"), []) == []


HOSTILE_IDS = ["", " ", "\ud800", "a\x00b", "c0", "c0-1", "\U0001f600" * 99, "x" * 10_000, "c0 "]


@pytest.mark.parametrize("strategy", SHARING)
def test_strange_ids_share_like_others(strategy: AllocateStrategy) -> None:
    everything, members = queues(20, "r@b"), sorted_client_ids(HOSTILE_IDS)
    if strategy is SHARING[-1]:
        members = [member or "none" for member in members]
    allocated = [queue for client in members for queue in strategy(client, everything, members)]
    assert sorted(allocated) == everything


def test_a_ring_needs_points() -> None:
    with pytest.raises(ClientError):
        consistent_hash(0)


def test_client_ids_sort_as_in_java() -> None:
    assert sorted_client_ids(["\uffee", "\U0001f600", "b", "a"]) == [
        "a",
        "b",
        "\U0001f600",
        "\uffee",
    ]


def test_queues_sort_by_topic_broker_and_number() -> None:
    mixed = [MessageQueue("T", "b", 10), MessageQueue("T", "b", 9), MessageQueue("T", "a", 11)]
    assert [str(queue) for queue in sorted_queues(mixed)] == ["T@a:11", "T@b:9", "T@b:10"]
