"""processors/assignments.py: the broker assigns queues to consumers (400)."""

from typing import Any

import pytest

from core_broker.errors import ConnectFailed
from core_broker.processors import assignments
from core_broker.remoting.bodies import (
    BrokerData,
    ConsumerData,
    HeartbeatData,
    QueryAssignmentResponseBody,
    QueueData,
    SubscriptionData,
    TopicRouteData,
    decode_body,
)
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.support.broker_harness import BrokerHarness


async def join(broker: BrokerHarness, *client_ids: str) -> None:
    for client_id in client_ids:
        consumer = ConsumerData(
            group_name="CG", subscription_data_set=[SubscriptionData(topic="T")]
        )
        beat = HeartbeatData(client_id=client_id, consumer_data_set=[consumer])
        answer = await broker.ask(RequestCode.HEART_BEAT, body=beat, peer=broker.peer())
        assert answer.code == 0


async def query(broker: BrokerHarness, client_id: str = "c1", **fields: Any) -> RemotingCommand:
    body = {"topic": "T", "consumerGroup": "CG", "clientId": client_id, "strategyName": "AVG"}
    return await broker.ask(RequestCode.QUERY_ASSIGNMENT, body=body | fields)


def queues(answer: RemotingCommand) -> list[str] | None:
    """The assigned queues as broker:queue; None for an unknown assignment."""
    assert answer.code == 0, answer.remark
    given = decode_body(QueryAssignmentResponseBody, answer.body).message_queue_assignments
    if given is None:
        return None
    return [f"{each.message_queue.broker_name}:{each.message_queue.queue_id}" for each in given]


def route(**queue_nums: int) -> TopicRouteData:
    return TopicRouteData(
        queue_datas=[
            QueueData(broker_name=name, read_queue_nums=nums, write_queue_nums=nums, perm=6)
            for name, nums in queue_nums.items()
        ],
        broker_datas=[BrokerData(broker_name=name) for name in queue_nums],
    )


async def test_the_answer_has_javas_form(broker: BrokerHarness) -> None:
    broker.topic("T", queues=1)
    await join(broker, "c1")
    assert (await query(broker)).body == (
        b'{"messageQueueAssignments":[{"messageQueue":'
        b'{"brokerName":"b","queueId":0,"topic":"T"},"mode":"PULL"}]}'
    )


@pytest.mark.parametrize(
    ("strategy", "first", "second"),
    [
        ("AVG", ["a:0", "a:1"], ["b:0"]),
        ("AVG_BY_CIRCLE", ["a:0", "b:0"], ["a:1"]),
    ],
)
async def test_members_divide_the_queues_of_all_brokers(
    broker: BrokerHarness, strategy: str, first: list[str], second: list[str]
) -> None:
    broker.registrar.routes["T"] = route(b=1, a=2)
    await join(broker, "c2", "c1")
    assert queues(await query(broker, "c1", strategyName=strategy)) == first
    assert queues(await query(broker, "c2", strategyName=strategy)) == second


async def test_a_broadcasting_consumer_gets_all_queues(broker: BrokerHarness) -> None:
    broker.registrar.routes["T"] = route(b=2)
    for model in ("BROADCASTING", 0):
        assert queues(await query(broker, "any", messageModel=model)) == ["b:0", "b:1"]


async def test_queues_without_read_permission_are_left_out(broker: BrokerHarness) -> None:
    broker.registrar.routes["T"] = route(a=1, b=1)
    broker.registrar.routes["T"].queue_datas[0].perm = 2
    await join(broker, "c1")
    assert queues(await query(broker)) == ["b:0"]


@pytest.mark.parametrize("name", ["T", "Missing"])
async def test_an_unknown_assignment_leaves_the_consumer_its_queues(
    broker: BrokerHarness, name: str
) -> None:
    broker.topic("T")
    await join(broker, "c1")
    # No member yet, or no such topic.
    client_id = "c2" if name == "T" else "c1"
    answer = await query(broker, client_id, topic=name)
    assert (answer.code, answer.body) == (0, b"{}")


async def test_a_route_is_queried_once_while_fresh(broker: BrokerHarness) -> None:
    broker.registrar.routes["T"] = route(b=1)
    await join(broker, "c1")
    for _ in range(3):
        assert queues(await query(broker)) == ["b:0"]
    assert broker.registrar.asked == ["T"]
    broker.now_ms += assignments.ROUTE_AGE_MS
    broker.registrar.routes["T"] = route(b=2)
    assert queues(await query(broker)) == ["b:0", "b:1"]
    assert broker.registrar.asked == ["T", "T"]


async def test_the_routes_in_memory_are_bounded(
    broker: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assignments, "ROUTES_MAX", 2)
    for name in ("a", "b", "c", "d", "a"):
        await query(broker, topic=name)
    assert broker.registrar.asked == ["a", "b", "c", "d", "a"]


async def test_without_a_name_server_nothing_is_assigned(broker: BrokerHarness) -> None:
    broker.topic("T")
    await join(broker, "c1")
    broker.registrar.route_failure = ConnectFailed("127.0.0.1:9876")
    answer = await query(broker)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == (
        "no name server answers for the route of T: Cannot connect to 127.0.0.1:9876."
    )
    broker.registrar.route_failure = None
    assert queues(await query(broker)) is not None


@pytest.mark.parametrize("strategy", ["CONFIG", "", "avg"])
async def test_a_strategy_that_the_broker_lacks(broker: BrokerHarness, strategy: str) -> None:
    answer = await query(broker, strategyName=strategy)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert answer.remark == (
        f"the broker has no allocation strategy {strategy!r}, only AVG and AVG_BY_CIRCLE; "
        "set clientRebalance=true in the consumer"
    )


@pytest.mark.parametrize(
    "fields", [{"topic": None}, {"clientId": 5}, {"messageModel": 9}, {"strategyName": None}]
)
async def test_a_malformed_query(broker: BrokerHarness, fields: dict[str, object]) -> None:
    assert (await query(broker, **fields)).code == ResponseCode.SYSTEM_ERROR
