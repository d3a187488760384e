"""Basic operations of every foreign client, with real processes on both sides.

The operations that fail first in a migration: identity and order of messages, filters, delays,
compression, rebalance, a killed broker. `test_retries.py` has the retries.
"""

import time
from collections import defaultdict
from collections.abc import Callable

from tests.compat.broker_state import (
    by_key,
    create_topic,
    eventually,
    members,
    stored,
    stored_count,
)
from tests.compat.conftest import LEVEL_3_SECONDS, Maker
from tests.compat.foreign import Event, ForeignClient
from tests.compat.kinds import having
from tests.support.cluster import Cluster

StartClients = Callable[[str, str], Maker]

#: Timeout of a rebalance, seconds: the broker notifies a group of a new member at once. Without a
#: notification the clients rebalance every 10 or 20 s.
REBALANCE_SECONDS_MAX = 60


def offsets_by_queue(messages: list[Event]) -> dict[int, list[int]]:
    queues: dict[int, list[int]] = defaultdict(list)
    for each in messages:
        queues[each["queue"]].append(each["offset"])
    return {queue: sorted(offsets) for queue, offsets in queues.items()}


def assert_whole_queues(messages: list[Event]) -> None:
    """Assert that no message of a queue is missing and none came twice.

    The Rust client sends messages back that its full listener pool does not accept, and the broker
    delivers them once more, from the retry topic.
    """
    again = [each for each in messages if each["reconsume"]]
    for offsets in offsets_by_queue([each for each in messages if not each["reconsume"]]).values():
        missing = {*range(offsets[-1] + 1)} - {*offsets}
        assert len(missing) <= len(again)
        assert len({*offsets}) == len(offsets)


