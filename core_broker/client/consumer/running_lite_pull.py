"""A started lite pull consumer: what is polled, behind what all members of a group have in common.

A message counts as consumed when the application polls again, or commits.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping

from core_broker.client.consumer.group_member import GroupMember, Member
from core_broker.client.consumer.polling import PolledMessages
from core_broker.client.consumer.process_queue import ProcessQueue
from core_broker.client.consumer.puller import PullContext
from core_broker.client.deadline import Deadline
from core_broker.client.identity import now_ms
from core_broker.client.loops import Loop
from core_broker.client.settings import LitePullSettings
from core_broker.errors import ClientError, GantryError
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import ConsumeType, MessageQueue, SubscriptionData

#: Called with a topic and all its readable queues when those have changed.
QueuesListener = Callable[[str, list[MessageQueue]], Awaitable[None] | None]


class RunningLitePull(GroupMember):
    """Lives from start to stop of a LitePullConsumer."""

    def __init__(
        self,
        member: Member,
        settings: LitePullSettings,
        subscriptions: Mapping[str, SubscriptionData],
        assigned: set[MessageQueue] | None,
        queue_listeners: Mapping[str, QueuesListener],
    ) -> None:
        # Who assigns queues by hand shares nothing, so the brokers need not know what it reads.
        told = {} if assigned is not None else subscriptions
        super().__init__(member, settings, told, ConsumeType.CONSUME_ACTIVELY)
        self._lite_settings = settings
        self._assigned = assigned
        self._queue_listeners = queue_listeners
        self._queues_seen: dict[str, list[MessageQueue]] = {}
        self.paused: set[MessageQueue] = set()
        self._positions: dict[MessageQueue, int] = {}
        self._handed: tuple[ProcessQueue, list[MessageExt]] | None = None
        self._polled = PolledMessages(self._forget)
        self._is_polling = False
        self._approve_at_end = True
        context = PullContext(
            self.instance,
            self.group,
            settings,
            subscriptions,
            self.offsets,
            self._polled,
            stats=self._stats.__getitem__,
            announce=self.instance.wake_heartbeats,
            moved=self._moved,
            passed=self._passed,
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
        self._looks = Loop(
            f"consumer {self.group} topics", settings.topic_check_interval_s, self._look_at_topics
        )

    async def start(self) -> None:
        await super().start()
        self._looks.start()

    async def stop(self, *, approve: bool = True) -> None:
        """``approve`` counts what was polled last as consumed, when offsets commit themselves."""
        self._approve_at_end = approve and self._lite_settings.auto_commit
        self._polled.close()
        await self._looks.stop()
        await super().stop()

    async def _drain(self) -> None:
        if self._approve_at_end:
            self._approve()

    def queues_changed(self) -> None:
        """The application assigned other queues, or resumed some."""
        self._rebalances.wake()
        self._polled.wake()

    async def poll(self, timeout_ms: int) -> list[MessageExt]:
        """Messages of one queue; none when the time is over or the consumer stops."""
        if self._is_polling:
            raise ClientError(f"The consumer {self.group} is being polled already.")
        self._is_polling = True
        try:
            self._approve()
            return await self._next(Deadline(timeout_ms))
        finally:
            self._is_polling = False

    async def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Commit what was polled, or the offsets given."""
        if offsets is None:
            self._approve()
            offsets = dict(self._positions)
        held = self._rebalancer.process_queues
        for queue, offset in offsets.items():
            if queue not in held:
                raise ClientError(f"The queue {queue} is not assigned to this consumer.")
            await self.offsets.commit(queue, offset)

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on elsewhere with the next poll."""
        ours = self._rebalancer.process_queues if self._assigned is None else self._assigned
        if queue not in ours:
            raise ClientError(f"The queue {queue} is not assigned to this consumer.")
        low = await self.queue_offsets.min(queue)
        high = await self.queue_offsets.max(queue)
        if not low <= offset <= high:
            raise ClientError(f"The offset {offset} of {queue} is not in {low} to {high}.")
        if self._handed is not None and self._handed[0].queue == queue:
            self._handed = None
        self._forget(queue)
        self._rebalancer.seek(queue, offset)
        self._rebalances.wake()

    async def _next(self, deadline: Deadline) -> list[MessageExt]:
        while not self._polled.closed:
            found = self._polled.take(self._lite_settings.poll_count, self.paused.__contains__)
            if found is not None:
                self._handed = found
                return found[1]
            if not await self._polled.arrival(deadline.left_ms() / 1000):
                break
        return []

    def _approve(self) -> None:
        """What the last poll gave is consumed."""
        if self._handed is None:
            return
        process_queue, messages = self._handed
        self._handed = None
        offset = process_queue.finish(messages, now_ms())
        if offset is not None and not process_queue.dropped:
            self._passed(process_queue.queue, offset)

    def _passed(self, queue: MessageQueue, offset: int) -> None:
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

    async def _look_at_topics(self) -> None:
        failure: GantryError | None = None
        for topic, listener in list(self._queue_listeners.items()):
            try:
                route = await self.instance.routes.route(topic)
            except GantryError as error:
                failure = error
                continue
            queues = sorted(route.subscribe_queues)
            before = self._queues_seen.get(topic)
            self._queues_seen[topic] = queues
            if before is not None and before != queues:
                await _tell(listener, topic, queues)
        if failure:
            raise failure

    def _own_properties(self) -> dict[str, str]:
        return {"autoCommit": str(self._lite_settings.auto_commit).lower()}


async def _tell(listener: QueuesListener, topic: str, queues: list[MessageQueue]) -> None:
    told = listener(topic, queues)
    if inspect.isawaitable(told):
        await told
