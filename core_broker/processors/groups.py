"""Administration of subscription groups: codes 200, 201, 207, 225 and 352.

Compatible with RocketMQ's AdminBrokerProcessor and SubscriptionGroupManager.
"""

import logging

from msgspec.structs import replace

from core_broker.errors import ClientError, RequestRefused
from core_broker.message.topics import validate_group
from core_broker.processors.admission import (
    LIST_MAX,
    check_changeable,
    check_foreign_group,
    list_too_long,
)
from core_broker.processors.context import BrokerContext, ConfigTable
from core_broker.remoting.bodies import (
    SubscriptionGroupConfig,
    SubscriptionGroupList,
    decode_request,
    encode_body,
)
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import (
    DeleteSubscriptionGroupRequestHeader,
    GetSubscriptionGroupConfigRequestHeader,
)
from core_broker.state.topics import QUEUES_PER_TOPIC_MAX

log = logging.getLogger(__name__)


class GroupProcessor:
    """Creates, changes, deletes and lists groups."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def update(self, connection: Connection, request: RemotingCommand) -> None:
        """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200)."""
        self._update(connection, request, [decode_request(SubscriptionGroupConfig, request.body)])

    def update_list(self, connection: Connection, request: RemotingCommand) -> None:
        """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225): all groups, or none after a bad one."""
        groups = decode_request(SubscriptionGroupList, request.body).group_config_list
        if len(groups) > LIST_MAX:
            raise list_too_long("groups", len(groups))
        self._update(connection, request, groups)

    def _update(
        self,
        connection: Connection,
        request: RemotingCommand,
        groups: list[SubscriptionGroupConfig],
    ) -> None:
        check_changeable(self._ctx)
        for group in groups:
            _check(group)
        for group in groups:
            self._ctx.groups.put(group, self._ctx.now_ms())
        self._ctx.answer_after_saving(
            ConfigTable.GROUPS, connection, request, RemotingCommand.response
        )

    def all_configs(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201)."""
        return RemotingCommand.response(body=self._ctx.groups.encode())

    def config(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_SUBSCRIPTIONGROUP_CONFIG (352): one group of the table, for tools of RocketMQ 5."""
        name = request.header(GetSubscriptionGroupConfigRequestHeader).group
        group = self._ctx.groups.get(name)
        if group is None:
            raise RequestRefused(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"No group in this broker. group: {name}"
            )
        return RemotingCommand.response(body=encode_body(group))

    def delete(self, connection: Connection, request: RemotingCommand) -> None:
        """DELETE_SUBSCRIPTIONGROUP (207); also the group's offsets with cleanOffset."""
        ctx = self._ctx
        check_changeable(ctx)
        header = request.header(DeleteSubscriptionGroupRequestHeader)
        check_foreign_group(header.group_name)
        ctx.groups.remove(header.group_name, ctx.now_ms())
        ctx.statistics.forget_group(header.group_name)
        if header.clean_offset or header.remove_offset:
            ctx.offsets.forget_group(header.group_name)
        ctx.answer_after_saving(ConfigTable.GROUPS, connection, request, RemotingCommand.response)


def _check(group: SubscriptionGroupConfig) -> None:
    try:
        validate_group(group.group_name)
    except ClientError as error:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(error)) from None
    if group.retry_queue_nums > QUEUES_PER_TOPIC_MAX:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"retryQueueNums = [{group.retry_queue_nums}] value invalid"
        )


def disable_slow_groups(ctx: BrokerContext) -> None:
    """Disable consumption of groups with a lag above consumerFallbehindThreshold.

    Does nothing unless disableConsumeIfConsumerReadSlowly is set. Only an administrator enables a
    group again.
    """
    if not ctx.config.disable_consume_if_consumer_read_slowly:
        return
    changed = False
    for name in ctx.slow_groups.take(ctx.config.consumer_fallbehind_threshold):
        group = ctx.groups.get(name)
        if group is not None and group.consume_enable:
            log.warning(
                "consumption of group %s is disabled: its lag exceeds consumerFallbehindThreshold",
                name,
            )
            ctx.groups.put(replace(group, consume_enable=False), ctx.now_ms())
            changed = True
    if changed:
        ctx.saver.save(ConfigTable.GROUPS)
