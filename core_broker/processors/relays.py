"""Requests that the broker relays to consumers: codes 223, 307 and 309.

    administrator              broker                  consumer
    307, 309            ->     the same code    ->     answers, and the broker relays the answer
    223                 ->     221 to each      ->     answers are merged

Compatible with RocketMQ's Broker2Client and AdminBrokerProcessor.callConsumer.
"""

import asyncio
import logging
from typing import cast

from core_broker.errors import (
    ClientError,
    ProtocolError,
    RequestRefused,
    RequestTimeout,
    TransportError,
)
from core_broker.message.ids import parse_offset_msg_id
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import (
    GetConsumerStatusBody,
    MessageQueue,
    decode_request,
    encode_body,
)
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
)
from core_broker.state.channels import ClientChannel

log = logging.getLogger(__name__)

#: Timeout for a consumer's answer to 307 and 309, ms.
RELAY_TIMEOUT_MS = 10_000
#: Timeout for a consumer's answer to 221, ms.
STATUS_TIMEOUT_MS = 5_000
#: Maximum members that one 223 queries.
STATUS_MEMBERS_MAX = 1_000


class RelayProcessor:
    """Relays requests of administrators to consumers."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def running_info(self, connection: Connection, request: RemotingCommand) -> None:
        """GET_CONSUMER_RUNNING_INFO (307)."""
        header = request.header(GetConsumerRunningInfoRequestHeader)
        member = self._member(header.consumer_group, header.client_id)
        command = RemotingCommand.request(request.code, dict(request.ext_fields), request.body)
        self._ctx.answer_later(
            connection, request, _relayed(member, header.consumer_group, command)
        )

    def consume_directly(self, connection: Connection, request: RemotingCommand) -> None:
        """CONSUME_MESSAGE_DIRECTLY (309): a consumer processes one stored message at once."""
        header = request.header(ConsumeMessageDirectlyResultRequestHeader)
        member = self._member(header.consumer_group, header.client_id or "")
        fields = {**request.ext_fields, "brokerName": self._ctx.config.broker_name}
        command = RemotingCommand.request(request.code, fields, self._message(header.msg_id or ""))
        self._ctx.answer_later(
            connection, request, _relayed(member, header.consumer_group, command)
        )

    def _member(self, group: str, client_id: str) -> ClientChannel:
        member = self._ctx.consumers.member(group, client_id)
        if member is None:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{client_id}> not online"
            )
        return member

    def _message(self, offset_id: str) -> bytes:
        try:
            offset = parse_offset_msg_id(offset_id)[2]
        except ClientError as error:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(error)) from None
        return self._ctx.visible_record(offset)

    def consumer_status(self, connection: Connection, request: RemotingCommand) -> None:
        """INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223): the consumers' own view of their offsets."""
        header = request.header(GetConsumerStatusRequestHeader)
        group = self._ctx.consumers.group(header.group)
        members = [
            member
            for member in (group.members.values() if group is not None else ())
            if not header.client_addr or header.client_addr == member.client_id
        ]
        if not members:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR,
                f"No Any Consumer online in the consumer group: [{header.group}]",
            )
        work = _statuses(members[:STATUS_MEMBERS_MAX], header)
        self._ctx.answer_later(connection, request, work)


async def _relayed(member: ClientChannel, group: str, command: RemotingCommand) -> RemotingCommand:
    who = f"consumer <{group}> <{member.client_id}>"
    try:
        answer = await cast("Connection", member.channel).invoke(command, RELAY_TIMEOUT_MS)
    except RequestTimeout as error:
        raise RequestRefused(ResponseCode.CONSUME_MSG_TIMEOUT, f"{who} Timeout: {error}") from None
    except (TransportError, ClientError) as error:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"{who} Exception: {error}") from None
    return RemotingCommand.response(
        answer.code, answer.remark, dict(answer.ext_fields), answer.body
    )


async def _statuses(
    members: list[ClientChannel], header: GetConsumerStatusRequestHeader
) -> RemotingCommand:
    """Query all members concurrently; as in RocketMQ, members without an answer are left out."""
    tables = await asyncio.gather(*(_status(member, header) for member in members))
    consumer_table = {
        member.client_id: table
        for member, table in zip(members, tables, strict=True)
        if table is not None
    }
    return RemotingCommand.response(
        body=encode_body(GetConsumerStatusBody(consumer_table=consumer_table))
    )


async def _status(
    member: ClientChannel, header: GetConsumerStatusRequestHeader
) -> dict[MessageQueue, int] | None:
    query = GetConsumerStatusRequestHeader(topic=header.topic, group=header.group)
    command = RemotingCommand.request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, query)
    try:
        answer = await cast("Connection", member.channel).invoke(command, STATUS_TIMEOUT_MS)
        if answer.code != ResponseCode.SUCCESS or not answer.body:
            return None
        return decode_request(GetConsumerStatusBody, answer.body).message_queue_table
    except (TransportError, ClientError, ProtocolError) as error:
        log.warning("consumer %s did not answer the status request: %s", member.client_id, error)
        return None
