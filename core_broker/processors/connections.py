"""Connected clients and their subscriptions: codes 203, 204, 328 and 345.

Compatible with RocketMQ's AdminBrokerProcessor and ProducerManager.getProducerTable.
"""

from typing import cast

from core_broker.errors import RequestRefused
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import (
    ClientConnection,
    ConsumerConnection,
    ProducerConnection,
    ProducerInfo,
    ProducerTableInfo,
    QuerySubscriptionResponseBody,
    encode_body,
)
from core_broker.remoting.codes import LanguageCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import (
    GetConsumerConnectionListRequestHeader,
    GetProducerConnectionListRequestHeader,
    QuerySubscriptionByConsumerRequestHeader,
)
from core_broker.state.channels import ClientChannel


class ConnectionsProcessor:
    """Lists connected clients."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def consumers(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_CONSUMER_CONNECTION_LIST (203)."""
        name = request.header(GetConsumerConnectionListRequestHeader).consumer_group
        group = self._ctx.consumers.group(name)
        if group is None:
            raise RequestRefused(
                ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online"
            )
        body = ConsumerConnection(
            connection_set=[_shown(member) for member in group.members.values()],
            subscription_table=group.subscriptions,
            consume_type=group.consume_type,
            message_model=group.message_model,
            consume_from_where=group.consume_from_where,
        )
        return RemotingCommand.response(body=encode_body(body))

    def subscription(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """QUERY_SUBSCRIPTION_BY_CONSUMER (345): the subscription of a connected group."""
        header = request.header(QuerySubscriptionByConsumerRequestHeader)
        body = QuerySubscriptionResponseBody(
            group=header.group,
            topic=header.topic,
            subscription_data=self._ctx.consumers.subscription(header.group, header.topic),
        )
        return RemotingCommand.response(body=encode_body(body))

    def producers(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_PRODUCER_CONNECTION_LIST (204)."""
        name = request.header(GetProducerConnectionListRequestHeader).producer_group
        members = self._ctx.producers.members(name)
        if not members:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"the producer group[{name}] not exist")
        body = ProducerConnection(connection_set=[_shown(member) for member in members])
        return RemotingCommand.response(body=encode_body(body))

    def all_producers(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_ALL_PRODUCER_INFO (328)."""
        producers = self._ctx.producers
        table = {
            group: [
                ProducerInfo(
                    client_id=member.client_id,
                    remote_ip=_peer(member),
                    language=LanguageCode(member.language).name,
                    version=member.version,
                    last_update_timestamp=member.seen_ms,
                )
                for member in producers.members(group)
            ]
            for group in producers.groups
        }
        return RemotingCommand.response(body=encode_body(ProducerTableInfo(data=table)))


def _shown(member: ClientChannel) -> ClientConnection:
    return ClientConnection(
        client_id=member.client_id,
        client_addr=_peer(member),
        language=LanguageCode(member.language).name,
        version=member.version,
    )


def _peer(member: ClientChannel) -> str:
    return cast("Connection", member.channel).peer
