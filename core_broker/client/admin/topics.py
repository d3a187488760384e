"""Topics: routes, configuration, offsets of queues."""

from collections.abc import Sequence

from core_broker.client.admin.base import AdminBase
from core_broker.message.topics import AUTO_CREATE_TOPIC, validate_topic
from core_broker.remoting.bodies import (
    CreateTopicListRequestBody,
    GroupList,
    MessageQueue,
    TopicConfig,
    TopicConfigSerializeWrapper,
    TopicList,
    TopicOffset,
    TopicRouteData,
    TopicStatsTable,
    decode_body,
    encode_body,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import (
    CreateTopicRequestHeader,
    DeleteTopicFromNamesrvRequestHeader,
    DeleteTopicRequestHeader,
    GetRouteInfoRequestHeader,
    GetTopicsByClusterRequestHeader,
    GetTopicStatsInfoRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
)


class TopicAdmin(AdminBase):
    async def topic_list(self) -> list[str]:
        """All topics of the name server, in alphabetical order."""
        answer = await self._ask_name_server(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        return sorted(decode_body(TopicList, answer.body).topic_list)

    async def topics_of_cluster(self, cluster: str) -> list[str]:
        """Topics with queues on brokers of the cluster; empty for an unknown cluster."""
        header = GetTopicsByClusterRequestHeader(cluster=cluster)
        answer = await self._ask_name_server(RequestCode.GET_TOPICS_BY_CLUSTER, header)
        return sorted(decode_body(TopicList, answer.body).topic_list)

    async def system_topics(self, addr: str | None = None) -> list[str]:
        """The system topics of a broker; without ``addr`` the system topics of the name server:
        the names of clusters and brokers."""
        if addr is None:
            answer = await self._ask_name_server(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)
        else:
            answer = await self._ask(addr, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
        return sorted(decode_body(TopicList, answer.body).topic_list)

    async def topic_route(self, topic: str) -> TopicRouteData:
        """Brokers and queues of a topic; refused with TOPIC_NOT_EXIST for an unknown topic."""
        header = GetRouteInfoRequestHeader(topic=topic)
        answer = await self._ask_name_server(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        return decode_body(TopicRouteData, answer.body)

    async def topic_configs(self, addr: str) -> dict[str, TopicConfig]:
        """The configuration of every topic of a broker, including system topics."""
        code = RequestCode.GET_ALL_TOPIC_CONFIG
        return (await self._ask_table(TopicConfigSerializeWrapper, addr, code)).topic_config_table

    async def create_topic(self, addr: str, config: TopicConfig) -> None:
        """Create or change a topic on one broker."""
        validate_topic(config.topic_name)
        header = CreateTopicRequestHeader(
            topic=config.topic_name,
            default_topic=AUTO_CREATE_TOPIC,
            read_queue_nums=config.read_queue_nums,
            write_queue_nums=config.write_queue_nums,
            perm=config.perm,
            topic_filter_type=config.topic_filter_type,
            topic_sys_flag=config.topic_sys_flag,
            order=config.order,
        )
        await self._ask(addr, RequestCode.UPDATE_AND_CREATE_TOPIC, header)

    async def create_topics(self, addr: str, configs: Sequence[TopicConfig]) -> None:
        """Create or change several topics on one broker, all or none. Since RocketMQ 5.3."""
        for config in configs:
            validate_topic(config.topic_name)
        body = encode_body(CreateTopicListRequestBody(topic_config_list=list(configs)))
        await self._ask(addr, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body)

    async def delete_topic_in_broker(self, addr: str, topic: str) -> None:
        header = DeleteTopicRequestHeader(topic=topic)
        await self._ask(addr, RequestCode.DELETE_TOPIC_IN_BROKER, header)

    async def delete_topic_in_namesrv(self, topic: str, cluster: str | None = None) -> None:
        """Remove a topic's route on every name server, or only the route to the brokers of one
        cluster. Brokers with the topic register the route again. RocketMQ 4.9 ignores the
        cluster."""
        header = DeleteTopicFromNamesrvRequestHeader(topic=topic, cluster_name=cluster)
        await self._ask_all_name_servers(RequestCode.DELETE_TOPIC_IN_NAMESRV, header)

    async def topic_stats(self, addr: str, topic: str) -> dict[MessageQueue, TopicOffset]:
        """Lowest and next offset of each queue of the topic on one broker."""
        header = GetTopicStatsInfoRequestHeader(topic=topic)
        code = RequestCode.GET_TOPIC_STATS_INFO
        return (await self._ask_body(TopicStatsTable, addr, code, header)).offset_table

    async def groups_of_topic(self, addr: str, topic: str) -> list[str]:
        """Online groups of the topic, and groups with a committed offset in the topic."""
        header = QueryTopicConsumeByWhoRequestHeader(topic=topic)
        code = RequestCode.QUERY_TOPIC_CONSUME_BY_WHO
        return sorted((await self._ask_body(GroupList, addr, code, header)).group_list)
