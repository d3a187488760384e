"""The lite pull consumer: pulls ahead in the background, and the application polls.

Compatible with RocketMQ's DefaultLitePullConsumer.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType

from core_broker.client.consumer.allocate import sorted_queues
from core_broker.client.consumer.group_member import Member
from core_broker.client.consumer.running_lite_pull import QueuesListener, RunningLitePull
from core_broker.client.consumer.settings import LitePullSettings
from core_broker.client.hooks import ClientHook
from core_broker.client.identity import now_ms
from core_broker.client.namespaces import with_namespace
from core_broker.client.service import Service
from core_broker.client.subscription import MessageSelector, build_subscription
from core_broker.errors import ClientError
from core_broker.message.model import MessageExt
from core_broker.message.topics import validate_group, validate_topic
from core_broker.remoting.bodies import (
    SUBSCRIBE_ALL,
    ConsumerRunningInfo,
    MessageModel,
    MessageQueue,
    SubscriptionData,
)
from core_broker.remoting.client import RpcHook
from core_broker.remoting.tls_client import ClientTls


class LitePullConsumer(Service):
    """Consumes at the pace of the application.

        async with LitePullConsumer("group", "127.0.0.1:9876") as consumer:
            consumer.subscribe("orders", "paid || shipped")
            async for message in consumer: ...

    ``subscribe`` shares the queues with the members of the group; ``assign`` takes exactly the
    given queues, without sharing. The two methods exclude each other. A message is delivered at
    least once: a polled message counts as consumed at the next poll, at ``commit``, or at ``stop``
    without an error. With ``auto_commit`` the offsets of consumed messages are committed in the
    background, without ``auto_commit`` only by ``commit``. The broker does not retry messages.

    Belongs to the event loop of ``start``; only one ``poll`` may run at a time.
    """

    def __init__(
        self,
        group: str,
        namesrv_addr: str = "",
        hooks: Sequence[ClientHook] = (),
        *,
        message_model: MessageModel | None = None,
        namespace: str = "",
        settings: LitePullSettings | None = None,
        rpc_hooks: Sequence[RpcHook] = (),
        tls: ClientTls | None = None,
    ) -> None:
        self.group = with_namespace(namespace, group)
        validate_group(self.group)
        settings = settings or LitePullSettings()
        self._settings = replace(settings, model=message_model) if message_model else settings
        self._member = Member(
            self.group, namesrv_addr, namespace, tuple(hooks), tuple(rpc_hooks), tls
        )
        self._subscriptions: dict[str, SubscriptionData] = {}
        self._assigned: set[MessageQueue] | None = None
        self._queue_listeners: dict[str, QueuesListener] = {}
        self._running: RunningLitePull | None = None

    def subscribe(self, topic: str, expression: str | MessageSelector = SUBSCRIBE_ALL) -> None:
        """Subscribe to a topic, or change the filter expression; also while running."""
        if self._assigned is not None:
            raise ClientError("Queues are assigned; subscribe and assign exclude each other.")
        self._set_subscription(self._full_name(topic), expression)
        if self._running:
            self._running.subscriptions_changed()

    def unsubscribe(self, topic: str) -> None:
        """Unsubscribe from a topic."""
        self._subscriptions.pop(self._full_name(topic), None)
        if self._running:
            self._running.subscriptions_changed()

    def assign(
        self,
        queues: Iterable[MessageQueue],
        expression: str | MessageSelector = SUBSCRIBE_ALL,
    ) -> None:
        """Consume exactly the given queues, in place of earlier assigned queues."""
        if self._assigned is None:
            if self._subscriptions or self._running:
                raise ClientError("Assign queues before the start, and without subscriptions.")
            self._assigned = set()
        self._assigned.clear()
        self._assigned.update(queues)
        for topic in {queue.topic for queue in self._assigned}:
            self._set_subscription(topic, expression)
        if self._running:
            self._running.queues_changed()

    def on_queues_changed(self, topic: str, listener: QueuesListener) -> None:
        """Call a function with the topic and the topic's queues after a change; the check runs
        every ``topic_check_interval_s``."""
        self._queue_listeners[self._full_name(topic)] = listener

    async def start(self) -> None:
        """Start pulling. Works before any server is reachable; failures are logged."""
        if self._running is not None:
            raise ClientError(f"The consumer {self.group} is running already.")
        running = RunningLitePull(
            self._member,
            self._settings,
            self._subscriptions,
            self._assigned,
            self._queue_listeners,
        )
        await running.start()
        self._running = running

    async def stop(self) -> None:
        """Stop pulling, commit, unregister; may be called twice. With ``auto_commit`` the messages
        of the last poll count as consumed."""
        await self._stop(last_poll_consumed=True)

    async def _stop(self, *, last_poll_consumed: bool) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.stop(last_poll_consumed=last_poll_consumed)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # After an error the messages of the last poll may be unprocessed.
        await self._stop(last_poll_consumed=error is None)

    async def poll(self, timeout_ms: int | None = None) -> list[MessageExt]:
        """The next messages of one queue, at most ``poll_count``; an empty list after the timeout.
        The messages of the previous poll count as consumed."""
        limit = self._settings.poll_timeout_ms if timeout_ms is None else timeout_ms
        return await self._started().poll(limit)

    async def __aiter__(self) -> AsyncIterator[MessageExt]:
        """Iterate over the messages until the consumer is stopped."""
        while self._running is not None:
            for message in await self.poll():
                yield message

    async def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Commit all polled messages including the last poll, or the given offsets."""
        await self._started().commit(offsets)

    async def committed(self, queue: MessageQueue) -> int | None:
        """The group's committed offset of a queue; None without a committed offset."""
        return await (await self._with_route(queue)).offsets.read(queue)

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue at an offset with the next poll, without committing. Raises ClientError when
        the queue is not assigned to the member, or the offset is outside of the queue."""
        await (await self._with_route(queue)).seek(queue, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Continue with the oldest message."""
        running = await self._with_route(queue)
        await running.seek(queue, await running.queue_offsets.min(queue))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Continue with the next message stored from now on."""
        running = await self._with_route(queue)
        await running.seek(queue, await running.queue_offsets.max(queue))

    async def seek_to_time(self, queue: MessageQueue, timestamp_ms: int) -> None:
        """Continue with the first message stored at or after a time."""
        await self.seek(queue, await self.offset_for_timestamp(queue, timestamp_ms))

    async def offset_for_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message stored at or after a time."""
        return await (await self._with_route(queue)).queue_offsets.at(queue, timestamp_ms)

    async def fetch_queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a topic, including queues of other members."""
        route = await self._started().instance.routes.route(self._full_name(topic))
        return sorted_queues(route.subscribe_queues)

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Stop pulling from the queues, and do not return their messages from ``poll``."""
        self._started().paused.update(queues)

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Resume paused queues."""
        running = self._started()
        running.paused.difference_update(queues)
        running.queues_changed()

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues assigned to the member now."""
        return sorted(self._running.process_queues()) if self._running else []

    @property
    def client_id(self) -> str:
        """The client id of the running consumer; "" when stopped."""
        return self._running.instance.client_id if self._running else ""

    def running_info(self) -> ConsumerRunningInfo | None:
        """The running info as sent to tools (code 307); None when stopped."""
        return self._running.running_info() if self._running else None

    def _started(self) -> RunningLitePull:
        if self._running is None:
            raise ClientError(f"The consumer {self.group} is not running; call start() first.")
        return self._running

    async def _with_route(self, queue: MessageQueue) -> RunningLitePull:
        """The running consumer, after fetching the queue's route."""
        running = self._started()
        await running.instance.routes.route(queue.topic)
        return running

    def _full_name(self, topic: str) -> str:
        return with_namespace(self._member.namespace, topic)

    def _set_subscription(self, topic: str, expression: str | MessageSelector) -> None:
        validate_topic(topic)
        if isinstance(expression, str):
            expression = MessageSelector.by_tag(expression)
        self._subscriptions[topic] = build_subscription(
            topic, expression.expression, version=now_ms(), kind=expression.kind
        )
