"""Questions and orders that the broker passes on to consumers: codes 222, 223, 307 and 309.

    administrator              broker                  consumer
    307, 309            ->     the same code    ->     answers, and the broker hands it back
    223                 ->     221 to each      ->     answers are put together
    222                 ->     220 to each, one-way; the answer is the table of new offsets

Code 60003 is Gantry's own: 222 knows one time for all queues, and needs a group that is online.

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

#: How long a consumer may take to answer 307 or 309, and 221.
RELAY_TIMEOUT_MS = 10_000
STATUS_TIMEOUT_MS = 5_000
#: Members asked for their status by one 223.
STATUS_MEMBERS_MAX = 1_000
#: A timestamp that stands for the end of the queue.
LATEST = -1


class RelayProcessor:
    """Stands between administrators and consumers, which cannot reach each other."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def running_info(self, connection: Connection, request: RemotingCommand) -> None:
        """GET_CONSUMER_RUNNING_INFO (307)."""
        header = request.header(GetConsumerRunningInfoRequestHeader)
        member = self._member(header.consumer_group, header.client_id)
        asked = RemotingCommand.request(request.code, dict(request.ext_fields), request.body)
        self._ctx.answer_later(connection, request, _relayed(member, header.consumer_group, asked))

    def consume_directly(self, connection: Connection, request: RemotingCommand) -> None:
        """CONSUME_MESSAGE_DIRECTLY (309): a consumer handles one stored message at once."""
        header = request.header(ConsumeMessageDirectlyResultRequestHeader)
        member = self._member(header.consumer_group, header.client_id or "")
        fields = {**request.ext_fields, "brokerName": self._ctx.config.broker_name}
        asked = RemotingCommand.request(request.code, fields, self._message(header.msg_id or ""))
        self._ctx.answer_later(connection, request, _relayed(member, header.consumer_group, asked))

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
        """INVOKE_BROKER_TO_RESET_OFFSET (222): connected consumers go to a point in time."""
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
        # The language of whoever asks decides, not that of the consumers, and not about the answer:
        # so does Java.
        body = _table_for_c(table) if request.language is LanguageCode.CPP else _table(table)
        order = ResetOffsetRequestHeader(
            topic=header.topic, group=header.group, timestamp=header.timestamp
        )
        for member in group.members.values():
            _tell(
                member,
                RemotingCommand.request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, order, body),
            )
        return RemotingCommand.response(body=_table(table))

    def set_offsets(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """SET_GROUP_OFFSETS (60003): a group goes to an offset of its own in each queue that the
        body names, whether anybody is online or not. All of them or none."""
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
                    f"offset {offset} is not in queue {queue.queue_id} of {queue.topic}: "
                    f"it has {low} to {high}",
                )
        for queue, offset in table.items():
            if not self._ctx.offsets.commit(header.group, header.topic, queue.queue_id, offset):
                raise RequestRefused(ResponseCode.SYSTEM_ERROR, "the table of offsets is full")
        group = self._ctx.consumers.group(header.group)
        order = ResetOffsetRequestHeader(topic=header.topic, group=header.group)
        for member in group.members.values() if group is not None else ():
            _tell(
                member,
                RemotingCommand.request(
                    RequestCode.RESET_CONSUMER_CLIENT_OFFSET, order, _table(table)
                ),
            )
        return RemotingCommand.response(body=_table(table))

    def _reset_table(
        self, header: ResetOffsetRequestHeader, topic: TopicConfig
    ) -> dict[MessageQueue, int]:
        """Where each queue goes on; without force never forwards of where the group is."""
        offsets = ask_all(
            partial(self._offset_at, header.topic, queue_id, header.timestamp)
            for queue_id in range(topic.write_queue_nums)
        )
        table = {}
        for queue_id, wanted in enumerate(offsets):
            committed = self._ctx.offsets.committed(header.group, header.topic, queue_id)
            if committed is None:
                raise RequestRefused(
                    ResponseCode.SYSTEM_ERROR, f"THe consumer group <{header.group}> not exist"
                )
            queue = MessageQueue(header.topic, self._ctx.config.broker_name, queue_id)
            table[queue] = wanted if header.is_force else min(wanted, committed)
        return table

    def _offset_at(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        store = self._ctx.store
        if timestamp_ms == LATEST:
            return store.queue_range(topic, queue_id)[1]
        return max(store.offset_by_time(topic, queue_id, timestamp_ms), 0)

    def consumer_status(self, connection: Connection, request: RemotingCommand) -> None:
        """INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223): offsets as the consumers know them."""
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


async def _relayed(member: ClientChannel, group: str, asked: RemotingCommand) -> RemotingCommand:
    who = f"consumer <{group}> <{member.client_id}>"
    try:
        answer = await cast("Connection", member.channel).invoke(asked, RELAY_TIMEOUT_MS)
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
    """Ask all members at once; one that does not answer is left out, as in RocketMQ."""
    tables = await asyncio.gather(*(_status(member, header) for member in members))
    known = {
        member.client_id: table
        for member, table in zip(members, tables, strict=True)
        if table is not None
    }
    return RemotingCommand.response(body=encode_body(GetConsumerStatusBody(consumer_table=known)))


async def _status(
    member: ClientChannel, header: GetConsumerStatusRequestHeader
) -> dict[MessageQueue, int] | None:
    question = GetConsumerStatusRequestHeader(topic=header.topic, group=header.group)
    asked = RemotingCommand.request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, question)
    try:
        answer = await cast("Connection", member.channel).invoke(asked, STATUS_TIMEOUT_MS)
        if answer.code != ResponseCode.SUCCESS or not answer.body:
            return None
        return decode_body(GetConsumerStatusBody, answer.body).message_queue_table
    except (TransportError, ClientError, ProtocolError) as error:
        log.warning("no status of %s: %s", member.client_id, error)
        return None


def _tell(member: ClientChannel, command: RemotingCommand) -> None:
    try:
        cast("Connection", member.channel).send(command)
    except ConnectionClosed:
        log.debug("%s left before it was told", member.client_id)


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
