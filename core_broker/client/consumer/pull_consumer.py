"""The pull consumer: the application chooses queues and offsets.

Compatible with RocketMQ's DefaultMQPullConsumer.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Final

from core_broker.client.consumer.allocate import sorted_queues
from core_broker.client.consumer.group_member import (
    BROADCAST_INSTANCE_NAME,
    offset_store,
)
from core_broker.client.consumer.listening import for_listener
from core_broker.client.consumer.queue_offsets import QueueOffsets
from core_broker.client.consumer.send_back import SendBack
from core_broker.client.consumer.settings import GroupSettings
from core_broker.client.hooks import HookChain
from core_broker.client.identity import now_ms
from core_broker.client.instance import ClientInstance
from core_broker.client.namespaces import with_namespace
from core_broker.client.producer_settings import ProducerSettings
from core_broker.client.pulling import Pull, decode_pull, read_raw_pull
from core_broker.client.results import PullResult
from core_broker.client.sender import Sender
from core_broker.client.service import Service
from core_broker.client.subscription import MessageSelector, build_subscription
from core_broker.errors import ClientError
from core_broker.message.model import MessageExt
from core_broker.message.topics import CLIENT_INNER_PRODUCER_GROUP, validate_group
from core_broker.remoting.bodies import (
    SUBSCRIBE_ALL,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    MessageQueue,
)
from core_broker.remoting.client import RpcHook
from core_broker.remoting.tls_client import ClientTls

PULL_COUNT: Final = 32
PULL_TIMEOUT_MS: Final = 10_000
#: Default wait of a blocking pull at the broker, ms.
SUSPEND_MS: Final = 20_000
RECONSUME_TIMES_MAX: Final = 16


class PullConsumer(Service):
    """Pulls from queues at offsets chosen by the application.

        async with PullConsumer("group", "127.0.0.1:9876") as consumer:
            for queue in await consumer.queues("orders"):
                result = await consumer.pull(queue, await consumer.committed(queue) or 0)
                await consumer.commit(queue, result.next_offset)

    A pull consumer does no allocation of queues, no caching and no automatic commits. Methods raise
    RequestRefused for a refusal by a broker, and TransportError when a broker does not answer.
    Belongs to the event loop of ``start``.
    """

    def __init__(
        self,
        group: str,
        namesrv_addr: str = "",
        *,
        message_model: MessageModel = MessageModel.CLUSTERING,
        namespace: str = "",
        settings: GroupSettings | None = None,
        rpc_hooks: Sequence[RpcHook] = (),
        tls: ClientTls | None = None,
    ) -> None:
        self.group = with_namespace(namespace, group)
        validate_group(self.group)
        self._namespace = namespace
        self._model = message_model
        self._instance = ClientInstance(
            namesrv_addr,
            name=f"consumer {self.group}",
            instance_name=(
                BROADCAST_INSTANCE_NAME if message_model is MessageModel.BROADCASTING else None
            ),
            heartbeat=self._heartbeat,
            rpc_hooks=rpc_hooks,
            tls=tls,
        )
        group_settings = replace(settings or GroupSettings(), model=message_model)
        self._offsets = offset_store(self._instance, self.group, group_settings)
        self._queue_offsets = QueueOffsets(self._instance)
        self._started = self._running = False

    @property
    def client_id(self) -> str:
        return self._instance.client_id

    async def start(self) -> None:
        """Start; works before any server is reachable. A pull consumer starts only once."""
        if self._started:
            raise ClientError(
                f"The consumer {self.group} was started before; create a new PullConsumer."
            )
        self._started = self._running = True
        self._instance.start()

    async def stop(self) -> None:
        """Unregister from the brokers and close all connections; may be called twice."""
        if self._running:
            self._running = False
            await self._instance.stop()

    async def queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a topic."""
        self._check_running()
        route = await self._instance.routes.route(with_namespace(self._namespace, topic))
        return sorted_queues(route.subscribe_queues)

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        count: int = PULL_COUNT,
        expression: str | MessageSelector = SUBSCRIBE_ALL,
        timeout_ms: int = PULL_TIMEOUT_MS,
    ) -> PullResult:
        """Pull stored messages from an offset on, without waiting for new messages."""
        return await self._pull(queue, offset, count, expression, 0, timeout_ms)

    async def pull_blocking(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        count: int = PULL_COUNT,
        expression: str | MessageSelector = SUBSCRIBE_ALL,
        suspend_ms: int = SUSPEND_MS,
    ) -> PullResult:
        """Like ``pull``, but the broker waits up to ``suspend_ms`` for messages; NO_NEW_MSG after
        the wait. Brokers check the wait time only every 5 s."""
        timeout_ms = suspend_ms + PULL_TIMEOUT_MS
        return await self._pull(queue, offset, count, expression, suspend_ms, timeout_ms)

    async def messages(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        expression: str | MessageSelector = SUBSCRIBE_ALL,
    ) -> AsyncIterator[MessageExt]:
        """The messages of a queue, from an offset to the end of the queue at the call."""
        end = await self.max_offset(queue)
        while offset < end:
            result = await self.pull(queue, offset, expression=expression)
            for message in result.messages:
                if message.queue_offset < end:
                    yield message
            if result.next_offset <= offset:
                return
            offset = result.next_offset

    async def min_offset(self, queue: MessageQueue) -> int:
        """The offset of the oldest message."""
        await self._ensure_route(queue)
        return await self._queue_offsets.min(queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """The offset of the next message."""
        await self._ensure_route(queue)
        return await self._queue_offsets.max(queue)

    async def offset_for_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message stored at or after a time."""
        await self._ensure_route(queue)
        return await self._queue_offsets.at(queue, timestamp_ms)

    async def committed(self, queue: MessageQueue) -> int | None:
        """The group's committed offset of a queue; None without a committed offset."""
        await self._ensure_route(queue)
        return await self._offsets.read(queue)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Commit an offset for the group, higher or lower than the committed offset."""
        await self._ensure_route(queue)
        await self._offsets.commit(queue, offset)

    async def send_back(self, message: MessageExt, delay_level: int = 0) -> bool:
        """Send a message back for a retry by the group; False when no broker stored the message."""
        self._check_running()
        sender = Sender(
            self._instance, CLIENT_INNER_PRODUCER_GROUP, ProducerSettings(), HookChain(())
        )
        back = SendBack(self._instance, sender, self.group, RECONSUME_TIMES_MAX, self._namespace)
        return await back.send_back(message, delay_level)

    async def _pull(
        self,
        queue: MessageQueue,
        offset: int,
        count: int,
        expression: str | MessageSelector,
        suspend_ms: int,
        timeout_ms: int,
    ) -> PullResult:
        await self._ensure_route(queue)
        if isinstance(expression, str):
            expression = MessageSelector.by_tag(expression)
        subscription = build_subscription(
            queue.topic, expression.expression, version=now_ms(), kind=expression.kind
        )
        pull = Pull(
            queue,
            self.group,
            offset,
            count,
            subscription=subscription.sub_string,
            sub_version=subscription.sub_version,
            expression_type=subscription.expression_type,
            suspend_ms=suspend_ms,
        )
        addr = self._instance.routes.addr(queue.broker_name)
        answer = await self._instance.pull(addr, pull, timeout_ms)
        result = decode_pull(read_raw_pull(answer, addr), queue.broker_name, subscription)
        for message in result.messages:
            for_listener(message, self.group, self._namespace)
        return result

    async def _ensure_route(self, queue: MessageQueue) -> None:
        self._check_running()
        await self._instance.routes.route(queue.topic)

    def _heartbeat(self, client_id: str) -> HeartbeatData:
        return HeartbeatData(
            client_id=client_id,
            consumer_data_set=[
                ConsumerData(
                    group_name=self.group,
                    consume_type=ConsumeType.CONSUME_ACTIVELY,
                    message_model=self._model,
                )
            ],
        )

    def _check_running(self) -> None:
        if not self._running:
            raise ClientError(f"The consumer {self.group} is not running; call start() first.")
