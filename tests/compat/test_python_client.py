"""Gantry's own client signs as an application, through enforced TLS: every kind of operation."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core_broker.client import (
    AclRpcHook,
    ClientTls,
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    ConsumerSettings,
    ConsumeStatus,
    LitePullConsumer,
    LitePullSettings,
    LocalTransactionState,
    Message,
    MessageExt,
    MessageModel,
    Producer,
    PullConsumer,
    PushConsumer,
    TransactionProducer,
    sync,
)
from core_broker.errors import GantryError
from core_broker.message.topics import TRACE_TOPIC
from tests.compat.broker_state import create_topic, lag, stored_count
from tests.compat.conftest import SecuredClusters
from tests.compat.secured import APPLICATION, GENERATIONS, SecuredCluster, secret_of
from tests.support.eventually import eventually
from trace.hooks import TraceHook

#: Generous: rebalances and checks of a busy machine.
WAIT_S = 60.0
FROM_FIRST = ConsumerSettings(
    consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    commit_interval_s=0.1,
    suspend_current_queue_ms=10,
)
KEY = AclRpcHook(APPLICATION, secret_of(APPLICATION))
COMMIT, UNKNOW = LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.UNKNOW


@dataclass(frozen=True)
class Stage:
    """A cluster with TLS, and the arguments of its clients."""

    cluster: SecuredCluster
    namesrv_addr: str
    access: dict[str, Any]

    async def topic(self, name: str, queues: int = 1) -> str:
        return await asyncio.to_thread(create_topic, self.cluster, name, queues)

    async def stored(self, topic: str) -> int:
        return await asyncio.to_thread(stored_count, self.cluster, topic)

    async def is_consumed(self, group: str, topic: str) -> bool:
        return await asyncio.to_thread(lag, self.cluster, group, topic) == 0

    def producer(self, group: str, **options: Any) -> Producer:
        return Producer(group, self.namesrv_addr, **options, **self.access)

    def consumer(self, group: str, topic: str, **options: Any) -> PushConsumer:
        options = {"settings": FROM_FIRST} | options | self.access
        consumer = PushConsumer(group, self.namesrv_addr, **options)
        consumer.subscribe(topic)
        return consumer


@pytest.fixture(params=GENERATIONS)
async def stage(
    request: pytest.FixtureRequest, secured_clusters: SecuredClusters
) -> AsyncIterator[Stage]:
    """Nothing of a test is refused."""
    cluster = await asyncio.to_thread(secured_clusters.get, request.param, has_tls=True)
    tls = ClientTls(trust_cert_path=secured_clusters.encryption.ca)
    before = await asyncio.to_thread(cluster.refusals)
    yield Stage(cluster, cluster.namesrv_addr, {"rpc_hooks": [KEY], "tls": tls})
    assert await asyncio.to_thread(cluster.refusals) == before, cluster.broker.printed


def into(bodies: Counter[bytes], consumer: PushConsumer) -> None:
    """Count the bodies that a consumer receives."""

    @consumer.listener
    async def take(messages: list[MessageExt]) -> ConsumeStatus:
        bodies.update(message.body for message in messages)
        return ConsumeStatus.CONSUME_SUCCESS


async def test_sends_and_consumers(stage: Stage) -> None:
    topic = await stage.topic("PySends", queues=2)
    expected = {b"single", b"large" * 20_000, b"one-way", b"delayed", b"batch 1", b"batch 2"}
    async with stage.producer("PG-py-sends") as producer:
        await producer.send(Message(topic, b"single", keys="key"))
        await producer.send(Message(topic, b"large" * 20_000))
        await producer.send_oneway(Message(topic, b"one-way"))
        await producer.send(Message(topic, b"delayed", delay_level=1))
        await producer.send_batch([Message(topic, b"batch 1"), Message(topic, b"batch 2")])
    bodies = Counter[bytes]()
    pushed = stage.consumer("CG-py-push", topic)
    into(bodies, pushed)
    async with pushed:
        await eventually(lambda: bodies.keys() == expected, WAIT_S)

    pulled = set[bytes]()
    async with PullConsumer("CG-py-pull", stage.namesrv_addr, **stage.access) as pulling:
        for queue in await pulling.queues(topic):
            offset, end = await pulling.min_offset(queue), await pulling.max_offset(queue)
            while offset < end:
                found = await pulling.pull(queue, offset)
                pulled |= {message.body for message in found.messages}
                offset = found.next_offset
            await pulling.commit(queue, end)
    assert pulled == expected
    assert await stage.is_consumed("CG-py-pull", topic)

    settings = LitePullSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    polled = set[bytes]()
    async with LitePullConsumer(
        "CG-py-lite", stage.namesrv_addr, settings=settings, **stage.access
    ) as polling:
        polling.subscribe(topic)

        async def all_polled() -> bool:
            polled.update(message.body for message in await polling.poll(200))
            return polled == expected

        await eventually(all_polled, WAIT_S)
        await polling.commit()
    await eventually(partial(stage.is_consumed, "CG-py-lite", topic), WAIT_S)


async def test_orderly_and_broadcasting_consumers(stage: Stage, tmp_path: Path) -> None:
    topic = await stage.topic("PyOrdered", queues=2)
    async with stage.producer("PG-py-ordered") as producer:
        for number in range(20):
            await producer.send_ordered(Message(topic, b"%d" % number), "one key")
    in_order: list[bytes] = []
    orderly = stage.consumer("CG-py-orderly", topic)

    @orderly.orderly_listener
    async def take(messages: list[MessageExt]) -> ConsumeOrderlyStatus:
        in_order.extend(message.body for message in messages)
        return ConsumeOrderlyStatus.SUCCESS

    async with orderly:
        await eventually(lambda: len(in_order) >= 20, WAIT_S)
    assert list(dict.fromkeys(in_order)) == [b"%d" % number for number in range(20)]

    received = {name: Counter[bytes]() for name in ("one", "two")}
    members = []
    for name, bodies in received.items():
        settings = replace(
            FROM_FIRST, model=MessageModel.BROADCASTING, local_offsets=tmp_path / name
        )
        members.append(stage.consumer("CG-py-all", topic, settings=settings))
        into(bodies, members[-1])
    async with members[0], members[1]:
        await eventually(lambda: all(len(each) == 20 for each in received.values()), WAIT_S)


async def test_transactions_and_requests(stage: Stage) -> None:
    topic = await stage.topic("PyTransactions")

    async def execute(message: Message, state: Any) -> LocalTransactionState:
        return LocalTransactionState(state)

    async def check(message: MessageExt) -> LocalTransactionState:
        return COMMIT

    async with TransactionProducer(
        "PG-py-transactions", stage.namesrv_addr, execute=execute, check=check, **stage.access
    ) as producer:
        for state in (COMMIT, LocalTransactionState.ROLLBACK_MESSAGE, UNKNOW):
            await producer.send_in_transaction(Message(topic, state.encode()), state)

        async def both_stored() -> bool:
            return await stage.stored(topic) == 2

        await eventually(both_stored, WAIT_S)

    questions = await stage.topic("PyQuestions")
    answering = stage.consumer("CG-py-questions", questions)
    async with stage.producer("PG-py-replies") as replying:

        @answering.listener
        async def serve(messages: list[MessageExt]) -> ConsumeStatus:
            for message in messages:
                await replying.reply(message, b"re: " + message.body)
            return ConsumeStatus.CONSUME_SUCCESS

        async with answering, stage.producer("PG-py-questions") as asking:
            reply = await asking.request(Message(questions, b"question"), timeout_ms=60_000)
    assert reply.body == b"re: question"


async def test_retries_dead_letters_and_traces(stage: Stage) -> None:
    """Retry and dead-letter topics need no permission but the group's."""
    topic, group = await stage.topic("PyFails"), "CG-py-fails"
    traced = await stage.stored(TRACE_TOPIC)
    attempts: list[int] = []
    failing = stage.consumer(
        group,
        topic,
        hooks=(TraceHook(**stage.access),),
        settings=replace(FROM_FIRST, max_reconsume_times=2),
    )

    @failing.listener
    async def fail(messages: list[MessageExt]) -> ConsumeStatus:
        attempts.extend(message.reconsume_times for message in messages)
        return ConsumeStatus.RECONSUME_LATER

    async with (
        failing,
        stage.producer("PG-py-fails", hooks=(TraceHook(**stage.access),)) as producer,
    ):
        await producer.send(Message(topic, b"poison"))

        async def is_dead() -> bool:
            return await stage.stored(f"%DLQ%{group}") == 1

        await eventually(is_dead, WAIT_S)
    assert attempts == [0, 1, 2]
    assert await stage.stored(TRACE_TOPIC) > traced


async def test_blocking_clients(stage: Stage) -> None:
    topic = await stage.topic("PyBlocking")
    bodies = Counter[bytes]()

    def send_and_receive() -> None:
        consumer = sync.PushConsumer(
            "CG-py-blocking", stage.namesrv_addr, settings=FROM_FIRST, **stage.access
        )
        consumer.subscribe(topic)

        @consumer.listener
        def take(messages: list[MessageExt]) -> ConsumeStatus:
            bodies.update(message.body for message in messages)
            return ConsumeStatus.CONSUME_SUCCESS

        with sync.Producer("PG-py-blocking", stage.namesrv_addr, **stage.access) as producer:
            producer.send(Message(topic, b"blocking"))
        with consumer:
            asyncio.run(eventually(lambda: bodies.keys() == {b"blocking"}, WAIT_S))

    await asyncio.to_thread(send_and_receive)


async def test_a_client_without_tls_is_not_served(stage: Stage) -> None:
    topic = await stage.topic("PyPlain")
    async with Producer("PG-py-plain", stage.namesrv_addr, rpc_hooks=[KEY]) as plain:
        with pytest.raises(GantryError):
            await plain.send(Message(topic, b"refused"))
    assert await stage.stored(topic) == 0
