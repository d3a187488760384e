"""Traffic in a cluster for the console tests: topics, groups, messages, consumers.

All clients run on one event loop in a separate thread, because Django's test client blocks.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any, TypeVar
from uuid import uuid4

from console.gateway.engine.loop import GatewayLoop
from console.services.exports.tables import batched
from core_broker.client import (
    AdminClient,
    ClientHook,
    ConsumerSettings,
    ConsumeStatus,
    Producer,
    PushConsumer,
)
from core_broker.errors import TransportError
from core_broker.message.model import Message, MessageExt
from core_broker.message.topics import is_system_group, is_system_topic, reply_topic
from core_broker.remoting.bodies import (
    HeartbeatData,
    RegisterBrokerBody,
    SubscriptionGroupConfig,
    TopicConfig,
    TopicConfigSerializeWrapper,
    encode_body,
    encode_register_body,
)
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import RegisterBrokerRequestHeader

T = TypeVar("T")

WAIT_S = 60.0
SEND_MANY_S = 120.0
LOOK_S = 0.05
#: Brokers forget a client 120 s after its last heartbeat.
HEARTBEAT_S = 20.0


class Traffic:
    """Reads and changes one cluster directly, without the console."""

    def __init__(self, namesrv_addr: str, broker_addr: str) -> None:
        self.namesrv_addr = namesrv_addr
        self.broker_addr = broker_addr
        self._loop = GatewayLoop()

    def close(self) -> None:
        self._loop.stop()

    def admin(self, ask: Callable[[AdminClient], Awaitable[T]]) -> T:
        async def run() -> T:
            async with AdminClient(self.namesrv_addr) as admin:
                return await ask(admin)

        return self._loop.wait(run(), WAIT_S)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the event loop of the clients."""
        return self._loop.wait(work, WAIT_S)

    def clear(self) -> None:
        """Delete all topics and groups except system topics and groups."""

        async def delete(admin: AdminClient) -> None:
            clusters = (await admin.cluster_info()).cluster_addr_table
            own = {*clusters, *map(reply_topic, clusters), *chain(*clusters.values())}
            for topic in await admin.topic_configs(self.broker_addr):
                if not is_system_topic(topic) and topic not in own:
                    await admin.delete_topic_in_broker(self.broker_addr, topic)
                    await admin.delete_topic_in_namesrv(topic)
            for group in await admin.group_configs(self.broker_addr):
                if not is_system_group(group):
                    await admin.delete_group(self.broker_addr, group)

        self.admin(delete)

    def topic(self, prefix: str = "topic", **settings: int | bool) -> str:
        """Create a topic with a new name."""
        name = f"{prefix}-{uuid4().hex[:8]}"
        config = TopicConfig(
            topic_name=name, **{"read_queue_nums": 2, "write_queue_nums": 2, **settings}
        )
        self.admin(lambda admin: admin.create_topic(self.broker_addr, config))
        return name

    def group(self, prefix: str = "group", **settings: int | bool) -> str:
        """Create a group with a new name."""
        name = f"{prefix}-{uuid4().hex[:8]}"
        config = SubscriptionGroupConfig(group_name=name, **settings)
        self.admin(lambda admin: admin.create_group(self.broker_addr, config))
        return name

    def send(self, topic: str, count: int) -> None:
        async def run() -> None:
            async with Producer("console-tests", self.namesrv_addr) as producer:
                for number in range(count):
                    await producer.send(Message(topic, f"message {number}".encode()))

        self._loop.wait(run(), WAIT_S)

    def send_many(self, topic: str, bodies: Iterable[bytes], batch: int = 1_000) -> None:
        """Send many small messages, in batches over the topic's queues."""

        async def run() -> None:
            async with Producer("console-tests", self.namesrv_addr) as producer:
                for part in batched(bodies, batch):
                    await producer.send_batch([Message(topic, body) for body in part])

        self._loop.wait(run(), SEND_MANY_S)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Commit an offset of the group in a queue."""
        self.admin(
            lambda admin: admin.update_consumer_offset(
                self.broker_addr, group, topic, queue_id, offset
            )
        )

    @contextmanager
    def consumer(
        self,
        group: str,
        topic: str,
        expression: str = "*",
        *,
        accepts: Callable[[MessageExt], bool] = lambda _message: True,
        hooks: Sequence[ClientHook] = (),
        retries_max: int = 16,
        work: Callable[[], Awaitable[object]] | None = None,
    ) -> Iterator[PushConsumer]:
        """A consumer of the group; acknowledges messages that pass `accepts`, after `work`."""

        async def take(messages: list[MessageExt]) -> ConsumeStatus:
            if work is not None:
                await work()
            refused = [each for each in messages if not accepts(each)]
            return ConsumeStatus.RECONSUME_LATER if refused else ConsumeStatus.CONSUME_SUCCESS

        async def start() -> PushConsumer:
            settings = ConsumerSettings(max_reconsume_times=retries_max)
            consumer = PushConsumer(group, self.namesrv_addr, hooks, settings=settings)
            consumer.subscribe(topic, expression)
            consumer.listener(take)
            await consumer.start()
            return consumer

        consumer = self._loop.wait(start(), WAIT_S)
        try:
            yield consumer
        finally:
            self._loop.wait(consumer.stop(), WAIT_S)

    @contextmanager
    def foreign_client(self, beat: HeartbeatData) -> Iterator[None]:
        """A client of another implementation: a connection and its heartbeats."""

        async def send(remoting: RemotingClient) -> None:
            request = RemotingCommand.request(RequestCode.HEART_BEAT, None, encode_body(beat))
            answer = await remoting.invoke(self.broker_addr, request)
            assert answer.code == 0, answer.remark

        async def start() -> RemotingClient:
            remoting = RemotingClient(name="foreign client")
            await send(remoting)
            return remoting

        async def repeat(remoting: RemotingClient) -> None:
            while True:
                await asyncio.sleep(HEARTBEAT_S)
                with suppress(TransportError):
                    await send(remoting)

        client = self._loop.wait(start(), WAIT_S)
        beats = self._loop.submit(repeat(client))
        try:
            yield
        finally:
            beats.cancel()
            self._loop.wait(client.close(), WAIT_S)

    @contextmanager
    def dead_broker(self, addr: str, prefix: str = "broker") -> Iterator[str]:
        """A broker with a registration at the name server and an unreachable address."""
        name = f"{prefix}-{uuid4().hex[:6]}"
        with self.registered(name, addr):
            yield name
        # The name server removes a broker shortly after the end of the connection.
        poll(lambda: name not in self.admin(lambda admin: admin.cluster_info()).broker_addr_table)

    @contextmanager
    def registered(self, name: str, addr: str, broker_id: int = 0) -> Iterator[None]:
        """Register an address as a broker process at the name server, until the end."""
        header = RegisterBrokerRequestHeader(
            broker_name=name,
            broker_addr=addr,
            cluster_name="DefaultCluster",
            ha_server_addr="",
            broker_id=broker_id,
        )
        topics = TopicConfigSerializeWrapper(
            topic_config_table={name: TopicConfig(topic_name=name)}
        )
        body = encode_register_body(
            RegisterBrokerBody(topic_config_serialize_wrapper=topics), compressed=False
        )

        async def register() -> RemotingClient:
            remoting = RemotingClient(name="registered broker")
            request = RemotingCommand.request(RequestCode.REGISTER_BROKER, header, body)
            answer = await remoting.invoke(self.namesrv_addr, request)
            assert answer.code == 0, answer.remark
            return remoting

        client = self._loop.wait(register(), WAIT_S)
        try:
            yield
        finally:
            self._loop.wait(client.close(), WAIT_S)


def poll(look: Callable[[], T], timeout_s: float = WAIT_S) -> T:
    """Poll until the answer is true; fail at the deadline."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = look()
        if value:
            return value
        assert time.monotonic() < deadline, f"still {value!r} after {timeout_s} s"
        time.sleep(LOOK_S)
