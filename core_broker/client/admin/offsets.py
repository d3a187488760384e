"""Offsets of queues and of groups."""

from collections.abc import Mapping, Sequence

from core_broker.client.admin.base import RELAYED_TIMEOUT_MS, AdminBase
from core_broker.client.name_servers import checked
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
        self, addr: str, group: str, topic: str, queue_id: int, *, committed_only: bool = False
    ) -> int | None:
        """The committed offset; None when the group has none. For a queue whose beginning is still
        there that is 0, as for consumers; RocketMQ 5 and Gantry leave that to ``committed_only``.
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
        """Set the committed offset; consumers that are online overwrite it with theirs."""
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
        """Set the offsets of a group that is online to a time (-1: the end), through the broker,
        which tells the consumers. Without ``force`` offsets only go back. ``cplus`` has the broker
        tell them in the form that C++ clients read."""
        header = ResetOffsetRequestHeader(
            topic=topic, group=group, timestamp=timestamp_ms, is_force=force
        )
        code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
        command = RemotingCommand.request(code, header)
        if cplus:
            # The broker goes by the language of the one who asks.
            command.language = LanguageCode.CPP
        self._used = True
        answer = checked(await self._remoting.invoke(addr, command, RELAYED_TIMEOUT_MS), addr)
        return _reset_offsets(answer.body, cplus=cplus)

    async def reset_queue_offset(
        self, addr: str, group: str, topic: str, queue_id: int, offset: int
    ) -> dict[MessageQueue, int]:
        """Set one queue's offset at a RocketMQ 5 broker with useServerSideResetOffset, whether the
        group is online or not. Any other broker takes it for a reset of all queues to time 0."""
        header = ResetOffsetRequestHeader(
            topic=topic, group=group, timestamp=0, is_force=True, queue_id=queue_id, offset=offset
        )
        answer = await self._ask(addr, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
        return _reset_offsets(answer.body, cplus=False)

    async def set_group_offsets(
        self, addr: str, group: str, topic: str, offsets: Mapping[MessageQueue, int]
    ) -> None:
        """Set the offsets of some queues at a Gantry broker, which tells the consumers that are
        online. A queue's name must be the broker's own."""
        header = ResetOffsetRequestHeader(topic=topic, group=group)
        body = encode_body(ResetOffsetBody(offset_table=dict(offsets)))
        await self._ask(addr, RequestCode.SET_GROUP_OFFSETS, header, body)

    async def consumer_status(
        self, addr: str, group: str, topic: str, client_id: str | None = None
    ) -> dict[str, dict[MessageQueue, int]]:
        """The offsets that consumers hold themselves, by client id: of one, or of all that are
        online; the broker passes the question on to them."""
        header = GetConsumerStatusRequestHeader(
            topic=topic, group=group, client_addr=client_id or None
        )
        code = RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS
        answer = await self._ask(addr, code, header, timeout_ms=RELAYED_TIMEOUT_MS)
        if not answer.body:
            return {}
        return decode_body(GetConsumerStatusBody, answer.body).consumer_table

    async def consume_time_span(self, addr: str, group: str, topic: str) -> list[QueueTimeSpan]:
        """Store times at both ends of each queue, and where the group is in between."""
        header = QueryConsumeTimeSpanRequestHeader(topic=topic, group=group)
        code = RequestCode.QUERY_CONSUME_TIME_SPAN
        body = await self._ask_body(QueryConsumeTimeSpanBody, addr, code, header)
        return body.consume_time_span_set

    async def correction_offsets(
        self, addr: str, topic: str, group: str, leave_out: Sequence[str] = ()
    ) -> dict[int, int]:
        """How far the slowest group of a topic is, by queue, without the groups to be left out; the
        largest number where ``group`` is behind all others."""
        header = QueryCorrectionOffsetHeader(
            topic=topic, compare_group=group, filter_groups=",".join(leave_out) or None
        )
        code = RequestCode.QUERY_CORRECTION_OFFSET
        body = await self._ask_body(QueryCorrectionOffsetBody, addr, code, header)
        return body.correction_offsets

    async def clone_group_offset(
        self, addr: str, source: str, target: str, topic: str | None = None
    ) -> None:
        """Give one group the offsets of another."""
        header = CloneGroupOffsetRequestHeader(
            src_group=source, dest_group=target, topic=topic, offline=False
        )
        await self._ask(addr, RequestCode.CLONE_GROUP_OFFSET, header)


def _reset_offsets(body: bytes, *, cplus: bool) -> dict[MessageQueue, int]:
    if not body:
        return {}
    # A broker that is asked as for C++ answers with a list; 5.x answers with a table all the same.
    if cplus and body.replace(b" ", b"").startswith(b'{"offsetTable":['):
        entries = decode_body(ResetOffsetBodyForC, body).offset_table
        return {MessageQueue(it.topic, it.broker_name, it.queue_id): it.offset for it in entries}
    return decode_body(ResetOffsetBody, body).offset_table
