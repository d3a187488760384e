"""Incident handling with the console on Java brokers: offsets, dead letters, a message trace."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from console.gateway import Cluster, NotAllowedNow, gateway
from console.gateway.dead_letters.resend import Plan, Result, Target, resend
from console.gateway.dead_letters.search import DeadLetterFilter, search
from console.gateway.dead_letters.summary import summary
from console.gateway.offsets.plan import ResetMethod, ResetRequest, ResetTarget
from console.gateway.offsets.positions import positions
from console.gateway.offsets.reset import plan, reset
from console.gateway.traces.journey import NoTrace, journey
from core_broker.message.model import Message, MessageExt
from tests.api.stored import give_up, numbered, store
from tests.api.traffic import Traffic, poll
from tests.compat import installing
from tests.compat.test_client_on_java import java_cluster, registered

pytestmark = [pytest.mark.must_beat(10), pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 200)]

#: Timeout of a poll, seconds: online Java consumers reset their offsets after a notification.
WAIT_S = 90.0


@pytest.fixture(params=installing.JAVA_BROKER_VERSIONS)
def java(
    request: pytest.FixtureRequest, tmp_path: Path, settings: Settings, db: None
) -> Iterator[tuple[Cluster, Traffic]]:
    with java_cluster(request.param, tmp_path, trace_topic_enable="true") as addr:
        settings.CONSOLE_CLUSTERS = {"java": addr}
        traffic = Traffic(addr, asyncio.run(registered(addr)))
        try:
            yield gateway.cluster("java"), traffic
        finally:
            traffic.close()
            gateway.close()


def test_an_incident_from_reset_offsets_to_resent_dead_letters(
    java: tuple[Cluster, Traffic],
) -> None:
    cluster, traffic = java
    topic, group = traffic.topic("java"), traffic.group("java")
    poll(lambda: topic in traffic.admin(lambda admin: admin.topic_list()), WAIT_S)
    offsets_of_a_stopped_group(cluster, traffic, topic, group)
    offsets_of_a_running_group(cluster, traffic, topic, group)
    dead_letters(cluster, traffic, topic)


def where(cluster: Cluster, group: str, topic: str) -> list[int | None]:
    return [each.offset for each in cluster.ask(positions, group, topic).value]


def offsets_of_a_stopped_group(cluster: Cluster, traffic: Traffic, topic: str, group: str) -> None:
    for queue_id, count in ((0, 6), (1, 4)):
        store(traffic, *numbered(topic, count), queue_id=queue_id)
        traffic.commit(group, topic, queue_id, 2)
    poll(lambda: where(cluster, group, topic) == [2, 2], WAIT_S)
    second = cluster.ask(positions, group, topic).value[1].key
    for request, expected in (
        (ResetRequest(topic, ResetTarget.LATEST), [6, 4]),
        (ResetRequest(topic, ResetTarget.EARLIEST), [0, 0]),
        (ResetRequest(topic, ResetTarget.EXACT, offset=5), [5, 4]),
        (ResetRequest(topic, ResetTarget.SHIFT, by=-2), [3, 2]),
        (ResetRequest(topic, ResetTarget.EXACT, offset=1, queues=(second,)), [3, 1]),
        (ResetRequest(topic, ResetTarget.TIME, time_ms=2**42), [6, 4]),
    ):
        planned, outcomes = cluster.do(reset, group, request)
        assert [each.error for each in outcomes] == [None]
        assert {way for _broker, way in planned.methods} == {ResetMethod.COMMIT}
        assert where(cluster, group, topic) == expected, request


def offsets_of_a_running_group(cluster: Cluster, traffic: Traffic, topic: str, group: str) -> None:
    received: list[tuple[int, int]] = []

    def take(message: MessageExt) -> bool:
        received.append((message.queue_id, message.queue_offset))
        return True

    everything = [(0, n) for n in range(6)] + [(1, n) for n in range(4)]
    with traffic.consumer(group, topic, accepts=take):
        poll(lambda: online(cluster, group, topic), WAIT_S)
        cluster.do(reset, group, ResetRequest(topic, ResetTarget.EARLIEST))
        poll(lambda: sorted(set(received)) == everything, WAIT_S)
        exact = ResetRequest(topic, ResetTarget.EXACT, offset=3)
        ways = cluster.ask(plan, group, ResetRequest(topic, ResetTarget.LATEST)).value.methods
        if ResetMethod.TIME in dict(ways).values():
            with pytest.raises(NotAllowedNow, match="one time only"):
                cluster.do(reset, group, exact)
        else:
            received.clear()
            cluster.do(reset, group, exact)
            poll(lambda: sorted(received) == [(0, 3), (0, 4), (0, 5), (1, 3)], WAIT_S)
    poll(lambda: not online(cluster, group, topic), WAIT_S)


def online(cluster: Cluster, group: str, topic: str) -> tuple[Any, ...]:
    return cluster.ask(plan, group, ResetRequest(topic, ResetTarget.LATEST)).value.online


def dead_letters(cluster: Cluster, traffic: Traffic, topic: str) -> None:
    group = traffic.group("failing")
    sent = store(traffic, *(Message(topic, b"%d" % n, tags="t", keys=(f"k{n}",)) for n in range(3)))
    give_up(traffic, group, topic, sent)
    found = poll(lambda: cluster.ask(summary, group).value, WAIT_S)
    poll(lambda: (each := cluster.ask(summary, group).value) and each.count == 3, WAIT_S)
    assert found is not None
    [letter] = cluster.ask(search, group, DeadLetterFilter(key="k1", text="1")).value.rows
    [outcome] = cluster.do(
        resend, group, (letter.message.offset_msg_id,), Plan(Target.TOPIC, topic)
    )
    assert (outcome.result, outcome.topic) == (Result.SENT, topic)
    told = poll(lambda: journey_with_letter(cluster, sent[1].msg_id, topic), WAIT_S)
    assert told.reason in {NoTrace.NOT_YET, NoTrace.CLIENT_OFF}
    assert [each.standing.value for each in told.evidence.groups if each.group == group] in (
        [],
        ["dead_lettered"],
    )


def journey_with_letter(cluster: Cluster, msg_id: str, topic: str) -> Any:
    found = cluster.ask(journey, msg_id, topic).value
    return found if found.timeline is not None else None
