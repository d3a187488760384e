"""Requests that the broker relays to consumers: codes 222, 223, 307 and 309.

    administrator              broker                  consumer
    307, 309            ->     the same code    ->     answers, and the broker relays the answer
    223                 ->     221 to each      ->     answers are merged
    222                 ->     220 to each, one-way; the answer is the table of new offsets

Gantry adds code 60003, because 222 has one timestamp for all queues and needs an online group.

Compatible with RocketMQ's Broker2Client and AdminBrokerProcessor.callConsumer.
"""

import asyncio
import logging
from functools import partial
from typing import cast

from core_broker.errors import (
    ClientError,
    ConnectionClosed,
    ProtocolError,
    RequestRefused,
    RequestTimeout,
    TransportError,
)
from core_broker.message.ids import parse_offset_msg_id
from core_broker.processors.admission import check_foreign_group
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import (
    Dialect,
    GetConsumerStatusBody,
    MessageQueue,
    MessageQueueForC,
    ResetOffsetBody,
    ResetOffsetBodyForC,
    TopicConfig,
    decode_body,
    encode_body,
)
from core_broker.remoting.codes import LanguageCode, RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
    ResetOffsetRequestHeader,
)
from core_broker.state.channels import ClientChannel
from core_broker.store import ask_all

log = logging.getLogger(__name__)

#: Timeout for a consumer's answer to 307 and 309, ms.
RELAY_TIMEOUT_MS = 10_000
#: Timeout for a consumer's answer to 221, ms.
STATUS_TIMEOUT_MS = 5_000
#: Maximum members that one 223 queries.
STATUS_MEMBERS_MAX = 1_000
#: Timestamp value for the end of the queue.
LATEST = -1


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
        record = self._ctx.store.read_at(offset)
        if record is None:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {offset}"
            )
        return record

    def reset_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """INVOKE_BROKER_TO_RESET_OFFSET (222): reset connected consumers to a point in time."""
        header = request.header(ResetOffsetRequestHeader)
        topic = self._ctx.topics.get(header.topic)
        if topic is None:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR,
                "[reset-offset] reset offset failed, no topic in this broker. "
                f"topic={header.topic}",
            )
        table = self._reset_table(header, topic)
        group = self._ctx.consumers.group(header.group)
        if group is None:
            raise RequestRefused(
                ResponseCode.CONSUMER_NOT_ONLINE,
                f"Consumer not online, so can not reset offset, Group: {header.group} "
                f"Topic: {header.topic} Timestamp: {header.timestamp}",
            )
        # As in Java, the administrator's language selects the body for the consumers, and the
        # consumers' own languages do not count. The answer always has the Java form.
        body = _table_for_c(table) if request.language is LanguageCode.CPP else _table(table)
        reset = ResetOffsetRequestHeader(
            topic=header.topic, group=header.group, timestamp=header.timestamp
        )
        for member in group.members.values():
            _notify(
                member,
                RemotingCommand.request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, reset, body),
            )
        return RemotingCommand.response(body=_table(table))

    def set_offsets(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """SET_GROUP_OFFSETS (60003): set the group's offset in each queue of the body.

        The group may be offline. All offsets are checked before the first commit.
        """
        header = request.header(ResetOffsetRequestHeader)
        table = decode_body(ResetOffsetBody, request.body).offset_table
        topic = self._ctx.topics.get(header.topic)
        check_foreign_group(header.group)
        if topic is None or not table:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR, f"no such topic, or no offset: {header.topic}"
            )
        for queue, offset in table.items():
            low, high = self._ctx.store.queue_range(header.topic, queue.queue_id)
            is_queue = queue.topic == header.topic and 0 <= queue.queue_id < topic.read_queue_nums
            if not is_queue or not low <= offset <= high:
                raise RequestRefused(
                    ResponseCode.SYSTEM_ERROR,
                    f"offset {offset} is not in queue {queue.queue_id} of {queue.topic}, "
                    f"which has {low} to {high}",
                )
        for queue, offset in table.items():
            if not self._ctx.offsets.commit(header.group, header.topic, queue.queue_id, offset):
                raise RequestRefused(ResponseCode.SYSTEM_ERROR, "the table of offsets is full")
        group = self._ctx.consumers.group(header.group)
        reset = ResetOffsetRequestHeader(topic=header.topic, group=header.group)
        for member in group.members.values() if group is not None else ():
            _notify(
                member,
                RemotingCommand.request(
                    RequestCode.RESET_CONSUMER_CLIENT_OFFSET, reset, _table(table)
                ),
            )
        return RemotingCommand.response(body=_table(table))

    def _reset_table(
        self, header: ResetOffsetRequestHeader, topic: TopicConfig
    ) -> dict[MessageQueue, int]:
        """The new offset of each queue; without force at most the group's committed offset."""
        offsets = ask_all(
            partial(self._offset_at, header.topic, queue_id, header.timestamp)
            for queue_id in range(topic.write_queue_nums)
        )
        table = {}
        for queue_id, target in enumerate(offsets):
            committed = self._ctx.offsets.committed(header.group, header.topic, queue_id)
            if committed is None:
                raise RequestRefused(
                    ResponseCode.SYSTEM_ERROR, f"THe consumer group <{header.group}> not exist"
                )
            queue = MessageQueue(header.topic, self._ctx.config.broker_name, queue_id)
            table[queue] = target if header.is_force else min(target, committed)
        return table

    def _offset_at(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        store = self._ctx.store
        if timestamp_ms == LATEST:
            return store.queue_range(topic, queue_id)[1]
        return max(store.offset_by_time(topic, queue_id, timestamp_ms), 0)

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
        return decode_body(GetConsumerStatusBody, answer.body).message_queue_table
    except (TransportError, ClientError, ProtocolError) as error:
        log.warning("consumer %s did not answer the status request: %s", member.client_id, error)
        return None


def _notify(member: ClientChannel, command: RemotingCommand) -> None:
    try:
        cast("Connection", member.channel).send(command)
    except ConnectionClosed:
        log.debug("consumer %s disconnected before its notification", member.client_id)


def _table(table: dict[MessageQueue, int]) -> bytes:
    return encode_body(ResetOffsetBody(offset_table=table), Dialect.FASTJSON)


def _table_for_c(table: dict[MessageQueue, int]) -> bytes:
    queues = [
        MessageQueueForC(
            topic=queue.topic,
            broker_name=queue.broker_name,
            queue_id=queue.queue_id,
            offset=offset,
        )
        for queue, offset in table.items()
    ]
    return encode_body(ResetOffsetBodyForC(offset_table=queues))
