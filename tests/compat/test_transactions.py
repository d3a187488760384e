"""Transactional messages of foreign clients, and request-reply of the Java client."""

from collections.abc import Callable

from tests.compat.conftest import Maker
from tests.compat.kinds import having
from tests.compat.looking import create_topic, stored_count
from tests.support.cluster import Cluster

StartClients = Callable[[str, str], Maker]

#: What the producer says after sending, "-", what it says when it is asked.
FATES = ("commit-rollback", "rollback-commit", "unknown-commit", "unknown-rollback")


@having("transactions")
def test_transactions_with_check_back(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Transactions-{kind}", queues=1)
    consumer = clients.consumer(f"CG-transactions-{kind}", topic)
    producer = clients.producer(f"PG-transactions-{kind}", transactions=True)
    messages = [{"body": fate, "keys": fate, "transactional": True} for fate in FATES]
    sent = producer.send(topic, messages)
    assert {each["status"] for each in sent} == {"SEND_OK"}
    received = consumer.wait_for("message", 2, seconds=60)
    producer.wait_until(
        lambda: (
            {each["keys"] for each in producer.of("checked")}
            == {"unknown-commit", "unknown-rollback"}
        ),
        "both unknown ones asked for",
        60,
    )
    assert {each["body"] for each in received} == {"commit-rollback", "unknown-commit"}
    ids = {message["keys"]: each["id"] for each, message in zip(sent, messages, strict=True)}
    assert {each["id"] for each in received} == {ids[each["keys"]] for each in received}
    assert stored_count(shared_cluster, topic) == 2


@having("request-reply")
def test_a_question_gets_its_answer(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Questions-{kind}", queues=1)
    answering = clients.consumer(f"CG-questions-{kind}", topic, replies=True)
    # An asker waits 10 s; some consumers look for their queues only every 20 s. Not the asker looks
    # whether it is there: the broker hears of an asker with its first question about a topic.
    clients.producer(f"PG-there-{kind}").send(topic, [{"body": "are you there"}])
    answering.wait_for("message")
    asking = clients.producer(f"PG-questions-{kind}")
    for number in range(3):
        asking.tell("request", topic=topic, body=f"question {number}")
        assert asking.wait_for("replied", number + 1)[-1]["body"] == f"re: question {number}"
