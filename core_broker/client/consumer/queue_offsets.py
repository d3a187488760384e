"""The minimum and maximum offset of a queue, and the start offset of a group.

Compatible with RocketMQ's RebalancePushImpl.computePullFromWhere.
"""

from core_broker.client.consumer.offset_stores import OffsetStore
from core_broker.client.consumer.settings import CONSUME_TIMESTAMP_AGE_MS, GroupSettings
from core_broker.client.identity import now_ms
from core_broker.client.instance import ClientInstance
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
    """Offset requests to the broker of a queue; methods raise GantryError without an answer."""

    def __init__(self, instance: ClientInstance) -> None:
        self._instance = instance

    async def min(self, queue: MessageQueue) -> int:
        """The offset of the oldest message."""
        header = GetMinOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        addr = self._instance.routes.addr(queue.broker_name)
        answer = await self._instance.ask(addr, RequestCode.GET_MIN_OFFSET, header)
        return answer.header(GetMinOffsetResponseHeader).offset

    async def max(self, queue: MessageQueue) -> int:
        """The offset of the next message."""
        header = GetMaxOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        addr = self._instance.routes.addr(queue.broker_name)
        answer = await self._instance.ask(addr, RequestCode.GET_MAX_OFFSET, header)
        return answer.header(GetMaxOffsetResponseHeader).offset

    async def at(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message stored at or after a time."""
        header = SearchOffsetRequestHeader(
            topic=queue.topic, queue_id=queue.queue_id, timestamp=timestamp_ms
        )
        addr = self._instance.routes.addr(queue.broker_name)
        code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
        answer = await self._instance.ask(addr, code, header)
        return answer.header(SearchOffsetResponseHeader).offset


class StartOffsets:
    """The start offset in a newly allocated queue: the committed offset of the group, or the offset
    by ``consume_from``."""

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
            # Messages sent back before the member's start must be consumed too.
            return 0
        if self._where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
            return await self._offsets.min(queue)
        if self._where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
            assert self._timestamp_ms is not None
            return await self._offsets.at(queue, self._timestamp_ms)
        return await self._offsets.max(queue)
