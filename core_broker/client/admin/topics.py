"""Topics: where they live, how they are configured, what their queues hold."""

from core_broker.client.admin.base import AdminBase
from core_broker.message.topics import AUTO_CREATE_TOPIC, validate_topic
from core_broker.remoting.bodies import (
    GroupList,
    MessageQueue,
    TopicConfig,
    TopicConfigSerializeWrapper,
    TopicList,
    TopicOffset,
    TopicRouteData,
    TopicStatsTable,
    decode_body,
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
        """All topics the name server knows, in alphabetical order."""
        answer = await self._ask_name_server(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        return sorted(decode_body(TopicList, answer.body).topic_list)

    async def topics_of_cluster(self, cluster: str) -> list[str]:
        """Topics with queues on a broker of the cluster; empty when there is no such cluster."""
        header = GetTopicsByClusterRequestHeader(cluster=cluster)
        answer = await self._ask_name_server(RequestCode.GET_TOPICS_BY_CLUSTER, header)
        return sorted(decode_body(TopicList, answer.body).topic_list)

    async def system_topics(self, addr: str | None = None) -> list[str]:
        """The topics a broker keeps for itself; without ``addr`` what the name server says: the
        names of clusters and brokers, which are topics too."""
        if addr is None:
            answer = await self._ask_name_server(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)
        else:
            answer = await self._ask(addr, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
        return sorted(decode_body(TopicList, answer.body).topic_list)

    async def topic_route(self, topic: str) -> TopicRouteData:
        """Brokers and queues of a topic; TOPIC_NOT_EXIST when no broker has it."""
        header = GetRouteInfoRequestHeader(topic=topic)
        answer = await self._ask_name_server(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        return decode_body(TopicRouteData, answer.body)

    async def topic_configs(self, addr: str) -> dict[str, TopicConfig]:
        """The configuration of every topic of a broker, its system topics too."""
        code = RequestCode.GET_ALL_TOPIC_CONFIG
        return (await self._ask_body(TopicConfigSerializeWrapper, addr, code)).topic_config_table

    async def create_topic(self, addr: str, config: TopicConfig) -> None:
        """Create a topic on one broker, or change it when it is there."""
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

    async def delete_topic_in_broker(self, addr: str, topic: str) -> None:
        header = DeleteTopicRequestHeader(topic=topic)
        await self._ask(addr, RequestCode.DELETE_TOPIC_IN_BROKER, header)

    async def delete_topic_in_namesrv(self, topic: str, cluster: str | None = None) -> None:
        """Remove the route on every name server, or only that to the brokers of one cluster;
        brokers that still have the topic bring it back. RocketMQ 4.9 knows no clusters here."""
        header = DeleteTopicFromNamesrvRequestHeader(topic=topic, cluster_name=cluster)
        await self._tell_name_servers(RequestCode.DELETE_TOPIC_IN_NAMESRV, header)

    async def topic_stats(self, addr: str, topic: str) -> dict[MessageQueue, TopicOffset]:
        """Lowest and next offset of each queue of the topic on one broker."""
        header = GetTopicStatsInfoRequestHeader(topic=topic)
        code = RequestCode.GET_TOPIC_STATS_INFO
        return (await self._ask_body(TopicStatsTable, addr, code, header)).offset_table

    async def groups_of_topic(self, addr: str, topic: str) -> list[str]:
        """Groups that consume the topic now, or have an offset in it."""
        header = QueryTopicConsumeByWhoRequestHeader(topic=topic)
        code = RequestCode.QUERY_TOPIC_CONSUME_BY_WHO
        return sorted((await self._ask_body(GroupList, addr, code, header)).group_list)
