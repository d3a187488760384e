"""Consumer and producer groups: configuration, members and progress."""

from collections.abc import Sequence

from core_broker.client.admin.base import RELAYED_TIMEOUT_MS, AdminBase
from core_broker.message.topics import validate_group
from core_broker.remoting.bodies import (
    ConsumeMessageDirectlyResult,
    ConsumerConnection,
    ConsumerRunningInfo,
    ConsumeStats,
    ConsumeStatsList,
    GetConsumerListByGroupResponseBody,
    ProducerConnection,
    ProducerInfo,
    ProducerTableInfo,
    SubscriptionGroupConfig,
    SubscriptionGroupList,
    SubscriptionGroupWrapper,
    decode_body,
    encode_body,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import (
    ConsumeMessageDirectlyResultRequestHeader,
    DeleteSubscriptionGroupRequestHeader,
    GetConsumerConnectionListRequestHeader,
    GetConsumerListByGroupRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    GetProducerConnectionListRequestHeader,
)


class GroupAdmin(AdminBase):
    async def group_configs(self, addr: str) -> dict[str, SubscriptionGroupConfig]:
        """The configuration of every group on a broker."""
        code = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
        wrapper = await self._ask_table(SubscriptionGroupWrapper, addr, code)
        return wrapper.subscription_group_table

    async def create_group(self, addr: str, config: SubscriptionGroupConfig) -> None:
        """Create or change a group on one broker."""
        validate_group(config.group_name)
        code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
        await self._ask(addr, code, body=encode_body(config))

    async def create_groups(self, addr: str, configs: Sequence[SubscriptionGroupConfig]) -> None:
        """Create or change several groups on one broker, all or none. Since RocketMQ 5.3."""
        for config in configs:
            validate_group(config.group_name)
        body = encode_body(SubscriptionGroupList(group_config_list=list(configs)))
        await self._ask(addr, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body=body)

    async def delete_group(self, addr: str, group: str, clean_offset: bool = True) -> None:
        """Delete a group on one broker and, with ``clean_offset``, the group's offsets."""
        # RocketMQ 4.9 reads the flag removeOffset, RocketMQ 5.x reads cleanOffset.
        header = DeleteSubscriptionGroupRequestHeader(
            group_name=group, clean_offset=clean_offset, remove_offset=clean_offset
        )
        await self._ask(addr, RequestCode.DELETE_SUBSCRIPTIONGROUP, header)

    async def consume_stats(self, addr: str, group: str, topic: str | None = None) -> ConsumeStats:
        """Broker and consumer offset of each queue, of one topic or of all topics of the group."""
        header = GetConsumeStatsRequestHeader(consumer_group=group, topic=topic)
        return await self._ask_body(ConsumeStats, addr, RequestCode.GET_CONSUME_STATS, header)

    async def broker_consume_stats(
        self, addr: str, *, is_order: bool = False, timeout_ms: int | None = None
    ) -> dict[str, list[ConsumeStats]]:
        """All groups of a broker with offsets, one ConsumeStats per topic; with ``is_order`` only
        for topics configured as ordered."""
        header = GetConsumeStatsInBrokerHeader(is_order=is_order)
        code = RequestCode.GET_BROKER_CONSUME_STATS
        body = await self._ask_body(ConsumeStatsList, addr, code, header, timeout_ms=timeout_ms)
        return {group: stats for entry in body.consume_stats_list for group, stats in entry.items()}

    async def consumer_connections(self, addr: str, group: str) -> ConsumerConnection:
        """Members and subscriptions; refused with CONSUMER_NOT_ONLINE without connected members."""
        header = GetConsumerConnectionListRequestHeader(consumer_group=group)
        code = RequestCode.GET_CONSUMER_CONNECTION_LIST
        return await self._ask_body(ConsumerConnection, addr, code, header)

    async def consumer_ids(self, addr: str, group: str) -> list[str]:
        """Client ids of the members at one broker; refused with SYSTEM_ERROR without members."""
        header = GetConsumerListByGroupRequestHeader(consumer_group=group)
        code = RequestCode.GET_CONSUMER_LIST_BY_GROUP
        body = await self._ask_body(GetConsumerListByGroupResponseBody, addr, code, header)
        return body.consumer_id_list

    async def producer_connections(self, addr: str, group: str) -> ProducerConnection:
        """Members of a producer group; refused with SYSTEM_ERROR for an unknown group."""
        header = GetProducerConnectionListRequestHeader(producer_group=group)
        code = RequestCode.GET_PRODUCER_CONNECTION_LIST
        return await self._ask_body(ProducerConnection, addr, code, header)

    async def all_producers(self, addr: str) -> dict[str, list[ProducerInfo]]:
        """All connected producers of a broker, by group; RocketMQ 4.9.4 or later."""
        code = RequestCode.GET_ALL_PRODUCER_INFO
        return (await self._ask_body(ProducerTableInfo, addr, code)).data

    async def consumer_running_info(
        self, addr: str, group: str, client_id: str, jstack: bool = False
    ) -> ConsumerRunningInfo:
        """The running info of a consumer; the broker relays the request to the consumer."""
        header = GetConsumerRunningInfoRequestHeader(
            consumer_group=group, client_id=client_id, jstack_enable=jstack
        )
        code = RequestCode.GET_CONSUMER_RUNNING_INFO
        answer = await self._ask(addr, code, header, timeout_ms=RELAYED_TIMEOUT_MS)
        return decode_body(ConsumerRunningInfo, answer.body)

    async def consume_message_directly(
        self, addr: str, group: str, client_id: str, offset_msg_id: str, topic: str | None = None
    ) -> ConsumeMessageDirectlyResult:
        """Let one consumer consume one stored message now; offsets do not change."""
        header = ConsumeMessageDirectlyResultRequestHeader(
            consumer_group=group, client_id=client_id, msg_id=offset_msg_id, topic=topic
        )
        code = RequestCode.CONSUME_MESSAGE_DIRECTLY
        answer = await self._ask(addr, code, header, timeout_ms=RELAYED_TIMEOUT_MS)
        return decode_body(ConsumeMessageDirectlyResult, answer.body)
