"""Administration of topics: codes 17, 18, 21, 202, 215, 300, 305, 343 and 351.

Compatible with RocketMQ's AdminBrokerProcessor. A change is answered once the topic table is on
disk and the name servers have registered the topic, so that the next route query finds the topic.
Java answers earlier.
"""

import logging
from functools import partial

from msgspec.structs import replace

from core_broker.errors import RequestRefused
from core_broker.message.topics import SYSTEM_TOPICS, is_system_topic
from core_broker.processors.admission import (
    LIST_MAX,
    check_changeable,
    check_topic_name,
    list_too_long,
)
from core_broker.processors.context import BrokerContext, ConfigTable
from core_broker.remoting.bodies import (
    FILTER_MULTI_TAG,
    FILTER_SINGLE_TAG,
    CreateTopicListRequestBody,
    GroupList,
    MessageQueue,
    TopicConfig,
    TopicList,
    TopicOffset,
    TopicStatsTable,
    decode_request,
    encode_body,
)
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import (
    CreateTopicRequestHeader,
    DeleteTopicRequestHeader,
    GetTopicConfigRequestHeader,
    GetTopicStatsInfoRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
    QueryTopicsByConsumerRequestHeader,
)
from core_broker.state.topics import QUEUES_PER_TOPIC_MAX
from core_broker.store import ask_all

log = logging.getLogger(__name__)

#: Highest permission: priority, read, write and inherit.
_PERM_MAX = 15


