"""Transactions and request-reply between Gantry clients, by a real broker."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from core_broker.client import (
    AdminClient,
    ConsumeFromWhere,
    ConsumerSettings,
    ConsumeStatus,
    LocalTransactionState,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    TransactionProducer,
)
from tests.client.receiving import ClusterAddrs
from tests.support.eventually import eventually

NewTopic = Callable[..., Awaitable[str]]

COMMIT, ROLLBACK = LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.ROLLBACK_MESSAGE
UNKNOW = LocalTransactionState.UNKNOW
FROM_FIRST = ConsumerSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)


class Bank:
    """Local transactions with the state given by the caller; records executions and checks."""

    def __init__(self) -> None:
        self.executed: dict[str, str] = {}
        self.checked: dict[str, MessageExt] = {}

    async def execute(self, message: Message, arg: Any) -> LocalTransactionState:
        assert message.msg_id is not None
        self.executed[message.body.decode()] = message.msg_id
        return arg  # type: ignore[no-any-return]

    def check(self, message: MessageExt) -> LocalTransactionState:
        """A plain function: runs in a thread, like a database query."""
        text = message.body.decode()
        self.checked[text] = message
        return COMMIT if text.endswith("committed at last") else ROLLBACK


async def bodies(admin: AdminClient, addr: str, topic: str) -> list[bytes]:
    pulled = await admin.pull(addr, topic, 0, 0, 32)
    return [message.body for message in pulled.messages]


@pytest.mark.on_java
async def test_only_what_was_committed_is_delivered(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str
) -> None:
    topic, addr, bank = await new_topic(1), quick_cluster.broker_addr, Bank()
    async with TransactionProducer(
        group, quick_cluster.namesrv_addr, execute=bank.execute, check=bank.check
    ) as producer:
        results = {
            text: await producer.send_in_transaction(
                Message(topic, text.encode(), tags="A", keys=[text.replace(" ", "-")]), state
            )
            for text, state in (
                ("committed", COMMIT),
                ("rolled back", ROLLBACK),
                ("unknown, committed at last", UNKNOW),
                ("unknown, rolled back", UNKNOW),
            )
        }

        async def all_there() -> bool:
            return len(await bodies(admin, addr, topic)) >= 2 and len(bank.checked) >= 2

        await eventually(all_there)
    assert await bodies(admin, addr, topic) == [b"committed", b"unknown, committed at last"]
    # A second round of checks must not check ended transactions.
    assert set(bank.checked) == {"unknown, committed at last", "unknown, rolled back"}
    for text, message in bank.checked.items():
        assert message.msg_id == bank.executed[text] == results[text].transaction_id
        assert (message.topic, message.tags) == (topic, "A")


@pytest.mark.on_java
async def test_another_producer_of_the_group_is_asked(
    quick_cluster: ClusterAddrs, admin: AdminClient, new_topic: NewTopic, group: str
) -> None:
    topic, first, second = await new_topic(1), Bank(), Bank()
    namesrv = quick_cluster.namesrv_addr
    async with TransactionProducer(
        group, namesrv, execute=first.execute, check=first.check
    ) as producer:
        await producer.send_in_transaction(Message(topic, b"committed at last"), UNKNOW)
        async with TransactionProducer(
            group, namesrv, execute=second.execute, check=second.check
        ) as other:
            await other.send_in_transaction(Message(topic, b"its own"), COMMIT)
            await producer.stop()

            async def both_there() -> bool:
                return len(await bodies(admin, quick_cluster.broker_addr, topic)) == 2

            await eventually(both_there)
    assert set(first.checked) | set(second.checked) == {"committed at last"}


@pytest.mark.on_java
async def test_a_request_and_its_reply(
    quick_cluster: ClusterAddrs, new_topic: NewTopic, group: str
) -> None:
    topic, namesrv = await new_topic(2), quick_cluster.namesrv_addr
    consumer = PushConsumer(f"{group}-servers", namesrv, settings=FROM_FIRST)
    consumer.subscribe(topic)
    async with Producer(f"{group}-replies", namesrv) as replying:

        @consumer.listener
        async def serve(messages: list[MessageExt]) -> ConsumeStatus:
            for message in messages:
                await replying.reply(message, b"re: " + message.body)
            return ConsumeStatus.CONSUME_SUCCESS

        async with consumer, Producer(group, namesrv) as asking:
            replies = await asyncio.gather(
                *(
                    asking.request(Message(topic, b"%d" % number), timeout_ms=60_000)
                    for number in range(10)
                ),
                asking.request(Message(topic, b"x" * 9_000), timeout_ms=60_000),
            )
    assert [reply.body for reply in replies[:10]] == [b"re: %d" % number for number in range(10)]
    assert replies[10].body == b"re: " + b"x" * 9_000
    assert "PUSH_REPLY_TIME" in replies[0].properties
