"""A consumer recording the received messages."""

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from core_broker.client import (
    AdminClient,
    ClientHook,
    ConsumerSettings,
    ConsumeStatus,
    PushConsumer,
)
from core_broker.errors import RequestRefused
from core_broker.message.model import MessageExt
from core_broker.message.topics import dlq_topic
from core_broker.remoting.bodies import ConsumeFromWhere, ConsumeQueueData, MessageModel
from tests.support.eventually import eventually


class ClusterAddrs(Protocol):
    """The addresses of a cluster with one broker."""

    @property
    def namesrv_addr(self) -> str: ...
    @property
    def broker_addr(self) -> str: ...


Fails = Callable[[MessageExt], bool]


class Receiver:
    """All received messages, in the order of arrival."""

    def __init__(
        self,
        cluster: ClusterAddrs,
        group: str,
        topic: str,
        expression: str = "*",
        *,
        fails: Fails = lambda _: False,
        hooks: tuple[ClientHook, ...] = (),
        model: MessageModel = MessageModel.CLUSTERING,
        consume_from: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        settings: ConsumerSettings | None = None,
    ) -> None:
        self.messages: list[MessageExt] = []
        self._fails = fails
        settings = settings or ConsumerSettings(model=model, consume_from=consume_from)
        self.consumer = PushConsumer(group, cluster.namesrv_addr, hooks, settings=settings)
        self.consumer.subscribe(topic, expression)
        self.consumer.listener(self._listen)

    @property
    def bodies(self) -> Counter[bytes]:
        return Counter(message.body for message in self.messages)

    async def _listen(self, messages: list[MessageExt]) -> ConsumeStatus:
        self.messages += messages
        if any(map(self._fails, messages)):
            return ConsumeStatus.RECONSUME_LATER
        return ConsumeStatus.CONSUME_SUCCESS

    async def __aenter__(self) -> "Receiver":
        await self.consumer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.consumer.stop()


async def dead_letter_of(cluster: ClusterAddrs, admin: AdminClient, group: str) -> MessageExt:
    """Wait for the only dead letter of a group.

    A broker creates the topic, and registers it, before it stores the message.
    """

    async def letters() -> list[ConsumeQueueData]:
        try:
            topic = dlq_topic(group)
            return (await admin.consume_queue(cluster.broker_addr, topic, 0, 0, 10)).queue_data
        except RequestRefused as refused:
            if "is not exist" not in str(refused):
                raise
            return []

    (letter,) = await eventually(letters, timeout_s=90)
    return await admin.view_message(cluster.broker_addr, letter.physic_offset)
