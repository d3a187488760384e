"""Allocation of a topic's queues to a member, by the group's member list at a broker.

Compatible with RocketMQ's RebalanceImpl.rebalanceByTopic.
"""

from core_broker.client.consumer.allocate import sorted_client_ids, sorted_queues
from core_broker.client.consumer.settings import GroupSettings
from core_broker.client.instance import ClientInstance
from core_broker.errors import GantryError
from core_broker.remoting.bodies import (
    GetConsumerListByGroupResponseBody,
    MessageModel,
    MessageQueue,
    decode_body,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import GetConsumerListByGroupRequestHeader


class Membership:
    """One member of a group."""

    def __init__(self, instance: ClientInstance, group: str, settings: GroupSettings) -> None:
        self._instance = instance
        self._group = group
        self._settings = settings

    async def allocated(self, topic: str) -> list[MessageQueue]:
        """The queues of the member; raises GantryError when no server answers."""
        route = await self._instance.routes.route(topic)
        queues = sorted_queues(route.subscribe_queues)
        if self._settings.model is MessageModel.BROADCASTING:
            return queues
        # Register at new brokers first: the member list must contain the client.
        await self._instance.announce()
        members = await self._members(queues)
        return self._settings.allocate(self._instance.client_id, queues, sorted_client_ids(members))

    async def _members(self, queues: list[MessageQueue]) -> list[str]:
        """The member list of the first answering broker of the topic."""
        header = GetConsumerListByGroupRequestHeader(consumer_group=self._group)
        code = RequestCode.GET_CONSUMER_LIST_BY_GROUP
        failure: GantryError | None = None
        for broker_name in dict.fromkeys(queue.broker_name for queue in queues):
            try:
                addr = self._instance.routes.addr(broker_name)
                answer = await self._instance.ask(addr, code, header)
                body = decode_body(GetConsumerListByGroupResponseBody, answer.body)
            except GantryError as error:
                failure = error
                continue
            return body.consumer_id_list
        if failure:
            raise failure
        return []
