"""Queries for stored messages: codes 12, 33 and 321.

The read permission of a topic is not checked, so operators can inspect a write-only dead-letter
topic without changing its permission. Compatible with RocketMQ's QueryMessageProcessor and
AdminBrokerProcessor.queryConsumeQueue.
"""

from core_broker.errors import RequestRefused
from core_broker.filter import matcher
from core_broker.message.record import decode_record
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import (
    ConsumeQueueData,
    QueryConsumeQueueResponseBody,
    encode_body,
)
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import (
    QueryConsumeQueueRequestHeader,
    QueryMessageRequestHeader,
    QueryMessageResponseHeader,
    ViewMessageRequestHeader,
)
from core_broker.state.topics import QUEUES_PER_TOPIC_MAX

#: Maximum units of a consume queue in one answer.
UNITS_MAX = 2_000


class QueryProcessor:
    """Finds messages by key and by offset."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def by_key(self, connection: Connection, request: RemotingCommand) -> None:
        """QUERY_MESSAGE (12); a query by unique key uses defaultQueryMaxNum instead of maxNum."""
        header = request.header(QueryMessageRequestHeader)
        self._ctx.answer_later(connection, request, self._by_key(header))

    async def _by_key(self, header: QueryMessageRequestHeader) -> RemotingCommand:
        config = self._ctx.config
        count = config.default_query_max_num if header.unique_key_query else header.max_num
        result = await self._ctx.store.query(
            header.topic,
            header.key,
            min(count, config.max_msgs_num_batch),
            header.begin_timestamp,
            header.end_timestamp,
        )
        reach = QueryMessageResponseHeader(
            index_last_update_timestamp=result.index_last_update_timestamp,
            index_last_update_phyoffset=result.index_last_update_phyoffset,
        )
        if not result.records:
            return RemotingCommand.response(
                ResponseCode.QUERY_NOT_FOUND,
                "can not find message, maybe time range not correct",
                reach,
            )
        return RemotingCommand.response(header=reach, body=b"".join(result.records))

    def by_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """VIEW_MESSAGE_BY_ID (33)."""
        record = self._ctx.visible_record(request.header(ViewMessageRequestHeader).offset)
        if self._ctx.gate is not None:
            self._ctx.check_stored(connection, request, decode_record(record).topic)
        return RemotingCommand.response(body=record)

    def queue_units(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """QUERY_CONSUME_QUEUE (321): commit-log positions of a queue's messages."""
        header = request.header(QueryConsumeQueueRequestHeader)
        topic = self._ctx.topics.get(header.topic)
        if topic is None or not 0 <= header.queue_id < QUEUES_PER_TOPIC_MAX:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR, f"{header.queue_id}@{header.topic} is not exist!"
            )
        body = self._units(header)
        if header.consumer_group:
            self._apply_filter(body, header.consumer_group, header.topic)
        response = RemotingCommand.response(body=encode_body(body))
        if not body.queue_data:
            response.remark = (
                f"Index {header.index} of {header.queue_id}@{header.topic} is not exist!"
            )
        return response

    def _units(self, header: QueryConsumeQueueRequestHeader) -> QueryConsumeQueueResponseBody:
        store = self._ctx.store
        first, end = store.queue_range(header.topic, header.queue_id)
        count = min(header.count, UNITS_MAX)
        units = (
            store.queue_units(header.topic, header.queue_id, header.index, count)
            if count > 0 and first <= header.index < end
            else []
        )
        return QueryConsumeQueueResponseBody(
            queue_data=[
                ConsumeQueueData(
                    physic_offset=unit.offset_physical,
                    physic_size=unit.size,
                    tags_code=unit.tags_code,
                )
                for unit in units
            ],
            min_queue_index=first,
            max_queue_index=end,
        )

    def _apply_filter(self, body: QueryConsumeQueueResponseBody, group: str, topic: str) -> None:
        """Set `matches` of each unit to the result of the group's filter."""
        subscription = self._ctx.consumers.subscription(group, topic)
        if subscription is None:
            body.filter_data = f"{topic}@{group} is not online!"
            return
        body.subscription_data = subscription
        group_filter = self._ctx.filters.get(topic, group)
        body.filter_data = encode_body(
            group_filter.data if group_filter is not None else None
        ).decode()
        accept = matcher(subscription)
        for unit in body.queue_data:
            unit.matches = accept is None or accept(unit.tags_code)
