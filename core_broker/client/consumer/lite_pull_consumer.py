"""The lite pull consumer: it pulls ahead in the background, and the application polls.

Compatible with RocketMQ's DefaultLitePullConsumer.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType

from core_broker.client.consumer.allocate import sorted_queues
from core_broker.client.consumer.group_member import Member
from core_broker.client.consumer.running_lite_pull import QueuesListener, RunningLitePull
from core_broker.client.hooks import ClientHook
from core_broker.client.identity import now_ms
from core_broker.client.namespaces import with_namespace
from core_broker.client.service import Service
from core_broker.client.settings import LitePullSettings
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


class LitePullConsumer(Service):
    """Consumes at the pace of the application.

        async with LitePullConsumer("group", "127.0.0.1:9876") as consumer:
            consumer.subscribe("orders", "paid || shipped")
            async for message in consumer: ...

    ``subscribe`` shares the queues with the other members of the group; ``assign`` takes exactly
    the given ones, whoever else reads them. One of the two, not both. A message is delivered at
    least once: it counts as consumed when the next poll begins, or on ``commit``, or on a ``stop``
    without an error. With ``auto_commit`` such offsets are committed by themselves; without it
    only by ``commit``. Nothing is retried by the broker.

    Belongs to the event loop it was started on; one ``poll`` at a time.
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
    ) -> None:
        self.group = with_namespace(namespace, group)
        validate_group(self.group)
        settings = settings or LitePullSettings()
        self._settings = replace(settings, model=message_model) if message_model else settings
        self._member = Member(self.group, namesrv_addr, namespace, tuple(hooks), tuple(rpc_hooks))
        self._subscriptions: dict[str, SubscriptionData] = {}
        self._assigned: set[MessageQueue] | None = None
        self._queue_listeners: dict[str, QueuesListener] = {}
        self._running: RunningLitePull | None = None

    def subscribe(self, topic: str, expression: str | MessageSelector = SUBSCRIBE_ALL) -> None:
        """Consume this member's share of a topic, or change what of it; also while running."""
        if self._assigned is not None:
            raise ClientError("Queues are assigned already; subscribe and assign exclude another.")
        self._read(self._full(topic), expression)
        if self._running:
            self._running.subscriptions_changed()

    def unsubscribe(self, topic: str) -> None:
        """Consume a topic no more."""
        self._subscriptions.pop(self._full(topic), None)
        if self._running:
            self._running.subscriptions_changed()

    def assign(
        self,
        queues: Iterable[MessageQueue],
        expression: str | MessageSelector = SUBSCRIBE_ALL,
    ) -> None:
        """Consume exactly these queues, in place of those assigned before."""
        if self._assigned is None:
            if self._subscriptions or self._running:
                raise ClientError("Assign queues before the start, and without any subscription.")
            self._assigned = set()
        self._assigned.clear()
        self._assigned.update(queues)
        for topic in {queue.topic for queue in self._assigned}:
            self._read(topic, expression)
        if self._running:
            self._running.queues_changed()

    def on_queues_changed(self, topic: str, listener: QueuesListener) -> None:
        """Call a function with the topic and its queues when those change, seen every 30 s."""
        self._queue_listeners[self._full(topic)] = listener

    async def start(self) -> None:
        """Begin to pull. No server needs to be there yet; what is missing is logged."""
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
        """Pull no more, commit, leave; may be called twice. With ``auto_commit`` what was polled
        last counts as consumed."""
        await self._stop(approve=True)

    async def _stop(self, *, approve: bool) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.stop(approve=approve)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # After an error, what was polled last was perhaps not dealt with.
        await self._stop(approve=error is None)

    async def poll(self, timeout_ms: int | None = None) -> list[MessageExt]:
        """The next messages of one queue, at most ``poll_count``; an empty list when none came
        in time. What the poll before gave counts as consumed now."""
        limit = self._settings.poll_timeout_ms if timeout_ms is None else timeout_ms
        return await self._started().poll(limit)

    async def __aiter__(self) -> AsyncIterator[MessageExt]:
        """All messages, one after the other, until the consumer is stopped."""
        while self._running is not None:
            for message in await self.poll():
                yield message

    async def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Commit what was polled so far, the last poll included; or the offsets given."""
        await self._started().commit(offsets)

    async def committed(self, queue: MessageQueue) -> int | None:
        """Where the group goes on in a queue; None when it never committed there."""
        return await (await self._reaches(queue)).offsets.read(queue)

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on at an offset with the next poll; raises ClientError when the queue is not
        this member's or has no such offset. Nothing is committed by it."""
        await (await self._reaches(queue)).seek(queue, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Go on with the oldest message."""
        running = await self._reaches(queue)
        await running.seek(queue, await running.queue_offsets.min(queue))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Go on with messages that are not stored yet."""
        running = await self._reaches(queue)
        await running.seek(queue, await running.queue_offsets.max(queue))

    async def seek_to_time(self, queue: MessageQueue, timestamp_ms: int) -> None:
        """Go on with the first message stored at this time or later."""
        await self.seek(queue, await self.offset_for_timestamp(queue, timestamp_ms))

    async def offset_for_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message stored at this time or later."""
        return await (await self._reaches(queue)).queue_offsets.at(queue, timestamp_ms)

    async def fetch_queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a topic, whoever has them."""
        route = await self._started().instance.routes.route(self._full(topic))
        return sorted_queues(route.subscribe_queues)

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Give nothing of these queues to ``poll`` and pull them no further."""
        self._started().paused.update(queues)

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Go on with paused queues."""
        running = self._started()
        running.paused.difference_update(queues)
        running.queues_changed()

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that this member has at the moment."""
        return sorted(self._running.process_queues()) if self._running else []

    @property
    def client_id(self) -> str:
        """The id under which brokers know this member; "" when it is not running."""
        return self._running.instance.client_id if self._running else ""

    def running_info(self) -> ConsumerRunningInfo | None:
        """What tools see of this member; None when it is not running."""
        return self._running.running_info() if self._running else None

    def _started(self) -> RunningLitePull:
        if self._running is None:
            raise ClientError(f"The consumer {self.group} is not running; call start() first.")
        return self._running

    async def _reaches(self, queue: MessageQueue) -> RunningLitePull:
        running = self._started()
        await running.instance.routes.route(queue.topic)
        return running

    def _full(self, topic: str) -> str:
        return with_namespace(self._member.namespace, topic)

    def _read(self, topic: str, expression: str | MessageSelector) -> None:
        validate_topic(topic)
        if isinstance(expression, str):
            expression = MessageSelector.by_tag(expression)
        self._subscriptions[topic] = build_subscription(
            topic, expression.expression, version=now_ms(), kind=expression.kind
        )
