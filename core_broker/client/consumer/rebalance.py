"""Which queues this member of a group has, and starting and stopping their consuming.

Compatible with RocketMQ's RebalanceImpl and RebalancePushImpl. Every member computes the same
allocation from the same lists; a queue that moves on is committed first, so that its new owner goes
on where this one stopped.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Final

from core_broker.client.consumer.allocate import sorted_client_ids, sorted_queues
from core_broker.client.consumer.process_queue import ProcessQueue
from core_broker.client.consumer.puller import PullContext, Puller
from core_broker.client.identity import now_ms
from core_broker.client.settings import CONSUME_TIMESTAMP_AGE_MS
from core_broker.errors import GantryError
from core_broker.message.topics import RETRY_PREFIX
from core_broker.remoting.bodies import (
    ConsumeFromWhere,
    GetConsumerListByGroupResponseBody,
    MessageModel,
    MessageQueue,
    decode_body,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import (
    GetConsumerListByGroupRequestHeader,
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
)

log = logging.getLogger(__name__)

PAUSE_WHEN_INCOMPLETE_S: Final = 1.0
"""After a rebalance that could not ask everybody, or an offset that was outside of its queue."""


class Rebalancer:
    """Owner of the table of process queues of one consumer."""

    def __init__(self, context: PullContext, started_ms: int) -> None:
        self._context = context
        self._timestamp_ms = (
            context.settings.consume_timestamp_ms
            if context.settings.consume_timestamp_ms is not None
            else started_ms - CONSUME_TIMESTAMP_AGE_MS
        )
        self._incomplete_runs = 0
        self._pullers: dict[MessageQueue, Puller] = {}
        self._resets: dict[MessageQueue, int] = {}

    @property
    def process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        return {queue: puller.process_queue for queue, puller in self._pullers.items()}

    def reset(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Have the queues that are held go on elsewhere; done by the next rebalance."""
        for queue, offset in offsets.items():
            if queue in self._pullers:
                self._drop(queue)
                self._resets[queue] = offset

    def _drop(self, queue: MessageQueue) -> None:
        """Let go at once: what is being consumed no longer counts."""
        puller = self._pullers[queue]
        puller.process_queue.dropped = True
        puller.stop()

    async def run_once(self) -> float | None:
        """Bring what is consumed in line with the group. When somebody could not be asked, the
        answer is after how many seconds to try again."""
        await self._apply_resets()
        complete = True
        for topic in list(self._context.subscriptions):
            try:
                await self._rebalance(topic)
            except GantryError as error:
                complete = False
                log.info("Consumer %s, topic %s: %s", self._context.group, topic, error)
        self._incomplete_runs = 0 if complete else self._incomplete_runs + 1
        if complete:
            return None
        pause_s: float = PAUSE_WHEN_INCOMPLETE_S * 2 ** min(self._incomplete_runs - 1, 16)
        return min(pause_s, self._context.settings.rebalance_interval_s)

    async def stop_pulling(self) -> None:
        """Pull no more. What was pulled stays, so that running listeners can still finish it."""
        for puller in self._pullers.values():
            puller.stop()
        await asyncio.gather(*(puller.ended() for puller in self._pullers.values()))

    async def persist(self) -> None:
        await self._context.offsets.persist(list(self._pullers))

    async def _apply_resets(self) -> None:
        resets, self._resets = self._resets, {}
        for queue, offset in resets.items():
            if queue in self._pullers:
                self._drop(queue)
            self._context.offsets.update(queue, offset, force=True)
        await self._release(resets)

    async def _rebalance(self, topic: str) -> None:
        wanted = set(await self._allocated(topic))
        held = {queue for queue in self._pullers if queue.topic == topic}
        dead = {queue for queue in held if not self._pullers[queue].is_running}
        gone = (held - wanted) | dead
        for queue in gone:
            self._drop(queue)
        await self._release(gone)
        # A queue whose reset came in meanwhile waits until that is applied.
        new = sorted(wanted - set(self._pullers) - set(self._resets))
        failure: GantryError | None = None
        for queue in new:
            try:
                offset = await self._start_offset(queue)
            except GantryError as error:
                # Its broker is away; the queues of the other brokers must not wait for it.
                failure = error
                continue
            puller = Puller(self._context, ProcessQueue(queue, now_ms()), offset)
            self._pullers[queue] = puller
            puller.start()
        if gone or new:
            log.info(
                "Consumer %s has %d queues of %s (%d new, %d given up)",
                self._context.group,
                len(wanted),
                topic,
                len(new),
                len(gone),
            )
        if failure:
            raise failure

    async def _release(self, queues: Iterable[MessageQueue]) -> None:
        queues = list(queues)
        await self._context.offsets.persist(queues)
        for queue in queues:
            self._context.offsets.forget(queue)
            self._pullers.pop(queue, None)

    async def _allocated(self, topic: str) -> list[MessageQueue]:
        route = await self._context.instance.routes.route(topic)
        queues = sorted_queues(route.subscribe_queues)
        if self._context.settings.model is MessageModel.BROADCASTING:
            return queues
        # A broker that was just learnt must know us before it lists the group's members.
        await self._context.instance.announce()
        members = await self._members(queues)
        return self._context.settings.allocate(
            self._context.instance.client_id, queues, sorted_client_ids(members)
        )

    async def _members(self, queues: list[MessageQueue]) -> list[str]:
        """Ask one broker of the topic; the first that answers is believed."""
        header = GetConsumerListByGroupRequestHeader(consumer_group=self._context.group)
        code = RequestCode.GET_CONSUMER_LIST_BY_GROUP
        failure: GantryError | None = None
        for broker_name in dict.fromkeys(queue.broker_name for queue in queues):
            try:
                addr = self._context.instance.routes.addr(broker_name)
                answer = await self._context.instance.ask(addr, code, header)
            except GantryError as error:
                failure = error
                continue
            return decode_body(GetConsumerListByGroupResponseBody, answer.body).consumer_id_list
        if failure:
            raise failure
        return []

    async def _start_offset(self, queue: MessageQueue) -> int:
        """Where the group stopped; else where ``consume_from`` says."""
        stored = await self._context.offsets.read(queue)
        if stored is not None:
            return stored
        where = self._context.settings.consume_from
        if queue.topic.startswith(RETRY_PREFIX):
            # What was sent back waits there since before this member came.
            return 0
        if where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
            return await self._min_offset(queue)
        if where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
            return await self._offset_at(queue, self._timestamp_ms)
        return await self._max_offset(queue)

    async def _min_offset(self, queue: MessageQueue) -> int:
        header = GetMinOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        addr = self._context.instance.routes.addr(queue.broker_name)
        answer = await self._context.instance.ask(addr, RequestCode.GET_MIN_OFFSET, header)
        return answer.header(GetMinOffsetResponseHeader).offset

    async def _max_offset(self, queue: MessageQueue) -> int:
        header = GetMaxOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        addr = self._context.instance.routes.addr(queue.broker_name)
        answer = await self._context.instance.ask(addr, RequestCode.GET_MAX_OFFSET, header)
        return answer.header(GetMaxOffsetResponseHeader).offset

    async def _offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int:
        header = SearchOffsetRequestHeader(
            topic=queue.topic, queue_id=queue.queue_id, timestamp=timestamp_ms
        )
        addr = self._context.instance.routes.addr(queue.broker_name)
        code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
        answer = await self._context.instance.ask(addr, code, header)
        return answer.header(SearchOffsetResponseHeader).offset
