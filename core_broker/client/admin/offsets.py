"""Offsets of queues and of groups."""

from core_broker.client.admin.base import RELAYED_TIMEOUT_MS, AdminBase
from core_broker.client.name_servers import checked
from core_broker.remoting.bodies import MessageQueue, ResetOffsetBody, decode_body
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.headers import (
    CloneGroupOffsetRequestHeader,
    GetEarliestMsgStoretimeRequestHeader,
    GetEarliestMsgStoretimeResponseHeader,
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    ResetOffsetRequestHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)


class OffsetAdmin(AdminBase):
    async def max_offset(self, addr: str, topic: str, queue_id: int) -> int:
        """The offset that the next message of the queue will get; 0 for an unknown queue."""
        header = GetMaxOffsetRequestHeader(topic=topic, queue_id=queue_id)
        answer = await self._ask(addr, RequestCode.GET_MAX_OFFSET, header)
        return answer.header(GetMaxOffsetResponseHeader).offset

    async def min_offset(self, addr: str, topic: str, queue_id: int) -> int:
        """The offset of the oldest message that is still there."""
        header = GetMinOffsetRequestHeader(topic=topic, queue_id=queue_id)
        answer = await self._ask(addr, RequestCode.GET_MIN_OFFSET, header)
        return answer.header(GetMinOffsetResponseHeader).offset

    async def search_offset(self, addr: str, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """The first offset stored at or after a time; RocketMQ 4.9 answers the last message's when
        the time is later than all of them."""
        header = SearchOffsetRequestHeader(topic=topic, queue_id=queue_id, timestamp=timestamp_ms)
        answer = await self._ask(addr, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        return answer.header(SearchOffsetResponseHeader).offset

    async def earliest_store_time(self, addr: str, topic: str, queue_id: int) -> int | None:
        """Milliseconds of the oldest message; None when the queue is empty."""
        header = GetEarliestMsgStoretimeRequestHeader(topic=topic, queue_id=queue_id)
        answer = await self._ask(addr, RequestCode.GET_EARLIEST_MSG_STORETIME, header)
        timestamp = answer.header(GetEarliestMsgStoretimeResponseHeader).timestamp
        return timestamp if timestamp >= 0 else None

    async def query_consumer_offset(
        self, addr: str, group: str, topic: str, queue_id: int
    ) -> int | None:
        """The committed offset; None when the group has none. RocketMQ 4.9 answers 0 for a queue
        whose beginning is still there."""
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=group, topic=topic, queue_id=queue_id
        )
        answer = await self._invoke(addr, RequestCode.QUERY_CONSUMER_OFFSET, header)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        return checked(answer, addr).header(QueryConsumerOffsetResponseHeader).offset

    async def update_consumer_offset(
        self, addr: str, group: str, topic: str, queue_id: int, offset: int
    ) -> None:
        """Set the committed offset; consumers that are online overwrite it with theirs."""
        header = UpdateConsumerOffsetRequestHeader(
            consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=offset
        )
        await self._ask(addr, RequestCode.UPDATE_CONSUMER_OFFSET, header)

    async def reset_offset(
        self, addr: str, group: str, topic: str, timestamp_ms: int, *, force: bool = True
    ) -> dict[MessageQueue, int]:
        """Set the offsets of a group that is online to a time (-1: the end), through the broker,
        which tells the consumers. Without ``force`` offsets only go back."""
        header = ResetOffsetRequestHeader(
            topic=topic, group=group, timestamp=timestamp_ms, is_force=force
        )
        code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
        answer = await self._ask(addr, code, header, timeout_ms=RELAYED_TIMEOUT_MS)
        return decode_body(ResetOffsetBody, answer.body).offset_table

    async def clone_group_offset(
        self, addr: str, source: str, target: str, topic: str | None = None
    ) -> None:
        """Give one group the offsets of another."""
        header = CloneGroupOffsetRequestHeader(
            src_group=source, dest_group=target, topic=topic, offline=False
        )
        await self._ask(addr, RequestCode.CLONE_GROUP_OFFSET, header)
