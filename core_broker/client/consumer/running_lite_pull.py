"""A started lite pull consumer: polling on top of the common group member.

A polled message counts as consumed at the next poll or commit of the application.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping

from core_broker.client.consumer.group_member import GroupMember, Member
from core_broker.client.consumer.polling import PolledMessages
from core_broker.client.consumer.process_queue import ProcessQueue
from core_broker.client.consumer.puller import PullContext
from core_broker.client.consumer.settings import LitePullSettings
from core_broker.client.deadline import Deadline
from core_broker.client.identity import now_ms
from core_broker.client.loops import Loop
from core_broker.errors import ClientError, GantryError
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import ConsumeType, MessageQueue, SubscriptionData

#: Called with a topic and all readable queues of the topic, after a change of the queues.
QueuesListener = Callable[[str, list[MessageQueue]], Awaitable[None] | None]


class RunningLitePull(GroupMember):
    """The running part of a LitePullConsumer, from start to stop."""

    def __init__(
        self,
        member: Member,
        settings: LitePullSettings,
        subscriptions: Mapping[str, SubscriptionData],
        assigned: set[MessageQueue] | None,
        queue_listeners: Mapping[str, QueuesListener],
    ) -> None:
        # With assigned queues the member shares no queues: heartbeats carry no subscriptions.
        shared = {} if assigned is not None else subscriptions
        super().__init__(member, settings, shared, ConsumeType.CONSUME_ACTIVELY)
        self._lite_settings = settings
        self._assigned = assigned
        self._queue_listeners = queue_listeners
        self._queues_seen: dict[str, list[MessageQueue]] = {}
        self.paused: set[MessageQueue] = set()
        self._positions: dict[MessageQueue, int] = {}
        self._last_poll: tuple[ProcessQueue, list[MessageExt]] | None = None
        self._polled = PolledMessages(self._forget)
        self._is_polling = False
        self._last_poll_consumed = True
        context = PullContext(
            self.instance,
            self.group,
            settings,
            subscriptions,
            self.offsets,
            self._polled,
            stats=self._stats.__getitem__,
            announce=self.instance.wake_heartbeats,
            correct_offset=self._correct_offset,
            advance_offset=self._advance_offset,
            is_paused=self.paused.__contains__,
            lite=True,
            namespace=self.namespace,
        )
        if assigned is None:
            self._assemble(context, call=None)
        else:
            self._assemble(
                context, call=None, topics=self._assigned_topics, allocated=self._assigned_queues
            )
        self._topic_checks = Loop(
            f"consumer {self.group} topics", settings.topic_check_interval_s, self._check_topics
        )

    async def start(self) -> None:
        await super().start()
        self._topic_checks.start()

    async def stop(self, *, last_poll_consumed: bool = True) -> None:
        """Stop. With ``last_poll_consumed`` and auto_commit, the messages of the last poll count as
        consumed."""
        self._last_poll_consumed = last_poll_consumed and self._lite_settings.auto_commit
        self._polled.close()
        await self._topic_checks.stop()
        await super().stop()

    async def _drain(self) -> None:
        if self._last_poll_consumed:
            self._finish_last_poll()

    def queues_changed(self) -> None:
        """Apply a change of assigned or paused queues by the application."""
        self._rebalances.wake()
        self._polled.wake()

    async def poll(self, timeout_ms: int) -> list[MessageExt]:
        """Messages of one queue; an empty list after the timeout, or when the consumer stops."""
        if self._is_polling:
            raise ClientError(f"The consumer {self.group} already runs a poll; polls are serial.")
        self._is_polling = True
        try:
            self._finish_last_poll()
            return await self._next(Deadline(timeout_ms))
        finally:
            self._is_polling = False

    async def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Commit the polled messages, or the given offsets."""
        if offsets is None:
            self._finish_last_poll()
            offsets = dict(self._positions)
        process_queues = self._rebalancer.process_queues
        for queue, offset in offsets.items():
            if queue not in process_queues:
                raise ClientError(f"The queue {queue} is not assigned to this consumer.")
            await self.offsets.commit(queue, offset)

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue at an offset with the next poll."""
        own_queues = self._rebalancer.process_queues if self._assigned is None else self._assigned
        if queue not in own_queues:
            raise ClientError(f"The queue {queue} is not assigned to this consumer.")
        low = await self.queue_offsets.min(queue)
        high = await self.queue_offsets.max(queue)
        if not low <= offset <= high:
            raise ClientError(f"The offset {offset} of {queue} is not in {low} to {high}.")
        if self._last_poll is not None and self._last_poll[0].queue == queue:
            self._last_poll = None
        self._forget(queue)
        self._rebalancer.seek(queue, offset)
        self._rebalances.wake()

    async def _next(self, deadline: Deadline) -> list[MessageExt]:
        while not self._polled.closed:
            batch = self._polled.take(self._lite_settings.poll_count, self.paused.__contains__)
            if batch is not None:
                self._last_poll = batch
                return batch[1]
            if not await self._polled.arrival(deadline.left_ms() / 1000):
                break
        return []

    def _finish_last_poll(self) -> None:
        """Mark the messages of the last poll as consumed."""
        if self._last_poll is None:
            return
        process_queue, messages = self._last_poll
        self._last_poll = None
        offset = process_queue.finish(messages, now_ms())
        if offset is not None and not process_queue.dropped:
            self._advance_offset(process_queue.queue, offset)

    def _advance_offset(self, queue: MessageQueue, offset: int) -> None:
        self._positions[queue] = max(offset, self._positions.get(queue, 0))
        if self._lite_settings.auto_commit:
            self.offsets.update(queue, offset)

    def _forget(self, queue: MessageQueue) -> None:
        self._positions.pop(queue, None)

    def _assigned_topics(self) -> Iterable[str]:
        return {queue.topic for queue in self._assigned or ()}

    async def _assigned_queues(self, topic: str) -> list[MessageQueue]:
        await self.instance.routes.route(topic)
        return [queue for queue in self._assigned or () if queue.topic == topic]

    async def _check_topics(self) -> None:
        failure: GantryError | None = None
        for topic, listener in list(self._queue_listeners.items()):
            try:
                route = await self.instance.routes.route(topic)
            except GantryError as error:
                failure = error
                continue
            queues = sorted(route.subscribe_queues)
            previous = self._queues_seen.get(topic)
            self._queues_seen[topic] = queues
            if previous is not None and previous != queues:
                await _notify(listener, topic, queues)
        if failure:
            raise failure

    def _own_properties(self) -> dict[str, str]:
        return {"autoCommit": str(self._lite_settings.auto_commit).lower()}


async def _notify(listener: QueuesListener, topic: str, queues: list[MessageQueue]) -> None:
    result = listener(topic, queues)
    if inspect.isawaitable(result):
        await result
