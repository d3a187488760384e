"""Registration of clients: codes 34, 35, 38 and 46, and the notification 40.

A heartbeat names the client's producer and consumer groups. When the members of a consumer group
or the group's topics change, the broker sends NOTIFY_CONSUMER_IDS_CHANGED to every member, at most
once per event-loop iteration. Compatible with RocketMQ's ClientManageProcessor,
ConsumerManageProcessor and DefaultConsumerIdsChangeListener.
"""

import asyncio
import logging
from typing import NamedTuple, Protocol, cast

from core_broker.auth.contracts import Request
from core_broker.config import BrokerConfig
from core_broker.errors import ConnectionClosed, FilterSyntaxError, RequestRefused
from core_broker.filter import compile_filter, is_by_tag
from core_broker.processors.admission import NAME_CHARS_MAX
from core_broker.processors.context import BrokerContext
from core_broker.processors.failed_messages import ensure_retry_topic, find_group
from core_broker.processors.subscriptions import only_tags
from core_broker.remoting.bodies import (
    CheckClientRequestBody,
    ConsumerData,
    DataVersion,
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    MessageModel,
    decode_request,
    encode_body,
)
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import (
    GetConsumerListByGroupRequestHeader,
    NotifyConsumerIdsChangedRequestHeader,
    UnregisterClientRequestHeader,
)
from core_broker.state.channels import ClientChannel
from core_broker.state.consumer_filters import COMPILED_CHARS_PER_HEARTBEAT_MAX

log = logging.getLogger(__name__)

#: Maximum groups in one heartbeat.
GROUPS_PER_HEARTBEAT_MAX = 1_000
#: Maximum subscriptions of all groups in one heartbeat.
SUBSCRIPTIONS_PER_HEARTBEAT_MAX = 10_000


class TableState(NamedTuple):
    """Versions of the settings and tables on which the effect of a heartbeat depends."""

    config: BrokerConfig
    topics: DataVersion
    groups: DataVersion
    consumers: int
    producers: int
    filters: int


class HeartbeatCache(Protocol):
    """The cache by which the fast path recognises repeated heartbeats."""

    def put(
        self,
        connection: Connection,
        request: RemotingCommand,
        client: ClientChannel,
        state: TableState | None,
    ) -> None:
        """Cache a handled heartbeat with the state afterwards; None after a change of a table."""


