"""Messages with a failing consumer: retries after the level table's delays, then a dead letter."""

from collections.abc import Callable

from core_broker.remoting.bodies import PERM_WRITE
from tests.compat.broker_state import ask, create_topic, eventually, stored_count
from tests.compat.conftest import LEVEL_3_SECONDS, SHORT_LEVELS, Maker
from tests.compat.kinds import having
from tests.support.cluster import Cluster
from tests.support.registered import route_of

StartClients = Callable[[str, str], Maker]

RETRIES = 16


def create_retry_topic(cluster: Cluster, group: str) -> str:
    """Create a group's retry topic before the group has a member; return the group.

    The broker creates the topic at the first heartbeat. A Node client that requested the route
    before its heartbeat repeats the request only after 30 s.
    """
    create_topic(cluster, f"%RETRY%{group}", queues=1)
    return group


@having("retries")
def test_sixteen_retries_and_a_dead_letter(
    kind: str, cluster: Cluster, start_clients: StartClients
) -> None:
    cluster.restart_broker(message_delay_level=SHORT_LEVELS)
    check_sixteen_retries(kind, cluster, start_clients)


def check_sixteen_retries(kind: str, cluster: Cluster, start_clients: StartClients) -> None:
    """The broker has SHORT_LEVELS."""
    clients = start_clients(kind, cluster.namesrv_addr)
    group = create_retry_topic(cluster, f"CG-fails-{kind}")
    topic = create_topic(cluster, f"Fails-{kind}", queues=1)
    consumer = clients.consumer(group, topic, fails=True)
    clients.producer("PG-fails").send(topic, [{"body": "poison", "keys": "K"}])
    received = consumer.wait_for("message", 1 + RETRIES, seconds=60)
    assert [each["reconsume"] for each in received] == list(range(1 + RETRIES))
    assert {each["body"] for each in received} == {"poison"}
    assert {each["keys"] for each in received} == {"K"}
    eventually(lambda: stored_count(cluster, f"%DLQ%{group}") == 1, "a dead letter", 60)
    assert stored_count(cluster, topic) == 1
    assert stored_count(cluster, f"%RETRY%{group}") == RETRIES
    dead = f"%DLQ%{group}"
    eventually(lambda: bool(ask(cluster, lambda admin: route_of(admin, dead))), "its route", 60)
    route = ask(cluster, lambda admin: admin.topic_route(dead))
    assert [queue.perm for queue in route.queue_datas] == [PERM_WRITE]
    assert len(consumer.messages) == 1 + RETRIES


@having("retries")
def test_the_first_retry_comes_after_its_delay(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Retry-{kind}", queues=1)
    group = create_retry_topic(shared_cluster, f"CG-retry-{kind}")
    consumer = clients.consumer(group, topic, fails=True)
    clients.producer(f"PG-retry-{kind}").send(topic, [{"body": "again"}])
    # The Java client rebalances every 20 s, so the first pull from the retry topic may be late.
    again = consumer.wait_for("message", 2, seconds=60)[1]
    assert again["reconsume"] == 1
    # Only a lower limit: the client decides when it pulls.
    waited_ms = stored_at_ms(shared_cluster, f"%RETRY%{group}") - stored_at_ms(
        shared_cluster, topic
    )
    assert waited_ms >= LEVEL_3_SECONDS * 1000


def stored_at_ms(cluster: Cluster, topic: str) -> int:
    """The time of the broker at which it stored the first message of a topic."""
    (message,) = ask(
        cluster, lambda admin: admin.pull(cluster.broker_addr, topic, 0, 0, 1)
    ).messages
    return message.store_timestamp
