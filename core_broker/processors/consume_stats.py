"""Consumer lag: codes 208, 303 and 317.

Compatible with RocketMQ's AdminBrokerProcessor.
"""

import asyncio
from collections.abc import Iterable, Iterator
from functools import partial

from core_broker.errors import RequestRefused
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import (
    ConsumeStats,
    ConsumeStatsList,
    MessageQueue,
    OffsetWrapper,
    QueryConsumeTimeSpanBody,
    QueueTimeSpan,
    TopicConfig,
    encode_body,
)
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import (
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
)
from core_broker.store import ask_all


class ConsumeStatsProcessor:
    """Compares the offsets of groups with the ends of the queues."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def of_group(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_CONSUME_STATS (208): one group, in one topic or in all topics with its offsets."""
        header = request.header(GetConsumeStatsRequestHeader)
        group = header.consumer_group
        names = [header.topic] if header.topic else self._ctx.offsets.topics_of(group)
        stats = ConsumeStats(offset_table={})
        for topic in self._subscribed(group, names):
            stats.offset_table.update(self._lags(group, topic))
            stats.consume_tps += self._ctx.statistics.group_get_tps(group, topic.topic_name)
        return RemotingCommand.response(body=encode_body(stats))

    def of_broker(self, connection: Connection, request: RemotingCommand) -> None:
        """GET_BROKER_CONSUME_STATS (317): all groups, in all topics or in ordered topics only."""
        only_ordered = request.header(GetConsumeStatsInBrokerHeader).is_order
        self._ctx.answer_later(connection, request, self._of_broker(only_ordered=only_ordered))

    async def _of_broker(self, *, only_ordered: bool) -> RemotingCommand:
        """Collect group by group; the event loop handles other requests between two groups."""
        groups: list[dict[str, list[ConsumeStats]]] = []
        total_diff = 0
        for group in list(self._ctx.groups.names):
            all_stats = await self._ctx.store.cold_reads.when_warm(
                partial(self._all_stats, group, only_ordered=only_ordered)
            )
            total_diff += sum(
                offsets.broker_offset - offsets.consumer_offset
                for stats in all_stats
                for offsets in stats.offset_table.values()
            )
            groups.append({group: all_stats})
            await asyncio.sleep(0)
        body = ConsumeStatsList(
            consume_stats_list=groups, broker_addr=self._ctx.addr, total_diff=total_diff
        )
        return RemotingCommand.response(body=encode_body(body))

    def time_span(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """QUERY_CONSUME_TIME_SPAN (303): store times at the queues' ends and the group's offset."""
        header = request.header(QueryConsumeTimeSpanRequestHeader)
        topic = self._ctx.topics.get(header.topic)
        if topic is None:
            raise RequestRefused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist")
        spans = ask_all(
            partial(self._span, header.group, header.topic, queue_id)
            for queue_id in range(topic.write_queue_nums)
        )
        body = QueryConsumeTimeSpanBody(consume_time_span_set=spans)
        return RemotingCommand.response(body=encode_body(body))

    def _all_stats(self, group: str, *, only_ordered: bool) -> list[ConsumeStats]:
        names = self._ctx.offsets.topics_of(group)
        return ask_all(
            partial(self._stats, group, topic)
            for topic in self._subscribed(group, names)
            if topic.order or not only_ordered
        )

    def _stats(self, group: str, topic: TopicConfig) -> ConsumeStats:
        return ConsumeStats(
            offset_table=self._lags(group, topic),
            consume_tps=self._ctx.statistics.group_get_tps(group, topic.topic_name),
        )

    def _subscribed(self, group: str, names: Iterable[str]) -> Iterator[TopicConfig]:
        """Existing topics among `names`, without topics a connected group has unsubscribed from."""
        for name in names:
            topic = self._ctx.topics.get(name)
            if topic is not None and not self._ctx.consumers.has_unsubscribed(group, name):
                yield topic

    def _lags(self, group: str, topic: TopicConfig) -> dict[MessageQueue, OffsetWrapper]:
        name = topic.topic_name
        lags = ask_all(
            partial(self._lag, group, name, queue_id) for queue_id in range(topic.read_queue_nums)
        )
        return {
            MessageQueue(name, self._ctx.config.broker_name, queue_id): lag
            for queue_id, lag in enumerate(lags)
        }

    def _lag(self, group: str, topic: str, queue_id: int) -> OffsetWrapper:
        store = self._ctx.store
        consumed = self._ctx.offsets.committed(group, topic, queue_id) or 0
        stored_ms = store.store_time_of(topic, queue_id, consumed - 1) if consumed > 0 else 0
        return OffsetWrapper(
            broker_offset=store.queue_range(topic, queue_id)[1],
            consumer_offset=consumed,
            last_timestamp=max(stored_ms, 0),
        )

    def _span(self, group: str, topic: str, queue_id: int) -> QueueTimeSpan:
        store = self._ctx.store
        first, end = store.queue_range(topic, queue_id)
        consumed = self._ctx.offsets.committed(group, topic, queue_id) or 0
        first_ms = store.store_time_of(topic, queue_id, first)
        delay_ms = 0
        if consumed < end:
            delay_ms = self._ctx.now_ms() - store.store_time_of(topic, queue_id, consumed)
        return QueueTimeSpan(
            message_queue=MessageQueue(topic, self._ctx.config.broker_name, queue_id),
            min_time_stamp=first_ms,
            max_time_stamp=store.store_time_of(topic, queue_id, end - 1),
            consume_time_stamp=(
                store.store_time_of(topic, queue_id, consumed - 1) if consumed > 0 else first_ms
            ),
            delay_time=delay_ms,
        )
