"""Modes of consuming, for the clients that support them: orderly, broadcasting, SQL92."""

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.compat.broker_state import create_topic, eventually, members
from tests.compat.conftest import Maker
from tests.compat.foreign import Event
from tests.compat.kinds import having
from tests.support.cluster import Cluster

StartClients = Callable[[str, str], Maker]


def bodies_of_queue(messages: list[Event], queue: int) -> list[int]:
    """Return the bodies of the messages from a queue, in order of arrival."""
    return [int(each["body"]) for each in messages if each["queue"] == queue]


@having("orderly")
def test_orderly_consuming_keeps_the_order_of_each_queue(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Orderly-{kind}", queues=2)
    consumer = clients.consumer(f"CG-orderly-{kind}", topic, orderly=True)
    producer = clients.producer(f"PG-orderly-{kind}")
    producer.send(topic, [{"body": f"{n}", "shard": n % 2} for n in range(200)])
    received = consumer.wait_for("message", 200)
    for queue in (0, 1):
        assert bodies_of_queue(received, queue) == list(range(queue, 200, 2))


@having("orderly failures")
def test_an_orderly_failure_holds_back_its_queue(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Suspended-{kind}", queues=1)
    consumer = clients.consumer(f"CG-suspended-{kind}", topic, orderly=True, fails=True)
    clients.producer(f"PG-suspended-{kind}").send(topic, [{"body": "0"}, {"body": "1"}])
    received = consumer.wait_for("message", 3)
    assert {each["body"] for each in received} == {"0"}, "the second message waits for the first"


@having("broadcasting")
def test_broadcasting_delivers_all_messages_to_all_members(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    group, topic = f"CG-all-{kind}", create_topic(shared_cluster, f"All-{kind}")
    consumers = [clients.consumer(group, topic, broadcasting=True) for _ in range(2)]
    eventually(lambda: members(shared_cluster, group) == 2, "two members", 60)
    producer = clients.producer(f"PG-all-{kind}")
    # A broadcasting consumer may start at the end of its queues and miss the first messages.
    number = itertools.count()

    def all_received_one_round() -> bool:
        producer.send(topic, [{"body": f"{next(number)}"}] * 4)
        first, second = (Counter(each["body"] for each in member.messages) for member in consumers)
        return any(first[body] == second[body] == 4 for body in first)

    eventually(all_received_one_round, "four messages of one round for both members", 60)


@having("sql")
def test_the_sql92_filter(kind: str, shared_cluster: Cluster, start_clients: StartClients) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Sql-{kind}", queues=1)
    messages: list[dict[str, Any]] = [
        {"body": f"{n}", "tag": "T", "properties": {"a": n, "b": "x" if n % 2 else "y"}}
        for n in range(10)
    ]
    messages.append({"body": "without properties"})
    clients.producer(f"PG-sql-{kind}").send(topic, messages)
    expression = "a BETWEEN 3 AND 8 AND b IN ('x', 'z') AND TAGS IS NOT NULL AND c IS NULL"
    consumer = clients.consumer(f"CG-sql-{kind}", topic, expression, sql=True)
    consumer.wait_for("message", 3)
    # A further matching message: a message that the filter wrongly passed would arrive before it.
    clients.producer(f"PG-sql-2-{kind}").send(
        topic, [{"body": "5", "tag": "T", "properties": {"a": 5, "b": "x"}}]
    )
    received = consumer.wait_for("message", 4)
    assert sorted(each["body"] for each in received) == ["3", "5", "5", "7"]
