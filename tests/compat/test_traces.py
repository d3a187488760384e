"""Trace messages of foreign clients, decoded in every field.

The Java clients of both major versions write traces. The C++ and Node clients have no tracing, but
send trace records that an application encoded, as the body of a message.
"""

from collections.abc import Callable
from functools import partial

import pytest

from core_broker.client import AdminClient, PullResult, PullStatus
from core_broker.message.model import MessageExt
from core_broker.message.topics import TRACE_TOPIC
from tests.compat.broker_state import ask, create_topic, eventually, stored
from tests.compat.conftest import Maker
from tests.support.cluster import Cluster
from trace.codec import (
    DecodedTrace,
    EndTransaction,
    MessageType,
    Pub,
    SubAfter,
    SubBefore,
    TraceRecord,
    decode_trace,
    encode_trace,
)
from trace.timeline import EventKind, Outcome, Timeline, build_timeline

StartClients = Callable[[str, str], Maker]
PULL_COUNT = 32


async def pull(addr: str, topic: str, queue_id: int, offset: int, admin: AdminClient) -> PullResult:
    return await admin.pull(addr, topic, queue_id, offset, PULL_COUNT)


def messages_of(cluster: Cluster, topic: str) -> list[MessageExt]:
    """Return all messages of a topic."""
    found: list[MessageExt] = []
    for queue_id, (offset, end) in stored(cluster, topic).items():
        at = offset
        while at < end:
            pulled = ask(cluster, partial(pull, cluster.broker_addr, topic, queue_id, at))
            assert pulled.status is PullStatus.FOUND
            found += pulled.messages
            at = pulled.next_offset
    return found


def traces_of(cluster: Cluster) -> list[DecodedTrace]:
    """Return the decoded messages of the trace topic."""
    found = messages_of(cluster, TRACE_TOPIC)
    return [decode_trace(message.decompressed_body()) for message in found]


def timeline_of(cluster: Cluster, msg_id: str) -> Timeline:
    records = [record for trace in traces_of(cluster) for record in trace.records]
    return build_timeline(records, msg_id=msg_id)


def records_about(cluster: Cluster, msg_id: str) -> dict[type[TraceRecord], TraceRecord]:
    """Return the records about a message by kind; the trace topic may have no broken record."""
    traces = traces_of(cluster)
    assert [broken for trace in traces for broken in trace.broken] == []
    every = (record for trace in traces for record in trace.records)
    return {type(record): record for record in every if record.msg_id == msg_id}


def is_recorded(cluster: Cluster, msg_id: str, *kinds: type[TraceRecord]) -> bool:
    return records_about(cluster, msg_id).keys() >= set(kinds)


@pytest.mark.parametrize("kind", ["java", "java5"])
def test_sends_traced_by_java_decode_fully(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Traced-{kind}", queues=1)
    producer = clients.producer(f"PG-traced-{kind}", trace=True)
    sent = producer.send(topic, [{"body": f"b{n}", "keys": f"k{n}", "tag": "T"} for n in range(3)])
    for each in sent:
        is_sent = partial(is_recorded, shared_cluster, each["id"], Pub)
        eventually(is_sent, f"the trace of {each['id']}", 90)
    pub = records_about(shared_cluster, sent[1]["id"])[Pub]
    assert isinstance(pub, Pub)
    assert (pub.group, pub.topic, pub.tags, pub.keys, pub.body_bytes, pub.success) == (
        f"PG-traced-{kind}",
        topic,
        "T",
        "k1",
        2,
        True,
    )
    assert pub.store_host == shared_cluster.broker_addr
    assert pub.offset_msg_id == sent[1]["offsetId"]


@pytest.mark.parametrize("kind", ["java", "java5"])
def test_a_timeline_traced_by_java(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Traced-journey-{kind}", queues=1)
    group = f"CG-traced-{kind}"
    consumer = clients.consumer(group, topic, trace=True)
    producer = clients.producer(f"PG-journey-{kind}", trace=True)
    (sent,) = producer.send(topic, [{"body": "b", "keys": "k1"}])
    consumer.wait_for("message", 1)
    both_sides = partial(is_recorded, shared_cluster, sent["id"], Pub, SubBefore, SubAfter)
    eventually(both_sides, "the traces of both sides", 90)
    timeline = timeline_of(shared_cluster, sent["id"])
    assert timeline.outcome is Outcome.CONSUMED
    assert [event.kind for event in timeline.events] == [
        EventKind.SENT,
        EventKind.CONSUME_STARTED,
        EventKind.CONSUMED,
    ]
    about = records_about(shared_cluster, sent["id"])
    before, after = about[SubBefore], about[SubAfter]
    assert isinstance(before, SubBefore)
    assert isinstance(after, SubAfter)
    assert (before.group, before.retry_times, before.keys) == (group, 0, "k1")
    assert before.request_id == after.request_id
    assert (after.success, after.context_code, after.group) == (True, 0, group)
    # RocketMQ 5 omits the end time in a batch of records; 0 means unknown.
    assert after.timestamp_ms is not None
    assert after.timestamp_ms >= before.timestamp_ms


@pytest.mark.parametrize("kind", ["java", "java5"])
def test_the_end_of_a_transaction_traced_by_java(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Traced-transactions-{kind}", queues=1)
    group = f"PG-traced-transactions-{kind}"
    producer = clients.producer(group, transactions=True, trace=True)
    message = {"body": "b", "keys": "commit-rollback", "tag": "T", "transactional": True}
    (sent,) = producer.send(topic, [message])
    both = partial(is_recorded, shared_cluster, sent["id"], Pub, EndTransaction)
    eventually(both, "the traces of the half message and of its end", 90)
    about = records_about(shared_cluster, sent["id"])
    half, end = about[Pub], about[EndTransaction]
    assert isinstance(half, Pub)
    assert isinstance(end, EndTransaction)
    assert half.msg_type == MessageType.TRANSACTION_HALF
    assert (end.group, end.topic, end.tags, end.keys, end.transaction_state) == (
        group,
        topic,
        "T",
        "commit-rollback",
        "COMMIT_MESSAGE",
    )
    assert end.msg_type == MessageType.TRANSACTION_COMMIT
    assert (end.transaction_id, end.from_transaction_check) == (sent["id"], False)


@pytest.mark.parametrize("kind", ["cpp", "node"])
def test_trace_records_in_bodies_of_clients_without_tracing(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Carried-{kind}", queues=1)
    records = [
        Pub(timestamp_ms=n, group="g", topic="t", msg_id=f"{kind}-{n}", body_bytes=n, cost_ms=1)
        for n in range(200)
    ]
    text = encode_trace(records).decode()
    clients.producer(f"PG-carried-{kind}").send(topic, [{"body": text}])
    eventually(lambda: bool(stored(shared_cluster, topic)), "the message", 60)
    (message,) = messages_of(shared_cluster, topic)
    decoded = decode_trace(message.decompressed_body())
    assert (decoded.records, decoded.broken_count) == (records, 0)
