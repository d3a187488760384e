"""Offsets of groups and of queues: codes 14, 15, 29, 30, 31, 32, 43, 45, 308 and 314.

A group without an offset is told 0 where the first message of the queue is at hand, so that it
starts with it; otherwise 22, and the client decides. Compatible with RocketMQ's
ConsumerManageProcessor and AdminBrokerProcessor.
"""

import os

from core_broker.config import LONG_MAX
from core_broker.errors import RequestRefused
from core_broker.processors.admission import check_foreign_group, check_topic_name
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import Dialect, QueryCorrectionOffsetBody, encode_body
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
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
    QueryCorrectionOffsetHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from core_broker.state.consumer_offsets import ENTRIES_MAX, QUEUES_MAX

_MEMORY_BYTES = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class OffsetProcessor:
    """Answers where queues begin and end, and how far groups are in them."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def query(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """QUERY_CONSUMER_OFFSET (14)."""
        header = request.header(QueryConsumerOffsetRequestHeader)
        offset = self._ctx.offsets.committed(header.consumer_group, header.topic, header.queue_id)
        if offset is None:
            if header.set_zero_if_not_found is False or not self._starts_at_hand(
                header.topic, header.queue_id
            ):
                raise RequestRefused(
                    ResponseCode.QUERY_NOT_FOUND,
                    "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first",
                )
            offset = 0
        return RemotingCommand.response(header=QueryConsumerOffsetResponseHeader(offset=offset))

    def update(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """UPDATE_CONSUMER_OFFSET (15)."""
        header = request.header(UpdateConsumerOffsetRequestHeader)
        check_topic_name(header.topic)
        check_topic_name(header.consumer_group)
        check_foreign_group(header.consumer_group)
        if header.queue_id < 0 or header.commit_offset < 0:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR,
                f"queueId[{header.queue_id}] or offset[{header.commit_offset}] is negative",
            )
        if not self._ctx.offsets.commit(
            header.consumer_group, header.topic, header.queue_id, header.commit_offset
        ):
            raise _no_room()
        return RemotingCommand.response()

    def search(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """SEARCH_OFFSET_BY_TIMESTAMP (29)."""
        header = request.header(SearchOffsetRequestHeader)
        offset = self._ctx.store.offset_by_time(header.topic, header.queue_id, header.timestamp)
        return RemotingCommand.response(header=SearchOffsetResponseHeader(offset=offset))

    def max_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_MAX_OFFSET (30); 0 where there is no queue."""
        header = request.header(GetMaxOffsetRequestHeader)
        offset = self._ctx.store.queue_range(header.topic, header.queue_id)[1]
        return RemotingCommand.response(header=GetMaxOffsetResponseHeader(offset=offset))

    def min_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_MIN_OFFSET (31); 0 where there is no queue."""
        header = request.header(GetMinOffsetRequestHeader)
        offset = self._ctx.store.queue_range(header.topic, header.queue_id)[0]
        return RemotingCommand.response(header=GetMinOffsetResponseHeader(offset=offset))

    def earliest_store_time(
        self, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand:
        """GET_EARLIEST_MSG_STORETIME (32); -1 where there is no message."""
        header = request.header(GetEarliestMsgStoretimeRequestHeader)
        store = self._ctx.store
        first = store.queue_range(header.topic, header.queue_id)[0]
        stored_ms = store.store_time_of(header.topic, header.queue_id, first)
        return RemotingCommand.response(
            header=GetEarliestMsgStoretimeResponseHeader(timestamp=stored_ms)
        )

    def all_offsets(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_ALL_CONSUMER_OFFSET (43)."""
        return RemotingCommand.response(body=self._ctx.offsets.encode())

    def delay_offsets(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_ALL_DELAY_OFFSET (45)."""
        return RemotingCommand.response(body=self._ctx.delay_progress.encode())

    def correction(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """QUERY_CORRECTION_OFFSET (308): how far the slowest group of a topic is, by queue.

        A queue in which the compared group is behind all others needs no correction, which the
        largest number says. Java also drops the offsets of the groups to be left out; we do not.
        """
        header = request.header(QueryCorrectionOffsetHeader)
        left_out = set((header.filter_groups or "").split(","))
        slowest: dict[int, int] = {}
        compared: dict[int, int] = {}
        for group, topic, queue_id, offset in self._ctx.offsets.rows():
            if topic != header.topic:
                continue
            if group == header.compare_group:
                compared[queue_id] = offset
            if group not in left_out and offset >= self._ctx.store.queue_range(topic, queue_id)[0]:
                slowest[queue_id] = min(offset, slowest.get(queue_id, offset))
        for queue_id, offset in compared.items():
            if slowest.get(queue_id, LONG_MAX) > offset:
                slowest[queue_id] = LONG_MAX
        body = QueryCorrectionOffsetBody(correction_offsets=slowest)
        return RemotingCommand.response(body=encode_body(body, Dialect.FASTJSON))

    def clone(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """CLONE_GROUP_OFFSET (314): a group goes on where another one is, in one topic or in all.

        Without the flag `offline` a connected source counts only for the topics it subscribes to.
        """
        ctx = self._ctx
        header = request.header(CloneGroupOffsetRequestHeader)
        check_topic_name(header.dest_group)
        check_foreign_group(header.dest_group)
        source = header.src_group
        topics = [header.topic] if header.topic else ctx.offsets.topics_of(source)
        for topic in topics:
            if ctx.topics.get(topic) is None:
                continue
            if not header.offline and ctx.consumers.is_elsewhere(source, topic):
                continue
            if not ctx.offsets.clone(source, header.dest_group, topic):
                raise _no_room()
        return RemotingCommand.response()

    def _starts_at_hand(self, topic: str, queue_id: int) -> bool:
        """True when the queue still has its first message, or none yet, and that is not on disk."""
        store = self._ctx.store
        if store.queue_range(topic, queue_id)[0] > 0:
            return False
        first = store.queue_units(topic, queue_id, 0, 1)
        if not first:
            return True
        behind = store.max_offset_physical - first[0].offset_physical
        in_memory = _MEMORY_BYTES * self._ctx.config.access_message_in_memory_max_ratio // 100
        return behind <= in_memory


def _no_room() -> RequestRefused:
    return RequestRefused(
        ResponseCode.SYSTEM_ERROR,
        f"no more than {ENTRIES_MAX} pairs of topic and group, and {QUEUES_MAX} queues of "
        "each, can have offsets",
    )
