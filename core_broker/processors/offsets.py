"""Offsets of groups and of queues: codes 14, 15, 29, 30, 31, 32, 43, 45, 308 and 314.

A query of a group without an offset answers 0 when the queue's first message exists and is in
memory, so the group starts at the first message. Otherwise the answer is QUERY_NOT_FOUND (22), and
the client chooses where to start. Compatible with RocketMQ's ConsumerManageProcessor and
AdminBrokerProcessor.
"""

import os

from core_broker.config import LONG_MAX
from core_broker.errors import RequestRefused
from core_broker.processors.admission import check_foreign_group, check_topic_name
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import (
    DataVersion,
    Dialect,
    QueryCorrectionOffsetBody,
    encode_body,
)
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
    """Answers the minimum and maximum offsets of queues and the committed offsets of groups."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def query(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """QUERY_CONSUMER_OFFSET (14)."""
        header = request.header(QueryConsumerOffsetRequestHeader)
        offset = self._ctx.offsets.committed(header.consumer_group, header.topic, header.queue_id)
        if offset is None:
            if header.set_zero_if_not_found is False or not self._is_start_in_memory(
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
            raise _table_full()
        return RemotingCommand.response()

    def search(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """SEARCH_OFFSET_BY_TIMESTAMP (29)."""
        header = request.header(SearchOffsetRequestHeader)
        offset = self._ctx.store.offset_by_time(header.topic, header.queue_id, header.timestamp)
        return RemotingCommand.response(header=SearchOffsetResponseHeader(offset=offset))

    def max_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_MAX_OFFSET (30); 0 for a missing queue."""
        header = request.header(GetMaxOffsetRequestHeader)
        offset = self._ctx.store.queue_range(header.topic, header.queue_id)[1]
        return RemotingCommand.response(header=GetMaxOffsetResponseHeader(offset=offset))

    def min_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_MIN_OFFSET (31); 0 for a missing queue."""
        header = request.header(GetMinOffsetRequestHeader)
        offset = self._ctx.store.queue_range(header.topic, header.queue_id)[0]
        return RemotingCommand.response(header=GetMinOffsetResponseHeader(offset=offset))

    def earliest_store_time(
        self, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand:
        """GET_EARLIEST_MSG_STORETIME (32); -1 for a queue without messages."""
        header = request.header(GetEarliestMsgStoretimeRequestHeader)
        store = self._ctx.store
        first = store.queue_range(header.topic, header.queue_id)[0]
        stored_ms = store.store_time_of(header.topic, header.queue_id, first)
        return RemotingCommand.response(
            header=GetEarliestMsgStoretimeResponseHeader(timestamp=stored_ms)
        )

    def all_offsets(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_ALL_CONSUMER_OFFSET (43).

        A slave of RocketMQ 5 drops an answer without a version; RocketMQ 4 ignores the version.
        """
        ctx = self._ctx
        version = encode_body(DataVersion(ctx.boot_ms, ctx.offsets.changes, 0))
        table = ctx.offsets.encode().removesuffix(b"}")
        return RemotingCommand.response(body=b'%b,"dataVersion":%b}' % (table, version))

    def delay_offsets(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_ALL_DELAY_OFFSET (45)."""
        return RemotingCommand.response(body=self._ctx.delay_progress.encode())

    def correction(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """QUERY_CORRECTION_OFFSET (308): the offset of the slowest group of a topic, by queue.

        A queue in which the compared group is the slowest needs no correction; the answer is then
        the largest long. Java also deletes the offsets of the filtered groups; Gantry does not.
        """
        header = request.header(QueryCorrectionOffsetHeader)
        filtered = set((header.filter_groups or "").split(","))
        slowest: dict[int, int] = {}
        compared: dict[int, int] = {}
        for group, topic, queue_id, offset in self._ctx.offsets.rows():
            if topic != header.topic:
                continue
            if group == header.compare_group:
                compared[queue_id] = offset
            if group not in filtered and offset >= self._ctx.store.queue_range(topic, queue_id)[0]:
                slowest[queue_id] = min(offset, slowest.get(queue_id, offset))
        for queue_id, offset in compared.items():
            if slowest.get(queue_id, LONG_MAX) > offset:
                slowest[queue_id] = LONG_MAX
        body = QueryCorrectionOffsetBody(correction_offsets=slowest)
        return RemotingCommand.response(body=encode_body(body, Dialect.FASTJSON))

    def clone(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """CLONE_GROUP_OFFSET (314): copy a group's offsets to another group, in one or all topics.

        Without the flag `offline`, topics that a connected source group has unsubscribed from are
        skipped.
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
            if not header.offline and ctx.consumers.has_unsubscribed(source, topic):
                continue
            if not ctx.offsets.clone(source, header.dest_group, topic):
                raise _table_full()
        return RemotingCommand.response()

    def _is_start_in_memory(self, topic: str, queue_id: int) -> bool:
        """True when no message has expired and the first message, if any, counts as in memory.

        accessMessageInMemoryMaxRatio says what share of the memory the newest log bytes may fill.
        """
        store = self._ctx.store
        if store.queue_range(topic, queue_id)[0] > 0:
            return False
        first = store.queue_units(topic, queue_id, 0, 1)
        if not first:
            return True
        behind = store.max_offset_physical - first[0].offset_physical
        in_memory = _MEMORY_BYTES * self._ctx.config.access_message_in_memory_max_ratio // 100
        return behind <= in_memory


def _table_full() -> RequestRefused:
    return RequestRefused(
        ResponseCode.SYSTEM_ERROR,
        f"no more than {ENTRIES_MAX} pairs of topic and group, and {QUEUES_MAX} queues of "
        "each, can have offsets",
    )
