"""Offsets of queues and of groups."""

from collections.abc import Mapping, Sequence

from core_broker.client.admin.base import RELAYED_TIMEOUT_MS, AdminBase
from core_broker.client.answers import checked
from core_broker.remoting.bodies import (
    GetConsumerStatusBody,
    MessageQueue,
    QueryConsumeTimeSpanBody,
    QueryCorrectionOffsetBody,
    QueueTimeSpan,
    ResetOffsetBody,
    ResetOffsetBodyForC,
    decode_body,
    encode_body,
)
from core_broker.remoting.codes import LanguageCode, RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import (
    CloneGroupOffsetRequestHeader,
    GetConsumerStatusRequestHeader,
    GetEarliestMsgStoretimeRequestHeader,
    GetEarliestMsgStoretimeResponseHeader,
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    QueryConsumeTimeSpanRequestHeader,
    QueryCorrectionOffsetHeader,
    ResetOffsetRequestHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)


class OffsetAdmin(AdminBase):
    async def max_offset(self, addr: str, topic: str, queue_id: int) -> int:
        """The offset of the queue's next message; 0 for an unknown queue."""
        header = GetMaxOffsetRequestHeader(topic=topic, queue_id=queue_id)
        answer = await self._ask(addr, RequestCode.GET_MAX_OFFSET, header)
        return answer.header(GetMaxOffsetResponseHeader).offset

    async def min_offset(self, addr: str, topic: str, queue_id: int) -> int:
        """The offset of the oldest stored message."""
        header = GetMinOffsetRequestHeader(topic=topic, queue_id=queue_id)
        answer = await self._ask(addr, RequestCode.GET_MIN_OFFSET, header)
        return answer.header(GetMinOffsetResponseHeader).offset

    async def search_offset(self, addr: str, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """The offset of the first message stored at or after a time. For a time after the last
        message RocketMQ 4.9 answers with the last message's offset."""
        header = SearchOffsetRequestHeader(topic=topic, queue_id=queue_id, timestamp=timestamp_ms)
        answer = await self._ask(addr, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        return answer.header(SearchOffsetResponseHeader).offset

    async def earliest_store_time(self, addr: str, topic: str, queue_id: int) -> int | None:
        """Store time of the oldest message, ms; None for an empty queue."""
        header = GetEarliestMsgStoretimeRequestHeader(topic=topic, queue_id=queue_id)
        answer = await self._ask(addr, RequestCode.GET_EARLIEST_MSG_STORETIME, header)
        timestamp = answer.header(GetEarliestMsgStoretimeResponseHeader).timestamp
        return timestamp if timestamp >= 0 else None

    async def query_consumer_offset(
        self, addr: str, group: str, topic: str, queue_id: int, *, committed_only: bool = False
    ) -> int | None:
        """The committed offset of a group; None without a committed offset.

        While a queue's first message is stored, brokers answer 0 for a missing offset; RocketMQ 5
        and Gantry answer None with ``committed_only``.
        """
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=group,
            topic=topic,
            queue_id=queue_id,
            set_zero_if_not_found=False if committed_only else None,
        )
        answer = await self._invoke(addr, RequestCode.QUERY_CONSUMER_OFFSET, header)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        return checked(answer, addr).header(QueryConsumerOffsetResponseHeader).offset

    async def update_consumer_offset(
        self, addr: str, group: str, topic: str, queue_id: int, offset: int
    ) -> None:
        """Set the committed offset; online consumers overwrite the committed offset."""
        header = UpdateConsumerOffsetRequestHeader(
            consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=offset
        )
        await self._ask(addr, RequestCode.UPDATE_CONSUMER_OFFSET, header)

    async def reset_offset(
        self,
        addr: str,
        group: str,
        topic: str,
        timestamp_ms: int,
        *,
        force: bool = True,
        cplus: bool = False,
    ) -> dict[MessageQueue, int]:
        """Reset the offsets of an online group to a time (-1: the end); the broker notifies the
        consumers. Without ``force`` offsets only move back. With ``cplus`` the broker notifies
        in the format of C++ clients."""
        header = ResetOffsetRequestHeader(
            topic=topic, group=group, timestamp=timestamp_ms, is_force=force
        )
        code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
        command = RemotingCommand.request(code, header)
        if cplus:
            # The broker chooses the format by the language in the request.
            command.language = LanguageCode.CPP
        self._used = True
        answer = checked(await self._remoting.invoke(addr, command, RELAYED_TIMEOUT_MS), addr)
        return _reset_offsets(answer.body, cplus=cplus)

    async def reset_queue_offset(
        self, addr: str, group: str, topic: str, queue_id: int, offset: int
    ) -> dict[MessageQueue, int]:
        """Set one queue's offset at a RocketMQ 5 broker with useServerSideResetOffset, for online
        and offline groups. Brokers without the setting reset all queues to time 0."""
        header = ResetOffsetRequestHeader(
            topic=topic, group=group, timestamp=0, is_force=True, queue_id=queue_id, offset=offset
        )
        answer = await self._ask(addr, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
        return _reset_offsets(answer.body, cplus=False)

    async def set_group_offsets(
        self, addr: str, group: str, topic: str, offsets: Mapping[MessageQueue, int]
    ) -> None:
        """Set the offsets of queues at a Gantry broker; the broker notifies online consumers. The
        queues must name the receiving broker."""
        header = ResetOffsetRequestHeader(topic=topic, group=group)
        body = encode_body(ResetOffsetBody(offset_table=dict(offsets)))
        await self._ask(addr, RequestCode.SET_GROUP_OFFSETS, header, body)

    async def consumer_status(
        self, addr: str, group: str, topic: str, client_id: str | None = None
    ) -> dict[str, dict[MessageQueue, int]]:
        """The offsets in the memory of one online consumer or of all, by client id; the broker
        relays the request to the consumers."""
        header = GetConsumerStatusRequestHeader(
            topic=topic, group=group, client_addr=client_id or None
        )
        code = RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS
        answer = await self._ask(addr, code, header, timeout_ms=RELAYED_TIMEOUT_MS)
        if not answer.body:
            return {}
        return decode_body(GetConsumerStatusBody, answer.body).consumer_table

    async def consume_time_span(self, addr: str, group: str, topic: str) -> list[QueueTimeSpan]:
        """Store times of each queue's first and last message, and of the group's position."""
        header = QueryConsumeTimeSpanRequestHeader(topic=topic, group=group)
        code = RequestCode.QUERY_CONSUME_TIME_SPAN
        body = await self._ask_body(QueryConsumeTimeSpanBody, addr, code, header)
        return body.consume_time_span_set

    async def correction_offsets(
        self, addr: str, topic: str, group: str, leave_out: Sequence[str] = ()
    ) -> dict[int, int]:
        """The lowest committed offset of a topic's groups by queue, except the groups in
        ``leave_out``; 2^63-1 for queues where ``group`` has the lowest offset."""
        header = QueryCorrectionOffsetHeader(
            topic=topic, compare_group=group, filter_groups=",".join(leave_out) or None
        )
        code = RequestCode.QUERY_CORRECTION_OFFSET
        body = await self._ask_body(QueryCorrectionOffsetBody, addr, code, header)
        return body.correction_offsets

    async def clone_group_offset(
        self, addr: str, source: str, target: str, topic: str | None = None
    ) -> None:
        """Copy the offsets of the source group to the target group."""
        header = CloneGroupOffsetRequestHeader(
            src_group=source, dest_group=target, topic=topic, offline=False
        )
        await self._ask(addr, RequestCode.CLONE_GROUP_OFFSET, header)


def _reset_offsets(body: bytes, *, cplus: bool) -> dict[MessageQueue, int]:
    if not body:
        return {}
    # For C++ requests RocketMQ 4 answers with a list, RocketMQ 5 with a table.
    if cplus and body.replace(b" ", b"").startswith(b'{"offsetTable":['):
        entries = decode_body(ResetOffsetBodyForC, body).offset_table
        return {MessageQueue(it.topic, it.broker_name, it.queue_id): it.offset for it in entries}
    return decode_body(ResetOffsetBody, body).offset_table