class TopicProcessor:
    """Creates, changes, deletes and describes topics."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def update(self, connection: Connection, request: RemotingCommand) -> None:
        """UPDATE_AND_CREATE_TOPIC (17)."""
        header = request.header(CreateTopicRequestHeader)
        topic = TopicConfig(
            topic_name=header.topic,
            read_queue_nums=header.read_queue_nums,
            write_queue_nums=header.write_queue_nums,
            perm=header.perm,
            topic_filter_type=header.topic_filter_type,
            topic_sys_flag=header.topic_sys_flag,
        )
        self._update(connection, request, [topic])

    def update_list(self, connection: Connection, request: RemotingCommand) -> None:
        """UPDATE_AND_CREATE_TOPIC_LIST (18): all topics of the list, or none after a bad one."""
        topics = decode_request(CreateTopicListRequestBody, request.body).topic_config_list
        if len(topics) > LIST_MAX:
            raise list_too_long("topics", len(topics))
        self._update(connection, request, topics)

    def _update(
        self, connection: Connection, request: RemotingCommand, topics: list[TopicConfig]
    ) -> None:
        check_changeable(self._ctx)
        for topic in topics:
            self._check_changeable(topic.topic_name)
            _check_numbers(topic)
        changed = [self._put(topic) for topic in topics]
        self._ctx.answer_later(connection, request, self._announced(changed))

    def _put(self, topic: TopicConfig) -> TopicConfig:
        existing = self._ctx.topics.get(topic.topic_name)
        # Only the name servers' order table changes `order`. Attributes are a feature of 5.x.
        changed = replace(topic, order=existing is not None and existing.order, attributes=None)
        self._ctx.topics.put(changed, self._ctx.now_ms())
        return changed

    async def _announced(self, topics: list[TopicConfig]) -> RemotingCommand:
        await self._ctx.saved(ConfigTable.TOPICS)
        await self._ctx.registrar.topics_changed(topics)
        return RemotingCommand.response()

    def delete(self, connection: Connection, request: RemotingCommand) -> None:
        """DELETE_TOPIC_IN_BROKER (215); also deletes the topic's queues and consumer offsets."""
        ctx = self._ctx
        check_changeable(ctx)
        name = request.header(DeleteTopicRequestHeader).topic
        self._check_changeable(name)
        ctx.topics.remove(name, ctx.now_ms())
        ctx.offsets.forget_topic(name)
        ctx.statistics.forget_topic(name)
        ctx.answer_later(connection, request, self._delete_queues(name))

    async def _delete_queues(self, name: str) -> RemotingCommand:
        try:
            await self._ctx.saved(ConfigTable.TOPICS)
        except RequestRefused as refusal:
            # Deletion must work on a full disk, because operators delete topics to free disk space.
            log.warning("the deletion of topic %s is lost in a restart: %s", name, refusal)
        self._ctx.store.delete_topic(name)
        return RemotingCommand.response()

    def _check_changeable(self, name: str) -> None:
        check_topic_name(name)
        if is_system_topic(name) or name in self._ctx.topics.system_topics:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR, f"The topic[{name}] is conflict with system topic."
            )

    def all_configs(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_ALL_TOPIC_CONFIG (21)."""
        return RemotingCommand.response(body=self._ctx.topics.encode())

    def config(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_TOPIC_CONFIG (351): one topic of the table, for tools of RocketMQ 5."""
        name = request.header(GetTopicConfigRequestHeader).topic
        topic = self._ctx.topics.get(name)
        if topic is None:
            raise RequestRefused(
                ResponseCode.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {name}"
            )
        body = replace(topic, attributes=topic.attributes or {})
        return RemotingCommand.response(body=encode_body(body))

    def system_topics(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_SYSTEM_TOPIC_LIST_FROM_BROKER (305)."""
        names = sorted(SYSTEM_TOPICS | self._ctx.topics.system_topics)
        return RemotingCommand.response(body=encode_body(TopicList(topic_list=names)))

    def consumed_by(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """QUERY_TOPIC_CONSUME_BY_WHO (300): connected groups, and those with an offset."""
        topic = request.header(QueryTopicConsumeByWhoRequestHeader).topic
        groups = self._ctx.consumers.groups_of_topic(topic) | set(
            self._ctx.offsets.groups_of(topic)
        )
        return RemotingCommand.response(body=encode_body(GroupList(group_list=sorted(groups))))

    def consumed_topics(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """QUERY_TOPICS_BY_CONSUMER (343): the topics in which a group has an offset."""
        group = request.header(QueryTopicsByConsumerRequestHeader).group
        names = sorted(self._ctx.offsets.topics_of(group))
        body = TopicList(topic_list=names, broker_addr=self._ctx.addr)
        return RemotingCommand.response(body=encode_body(body))

    def stats(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_TOPIC_STATS_INFO (202): minimum and maximum offset of each queue."""
        name = request.header(GetTopicStatsInfoRequestHeader).topic
        topic = self._ctx.topics.get(name)
        if topic is None:
            raise RequestRefused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
        extents = ask_all(
            partial(self._extent, name, queue_id) for queue_id in range(topic.write_queue_nums)
        )
        table = {
            MessageQueue(name, self._ctx.config.broker_name, queue_id): extent
            for queue_id, extent in enumerate(extents)
        }
        return RemotingCommand.response(body=encode_body(TopicStatsTable(offset_table=table)))

    def _extent(self, topic: str, queue_id: int) -> TopicOffset:
        store = self._ctx.store
        first, end = store.queue_range(topic, queue_id)
        stored_ms = store.store_time_of(topic, queue_id, end - 1) if end > first else 0
        return TopicOffset(
            min_offset=first, max_offset=end, last_update_timestamp=max(stored_ms, 0)
        )


def _check_numbers(topic: TopicConfig) -> None:
    if topic.topic_filter_type not in {FILTER_SINGLE_TAG, FILTER_MULTI_TAG}:
        raise _invalid("topicFilterType", topic.topic_filter_type)
    for name, count in (
        ("readQueueNums", topic.read_queue_nums),
        ("writeQueueNums", topic.write_queue_nums),
    ):
        if not 0 <= count <= QUEUES_PER_TOPIC_MAX:
            raise _invalid(name, count)
    if not 0 <= topic.perm <= _PERM_MAX:
        raise _invalid("perm", topic.perm)


def _invalid(name: str, value: object) -> RequestRefused:
    return RequestRefused(ResponseCode.SYSTEM_ERROR, f"{name} = [{value}] value invalid")
