"""Transactional messages of foreign clients, and request-reply of the Java client."""

from collections.abc import Callable

from tests.compat.broker_state import create_topic, stored_count
from tests.compat.conftest import Maker
from tests.compat.kinds import having
from tests.support.cluster import Cluster

StartClients = Callable[[str, str], Maker]

#: Message keys: the state after sending, "-", the state that the producer reports in a check-back.
OUTCOMES = ("commit-rollback", "rollback-commit", "unknown-commit", "unknown-rollback")


@having("transactions")
def test_transactions_with_check_back(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Transactions-{kind}", queues=1)
    consumer = clients.consumer(f"CG-transactions-{kind}", topic)
    producer = clients.producer(f"PG-transactions-{kind}", transactions=True)
    messages = [{"body": outcome, "keys": outcome, "transactional": True} for outcome in OUTCOMES]
    sent = producer.send(topic, messages)
    assert {each["status"] for each in sent} == {"SEND_OK"}
    received = consumer.wait_for("message", 2, seconds=60)
    producer.wait_until(
        lambda: (
            {each["keys"] for each in producer.of("checked")}
            == {"unknown-commit", "unknown-rollback"}
        ),
        "a check-back of both unknown transactions",
        60,
    )
    assert {each["body"] for each in received} == {"commit-rollback", "unknown-commit"}
    ids = {message["keys"]: each["id"] for each, message in zip(sent, messages, strict=True)}
    assert {each["id"] for each in received} == {ids[each["keys"]] for each in received}
    assert stored_count(shared_cluster, topic) == 2


@having("request-reply")
def test_a_request_gets_its_reply(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Questions-{kind}", queues=1)
    answering = clients.consumer(f"CG-questions-{kind}", topic, replies=True)
    # A request times out after 10 s, and some consumers rebalance only every 20 s, so a first
    # message proves that the consumer has its queues. Another producer sends the message: the
    # requester registers with the broker at its first request for a topic.
    clients.producer(f"PG-there-{kind}").send(topic, [{"body": "are you there"}])
    answering.wait_for("message")
    asking = clients.producer(f"PG-questions-{kind}")
    for number in range(3):
        asking.command("request", topic=topic, body=f"question {number}")
        assert asking.wait_for("replied", number + 1)[-1]["body"] == f"re: question {number}"
