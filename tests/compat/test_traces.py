"""Traces that foreign clients write, read to the last field.

The Java clients of both lines trace by themselves. The C++ and Node clients have no trace of their
own: what they can do is carry trace records that an application made, as the body of a message.
"""

from collections.abc import Callable
from functools import partial

import pytest

from core_broker.client import AdminClient, PullResult, PullStatus
from core_broker.message.model import MessageExt
from core_broker.message.topics import TRACE_TOPIC
from tests.compat.conftest import Maker
from tests.compat.looking import ask, create_topic, eventually, stored
from tests.support.cluster import Cluster
from trace.codec import (
    DecodedTrace,
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
    """All messages of a topic."""
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
    """What the trace topic holds, decoded."""
    found = messages_of(cluster, TRACE_TOPIC)
    return [decode_trace(message.decompressed_body()) for message in found]


def timeline_of(cluster: Cluster, msg_id: str) -> Timeline:
    records = [record for trace in traces_of(cluster) for record in trace.records]
    return build_timeline(records, msg_id=msg_id)


def records_about(cluster: Cluster, msg_id: str) -> dict[type[TraceRecord], TraceRecord]:
    """The records about a message by kind; none of any message may be broken."""
    traces = traces_of(cluster)
    assert [broken for trace in traces for broken in trace.broken] == []
    every = (record for trace in traces for record in trace.records)
    return {type(record): record for record in every if record.msg_id == msg_id}


def is_sent(cluster: Cluster, msg_id: str) -> bool:
    return Pub in records_about(cluster, msg_id)


@pytest.mark.parametrize("kind", ["java", "java5"])
def test_sends_traced_by_java_decode_fully(
    kind: str, shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients(kind, shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, f"Traced-{kind}", queues=1)
    producer = clients.producer(f"PG-traced-{kind}", trace=True)
    sent = producer.send(topic, [{"body": f"b{n}", "keys": f"k{n}", "tag": "T"} for n in range(3)])
    for each in sent:
        is_told = partial(is_sent, shared_cluster, each["id"])
        eventually(is_told, f"the trace of {each['id']}", 30)
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


def test_a_journey_traced_by_java(shared_cluster: Cluster, start_clients: StartClients) -> None:
    clients = start_clients("java", shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, "Traced-journey", queues=1)
    consumer = clients.consumer("CG-traced", topic, trace=True)
    (sent,) = clients.producer("PG-traced", trace=True).send(topic, [{"body": "b", "keys": "k1"}])
    consumer.wait_for("message", 1)
    eventually(
        lambda: records_about(shared_cluster, sent["id"]).keys() >= {Pub, SubBefore, SubAfter},
        "the traces of both sides",
        30,
    )
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
    assert (before.group, before.retry_times, before.keys) == ("CG-traced", 0, "k1")
    assert before.request_id == after.request_id
    assert (after.success, after.context_code, after.group) == (True, 0, "CG-traced")
    assert after.timestamp_ms is not None
    assert after.timestamp_ms >= before.timestamp_ms


@pytest.mark.parametrize("kind", ["cpp", "node"])
def test_trace_records_in_bodies_of_clients_without_a_trace(
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
    eventually(lambda: bool(stored(shared_cluster, topic)), "the message", 10)
    (message,) = messages_of(shared_cluster, topic)
    decoded = decode_trace(message.decompressed_body())
    assert (decoded.records, decoded.broken_count) == (records, 0)