class ClientProcessor:
    """Maintains the tables of connected clients, and notifies consumers of group changes."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx
        self._changed_groups: set[str] = set()
        self._cache: HeartbeatCache | None = None

    def use_cache(self, cache: HeartbeatCache) -> None:
        """Put handled heartbeats into `cache`; called once, while the broker is assembled."""
        self._cache = cache

    def heartbeat(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """HEART_BEAT (34)."""
        ctx = self._ctx
        before = self.table_state()
        beat = decode_request(HeartbeatData, request.body)
        _check_size(beat)
        client = ClientChannel(
            connection,
            beat.client_id,
            request.language,
            request.version,
            ctx.now_ms(),
            self._account(connection, request),
        )
        chars_max = COMPILED_CHARS_PER_HEARTBEAT_MAX
        refusal: RequestRefused | None = None
        for consumer in beat.consumer_data_set:
            if consumer.group_name:
                try:
                    self._register_consumer(client, consumer)
                except RequestRefused as refused:
                    # The client's other groups are registered in spite of the refusal.
                    refusal = refused
                    continue
                chars_max = ctx.filters.register(
                    consumer.group_name, consumer.subscription_data_set, ctx.now_ms(), chars_max
                )
        for producer in beat.producer_data_set:
            if producer.group_name:
                ctx.producers.register(producer.group_name, client)
        if refusal is not None:
            raise refusal
        if self._cache is not None:
            after = self.table_state()
            self._cache.put(connection, request, client, after if before == after else None)
        return RemotingCommand.response()

    def _account(self, connection: Connection, request: RemotingCommand) -> str | None:
        """Return the account of a heartbeat that the gate has admitted; None if unknown."""
        gate = self._ctx.gate
        if gate is None:
            return None
        return gate.identify(connection.peer_host, Request.of(request)).account or None

    def table_state(self) -> TableState:
        """The current versions; a repeated heartbeat has no effect while the versions are equal."""
        ctx = self._ctx
        return TableState(
            ctx.config,
            ctx.topics.version,
            ctx.groups.version,
            ctx.consumers.changes,
            ctx.producers.changes,
            ctx.filters.changes,
        )

    def _register_consumer(self, client: ClientChannel, consumer: ConsumerData) -> None:
        ctx = self._ctx
        group = find_group(ctx, consumer.group_name)
        if group is not None:
            ensure_retry_topic(ctx, group, unit_mode=consumer.unit_mode)
        changed = ctx.consumers.register(client, consumer)
        if changed and (group is None or group.notify_consumer_ids_changed_enable):
            self._group_changed(consumer.group_name)

    def unregister(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """UNREGISTER_CLIENT (35). C++ clients send "" as the group of an absent role."""
        header = request.header(UnregisterClientRequestHeader)
        if header.producer_group:
            self._ctx.producers.unregister(header.producer_group, connection)
        if header.consumer_group and self._ctx.consumers.unregister(
            header.consumer_group, connection
        ):
            self._left(header.consumer_group)
        return RemotingCommand.response()

    def consumer_list(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_CONSUMER_LIST_BY_GROUP (38)."""
        name = request.header(GetConsumerListByGroupRequestHeader).consumer_group
        group = self._ctx.consumers.group(name)
        if group is None:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {name}")
        body = GetConsumerListByGroupResponseBody(consumer_id_list=group.client_ids())
        return RemotingCommand.response(body=encode_body(body))

    def check_config(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """CHECK_CLIENT_CONFIG (46): check that the broker supports a consumer's filter."""
        body = decode_request(CheckClientRequestBody, request.body)
        subscription = body.subscription_data
        kind = subscription.expression_type
        if is_by_tag(kind):
            return RemotingCommand.response()
        if not self._ctx.config.enable_property_filter:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, only_tags(kind))
        try:
            compile_filter(kind, subscription.sub_string)
        except FilterSyntaxError as error:
            raise RequestRefused(
                ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"Invalid MessageSelector. {error}"
            ) from None
        return RemotingCommand.response()

    def disconnected(self, connection: Connection) -> None:
        """Remove a client whose connection is closed."""
        self._ctx.producers.disconnect(connection)
        for group in self._ctx.consumers.disconnect(connection):
            self._left(group)

    def close_silent(self) -> None:
        """Close the connections of clients without a heartbeat for CHANNEL_EXPIRED_MS."""
        now_ms = self._ctx.now_ms()
        silent = self._ctx.consumers.expired(now_ms) + self._ctx.producers.expired(now_ms)
        for client in silent:
            cast("Connection", client.channel).close("no heartbeat")

    def _left(self, name: str) -> None:
        """Handle that a consumer left a group."""
        if self._ctx.consumers.group(name) is None:
            self._ctx.filters.unregister(name, self._ctx.now_ms())
        group = self._ctx.groups.get(name)
        if group is None or group.notify_consumer_ids_changed_enable:
            self._group_changed(name)

    def _group_changed(self, group: str) -> None:
        if not self._ctx.config.notify_consumer_ids_changed_enable:
            return
        if not self._changed_groups:
            asyncio.get_running_loop().call_soon(self._notify)
        self._changed_groups.add(group)

    def _notify(self) -> None:
        changed, self._changed_groups = self._changed_groups, set()
        for name in sorted(changed):
            group = self._ctx.consumers.group(name)
            if group is None or group.message_model != MessageModel.CLUSTERING:
                continue
            notice = NotifyConsumerIdsChangedRequestHeader(consumer_group=name)
            for channel in group.members:
                command = RemotingCommand.request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, notice)
                try:
                    cast("Connection", channel).send(command)
                except ConnectionClosed:
                    log.debug("a member of %s disconnected before its notification", name)


def _check_size(beat: HeartbeatData) -> None:
    """Raise RequestRefused for a heartbeat with too many groups, subscriptions or characters."""
    groups = [data.group_name for data in beat.consumer_data_set]
    groups += [data.group_name for data in beat.producer_data_set]
    topics = sum(len(data.subscription_data_set) for data in beat.consumer_data_set)
    if len(groups) > GROUPS_PER_HEARTBEAT_MAX:
        raise _too_much("groups", len(groups), GROUPS_PER_HEARTBEAT_MAX)
    if topics > SUBSCRIPTIONS_PER_HEARTBEAT_MAX:
        raise _too_much("subscriptions", topics, SUBSCRIPTIONS_PER_HEARTBEAT_MAX)
    longest = max(map(len, (beat.client_id, *groups)))
    if longest > NAME_CHARS_MAX:
        raise _too_much("characters in a name", longest, NAME_CHARS_MAX)


def _too_much(what: str, count: int, limit: int) -> RequestRefused:
    return RequestRefused(
        ResponseCode.SYSTEM_ERROR, f"a heartbeat with {count} {what}; {limit} are possible"
    )
