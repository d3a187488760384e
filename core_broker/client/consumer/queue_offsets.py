"""What brokers tell about the offsets of a queue, and where a group starts in it.

Compatible with RocketMQ's RebalancePushImpl.computePullFromWhere.
"""

from core_broker.client.consumer.offset_stores import OffsetStore
from core_broker.client.identity import now_ms
from core_broker.client.instance import ClientInstance
from core_broker.client.settings import CONSUME_TIMESTAMP_AGE_MS, GroupSettings
from core_broker.message.topics import RETRY_PREFIX
from core_broker.remoting.bodies import ConsumeFromWhere, MessageQueue
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
)


class QueueOffsets:
    """Asks the broker of a queue; raises GantryError when it cannot tell."""

    def __init__(self, instance: ClientInstance) -> None:
        self._instance = instance

    async def min(self, queue: MessageQueue) -> int:
        """The offset of the oldest message."""
        header = GetMinOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        addr = self._instance.routes.addr(queue.broker_name)
        answer = await self._instance.ask(addr, RequestCode.GET_MIN_OFFSET, header)
        return answer.header(GetMinOffsetResponseHeader).offset

    async def max(self, queue: MessageQueue) -> int:
        """The offset that the next message will get."""
        header = GetMaxOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        addr = self._instance.routes.addr(queue.broker_name)
        answer = await self._instance.ask(addr, RequestCode.GET_MAX_OFFSET, header)
        return answer.header(GetMaxOffsetResponseHeader).offset

    async def at(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message that was stored at this time or later."""
        header = SearchOffsetRequestHeader(
            topic=queue.topic, queue_id=queue.queue_id, timestamp=timestamp_ms
        )
        addr = self._instance.routes.addr(queue.broker_name)
        code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
        answer = await self._instance.ask(addr, code, header)
        return answer.header(SearchOffsetResponseHeader).offset


class StartOffsets:
    """Where a member begins in a queue that it gets: where the group stopped, or where
    ``consume_from`` says."""

    def __init__(self, store: OffsetStore, offsets: QueueOffsets, settings: GroupSettings) -> None:
        self._store = store
        self._offsets = offsets
        self._where = settings.consume_from
        self._timestamp_ms = settings.consume_timestamp_ms
        if self._timestamp_ms is None:
            self._timestamp_ms = now_ms() - CONSUME_TIMESTAMP_AGE_MS

    async def __call__(self, queue: MessageQueue) -> int:
        stored = await self._store.read(queue)
        if stored is not None:
            return stored
        if queue.topic.startswith(RETRY_PREFIX):
            # What was sent back waits there since before this member came.
            return 0
        if self._where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
            return await self._offsets.min(queue)
        if self._where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
            assert self._timestamp_ms is not None
            return await self._offsets.at(queue, self._timestamp_ms)
        return await self._offsets.max(queue)