@having("sync")
def test_a_thousand_messages(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Thousand-{kind}")
    consumer = clients.consumer(f"CG-thousand-{kind}", topic)
    producer = clients.producer(f"PG-thousand-{kind}")
    messages: list[Event] = [
        {"body": f"body {number}", "tag": "A", "keys": f"key-{number}"} for number in range(1000)
    ]
    sent = producer.send(topic, messages)
    received = consumer.wait_for("message", 1000)
    assert len(received) == 1000
    key_of = {each["id"]: message["keys"] for each, message in zip(sent, messages, strict=True)}
    assert {each["id"]: each["keys"] for each in received} == key_of
    assert {each["body"] for each in received} == {each["body"] for each in messages}
    assert_whole_queues(received)


@having("auto topic")
def test_a_topic_is_created_by_the_first_message(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = f"Auto-{kind}"
    clients.producer(f"PG-auto-{kind}").send(topic, [{"body": "first", "keys": "only"}])
    consumer = clients.consumer(f"CG-auto-{kind}", topic)
    assert [each["body"] for each in consumer.wait_for("message")] == ["first"]


@having("tags")
def test_the_tag_filter(kind: str, shared_cluster: Cluster, start_clients: StartClients) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Tags-{kind}", queues=1)
    messages: list[Event] = [
        {"body": f"{tag or 'none'} {number}", "tag": tag}
        for number in range(5)
        for tag in ("A", "B", "C", "", "A")
    ]
    clients.producer(f"PG-tags-{kind}").send(topic, messages)
    matching = [each["body"] for each in messages if each["tag"] in ("A", "B")]
    consumer = clients.consumer(f"CG-tags-{kind}", topic, "A || B")
    consumer.wait_for("message", len(matching))
    consumer.stop()  # after the listener has handled all pulled messages
    assert sorted(each["body"] for each in consumer.messages) == sorted(matching)


@having("delay")
def test_a_delayed_message_comes_after_its_delay(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Delay-{kind}")
    consumer = clients.consumer(f"CG-delay-{kind}", topic)
    producer = clients.producer(f"PG-delay-{kind}")
    producer.send(topic, [{"body": "late", "delay": 3, "keys": f"late-{kind}"}])
    assert consumer.wait_for("message")[0]["body"] == "late"
    # Both times are from the broker's store, so a busy test process does not change the delay.
    (delivered,) = by_key(shared_cluster, topic, f"late-{kind}")
    waited_ms = delivered.store_timestamp - delivered.born_timestamp
    assert LEVEL_3_SECONDS * 1000 <= waited_ms <= (LEVEL_3_SECONDS + 1) * 1000


@having("compressed")
def test_a_compressed_body(kind: str, shared_cluster: Cluster, start_clients: StartClients) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Large-{kind}")
    consumer = clients.consumer(f"CG-large-{kind}", topic)
    producer = clients.producer(f"PG-large-{kind}")
    producer.send(topic, [{"body": "x" * 6000, "keys": f"large-{kind}"}])
    assert consumer.wait_for("message")[0]["body"] == "x" * 6000
    (message,) = by_key(shared_cluster, topic, f"large-{kind}")
    assert message.sys_flag & 1
    assert len(message.body) < 6000
    assert message.decompressed_body() == b"x" * 6000


@having("oneway")
def test_oneway(kind: str, shared_cluster: Cluster, start_clients: StartClients) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Oneway-{kind}")
    consumer = clients.consumer(f"CG-oneway-{kind}", topic)
    producer = clients.producer(f"PG-oneway-{kind}")
    producer.send(topic, [{"body": f"{number}", "oneway": True} for number in range(20)])
    received = consumer.wait_for("message", 20)
    assert sorted(int(each["body"]) for each in received) == list(range(20))


@having("async")
def test_async(kind: str, shared_cluster: Cluster, start_clients: StartClients) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Async-{kind}")
    consumer = clients.consumer(f"CG-async-{kind}", topic)
    producer = clients.producer(f"PG-async-{kind}")
    sent = producer.send(topic, [{"body": f"{number}", "async": True} for number in range(20)])
    received = consumer.wait_for("message", 20)
    assert sorted(int(each["body"]) for each in received) == list(range(20))
    assert {each["id"] for each in received} == {each["id"] for each in sent}


@having("shard")
def test_messages_of_one_shard_stay_in_order(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Shards-{kind}")
    producer = clients.producer(f"PG-shards-{kind}")
    producer.send(topic, [{"body": f"{n}", "shard": n % 2} for n in range(40)])
    received = clients.consumer(f"CG-shards-{kind}", topic).wait_for("message", 40)
    # Messages of the retry topic have offsets of another queue (see assert_whole_queues).
    again = {int(each["body"]) for each in received if each["reconsume"]}
    for queue in (0, 1):
        first = [each for each in received if each["queue"] == queue and not each["reconsume"]]
        in_order = sorted(first, key=lambda each: each["offset"])
        expected = [number for number in range(queue, 40, 2) if number not in again]
        assert [int(each["body"]) for each in in_order] == expected
    assert kind == "rust" or not again


@having("batch")
def test_a_batch(kind: str, shared_cluster: Cluster, start_clients: StartClients) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Batch-{kind}", queues=1)
    producer = clients.producer(f"PG-batch-{kind}")
    messages = [{"body": f"{n}", "keys": f"batch-{n}"} for n in range(3)]
    producer.command("send_batch", topic=topic, messages=messages)
    sent = producer.wait_for("sent")[0]
    assert sent["status"] in {"OK", "SEND_OK"}
    if kind == "cpp":
        # The client writes batch "1", which Java reads as false: the broker stores one message.
        assert stored(shared_cluster, topic) == {0: (0, 1)}
        return
    assert stored(shared_cluster, topic) == {0: (0, 3)}
    received = clients.consumer(f"CG-batch-{kind}", topic).wait_for("message", 3)
    if kind == "java":
        # RocketMQ 5 consumers report the id of the batch for each of its messages; the send result
        # has other ids.
        assert sorted(each["id"] for each in received) == sorted(sent["id"].split(","))
    assert {each["keys"] for each in received} == {each["keys"] for each in messages}
    assert {each["body"] for each in received} == {"0", "1", "2"}


def queues_of_a_round(
    producer: ForeignClient, consumers: list[ForeignClient], topic: str, number: int
) -> list[set[int]]:
    """Send one message to every queue; return, per consumer, the queues of received messages."""
    body = f"round {number}"
    producer.send(topic, [{"body": body} for _ in range(4)])

    def received(consumer: ForeignClient) -> set[int]:
        return {each["queue"] for each in consumer.messages if each["body"] == body}

    deadline = time.monotonic() + 2
    while sum(len(received(each)) for each in consumers) < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    return [received(each) for each in consumers]


@having("rebalance")
def test_two_members_share_the_queues_and_the_survivor_takes_all(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    group, topic = f"CG-share-{kind}", create_topic(shared_cluster, f"Share-{kind}")
    producer = clients.producer(f"PG-share-{kind}")
    consumers = [clients.consumer(group, topic), clients.consumer(group, topic)]
    eventually(lambda: members(shared_cluster, group) == 2, "two members", 60)
    rounds = iter(range(1_000_000))

    def split() -> list[set[int]]:
        return queues_of_a_round(producer, consumers, topic, next(rounds))

    eventually(
        lambda: [len(each) for each in split()] == [2, 2], "an even split", REBALANCE_SECONDS_MAX
    )
    consumers.pop().kill()
    eventually(lambda: members(shared_cluster, group) == 1, "one member", 60)
    eventually(
        lambda: split() == [{0, 1, 2, 3}],
        "the remaining member has all queues",
        REBALANCE_SECONDS_MAX,
    )


@having("restart")
def test_a_broker_killed_between_send_and_receive_loses_nothing(
    kind: str, cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, cluster.namesrv_addr)
    topic = create_topic(cluster, "Restart")
    clients.producer("PG-before").send(topic, [{"body": f"{n}"} for n in range(100)])
    assert stored_count(cluster, topic) == 100
    cluster.kill_broker()
    cluster.restart_broker()
    clients.producer("PG-after").send(topic, [{"body": f"{n}"} for n in range(100, 200)])
    received = clients.consumer("CG-restart", topic).wait_for("message", 200)
    assert sorted(int(each["body"]) for each in received) == list(range(200))
    assert_whole_queues(received)
