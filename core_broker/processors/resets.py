"""Resets of a group's offsets: codes 222 and 60003.

    request                   new offset of each queue          group
    222, client of 4.9        by time                           online; its members commit
    222, client of 5.x        by time, or the given offset      may be offline; the broker commits
    60003                     the given offsets                 may be offline; the broker commits

Each online member gets the table in a one-way request (220). Gantry adds code 60003, because 222
has one timestamp for all queues. Compatible with RocketMQ's Broker2Client.resetOffset of 4.9.8, and
for clients of 5.x with AdminBrokerProcessor.resetOffset and useServerSideResetOffset, the default
of 5.3.3. As in 4.9.8, a reset by time without force moves no offset forwards; 5.3.3 ignores force.
"""

import logging
from collections.abc import Iterable
from functools import partial
from typing import cast

from core_broker.errors import ConnectionClosed, RequestRefused
from core_broker.processors.admission import check_foreign_group
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import (
    Dialect,
    MessageQueue,
    MessageQueueForC,
    ResetOffsetBody,
    ResetOffsetBodyForC,
    TopicConfig,
    decode_request,
    encode_body,
)
from core_broker.remoting.codes import LanguageCode, RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import ResetOffsetRequestHeader
from core_broker.remoting.versions import VERSION_5
from core_broker.state.channels import ClientChannel
from core_broker.store import ask_all

log = logging.getLogger(__name__)

#: Timestamp value for the end of the queue.
LATEST = -1
#: Offset value of a request by time; equal to an absent offset.
NO_OFFSET = -1

OffsetTable = dict[MessageQueue, int]


class ResetProcessor:
    """Computes new offsets, commits the offsets and notifies the members of the group."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def reset_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """INVOKE_BROKER_TO_RESET_OFFSET (222): reset a group in a topic."""
        header = request.header(ResetOffsetRequestHeader)
        topic = self._ctx.topics.get(header.topic)
        if request.version >= VERSION_5:
            self._check_master()
            return self._reset_in_broker(header, topic)
        if topic is None:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR,
                "[reset-offset] reset offset failed, no topic in this broker. "
                f"topic={header.topic}",
            )
        table = self._table_by_time(header, range(topic.write_queue_nums), known_only=True)
        if self._ctx.consumers.group(header.group) is None:
            raise RequestRefused(
                ResponseCode.CONSUMER_NOT_ONLINE,
                f"Consumer not online, so can not reset offset, Group: {header.group} "
                f"Topic: {header.topic} Timestamp: {header.timestamp}",
            )
        # As in Java, the administrator's language selects the body for the consumers, and the
        # consumers' own languages do not count. The answer always has the Java form.
        is_c = request.language is LanguageCode.CPP
        self._notify_members(header, _body_for_c(table) if is_c else _body(table))
        return RemotingCommand.response(body=_body(table))

    def set_offsets(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """SET_GROUP_OFFSETS (60003): set the group's offset in each queue of the body.

        The group may be offline. All offsets are checked before the first commit.
        """
        self._check_master()
        header = request.header(ResetOffsetRequestHeader)
        table = decode_request(ResetOffsetBody, request.body).offset_table
        topic = self._ctx.topics.get(header.topic)
        check_foreign_group(header.group)
        if topic is None or not table:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR, f"no such topic, or no offset: {header.topic}"
            )
        for queue, offset in table.items():
            self._check_offset(topic, queue, offset)
        return self._committed(header, table)

    def _check_master(self) -> None:
        """Refuse commits of the broker itself on a slave: its master has other offsets."""
        if self._ctx.is_slave:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, "Can not reset offset in slave broker")

    def _reset_in_broker(
        self, header: ResetOffsetRequestHeader, topic: TopicConfig | None
    ) -> RemotingCommand:
        group = header.group
        if topic is None:
            raise RequestRefused(
                ResponseCode.TOPIC_NOT_EXIST, f"Topic {header.topic} does not exist"
            )
        check_foreign_group(group)
        if self._ctx.groups.get(group) is None and not self._ctx.offsets.topics_of(group):
            raise RequestRefused(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} does not exist"
            )
        if header.queue_id >= 0:
            queue = MessageQueue(header.topic, self._ctx.config.broker_name, header.queue_id)
            if header.offset is not None and header.offset != NO_OFFSET:
                table = {queue: header.offset}
            else:
                table = self._table_by_time(header, (header.queue_id,))
            self._check_offset(topic, queue, table[queue])
        else:
            table = self._table_by_time(header, range(topic.read_queue_nums))
        if not table:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, "No queues to reset.")
        log.info("group %s is reset in topic %s: %d queues", group, header.topic, len(table))
        return self._committed(header, table)

    def _committed(self, header: ResetOffsetRequestHeader, table: OffsetTable) -> RemotingCommand:
        """Commit the offsets and notify the members; the answer has the table."""
        for queue, offset in table.items():
            if not self._ctx.offsets.commit(header.group, header.topic, queue.queue_id, offset):
                raise RequestRefused(ResponseCode.SYSTEM_ERROR, "the table of offsets is full")
        self._notify_members(header, _body(table))
        return RemotingCommand.response(body=_body(table))

    def _check_offset(self, topic: TopicConfig, queue: MessageQueue, offset: int) -> None:
        low, high = self._ctx.store.queue_range(topic.topic_name, queue.queue_id)
        is_queue = queue.topic == topic.topic_name and 0 <= queue.queue_id < topic.read_queue_nums
        if not is_queue or not low <= offset <= high:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR,
                f"offset {offset} is not in queue {queue.queue_id} of {queue.topic}, "
                f"which has {low} to {high}",
            )

    def _table_by_time(
        self,
        header: ResetOffsetRequestHeader,
        queue_ids: Iterable[int],
        *,
        known_only: bool = False,
    ) -> OffsetTable:
        """The new offset of each queue; without force at most the group's committed offset.

        With `known_only`, a queue in which the group has no offset is refused.
        """
        ids = list(queue_ids)
        targets = ask_all(
            partial(self._offset_at, header.topic, queue_id, header.timestamp) for queue_id in ids
        )
        table = {}
        for queue_id, target in zip(ids, targets, strict=True):
            committed = self._ctx.offsets.committed(header.group, header.topic, queue_id)
            if committed is None and known_only:
                raise RequestRefused(
                    ResponseCode.SYSTEM_ERROR, f"THe consumer group <{header.group}> not exist"
                )
            queue = MessageQueue(header.topic, self._ctx.config.broker_name, queue_id)
            table[queue] = (
                target if header.is_force or committed is None else min(target, committed)
            )
        return table

    def _offset_at(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        store = self._ctx.store
        if timestamp_ms == LATEST:
            return store.queue_range(topic, queue_id)[1]
        return max(store.offset_by_time(topic, queue_id, timestamp_ms), 0)

    def _notify_members(self, header: ResetOffsetRequestHeader, body: bytes) -> None:
        group = self._ctx.consumers.group(header.group)
        reset = ResetOffsetRequestHeader(
            topic=header.topic, group=header.group, timestamp=header.timestamp
        )
        for member in group.members.values() if group is not None else ():
            _notify(
                member,
                RemotingCommand.request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, reset, body),
            )


def _notify(member: ClientChannel, command: RemotingCommand) -> None:
    try:
        cast("Connection", member.channel).send(command)
    except ConnectionClosed:
        log.debug("consumer %s disconnected before its notification", member.client_id)


def _body(table: OffsetTable) -> bytes:
    return encode_body(ResetOffsetBody(offset_table=table), Dialect.FASTJSON)


def _body_for_c(table: OffsetTable) -> bytes:
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
