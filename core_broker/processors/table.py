"""The table of request codes and their handlers.

Codes without a handler are answered with REQUEST_CODE_NOT_SUPPORTED (3). Flow control refuses
before access control, as in RocketMQ's NettyRemotingAbstract. RocketMQ 5 added codes; the handlers
for clients, tools, brokers and controllers of RocketMQ 5 are 18, 225, 343, 345, 351, 352, 361, 400,
402, 906, 907, 908, 1007 and 1008.
"""

from functools import partial

from core_broker.auth.contracts import Request
from core_broker.auth.user_handlers import user_handlers
from core_broker.processors.access import AccessProcessor
from core_broker.processors.assignments import AssignmentProcessor
from core_broker.processors.cleaning import CleaningProcessor
from core_broker.processors.clients import ClientProcessor
from core_broker.processors.connections import ConnectionsProcessor
from core_broker.processors.consume_stats import ConsumeStatsProcessor
from core_broker.processors.context import BrokerContext, ConfigTable, Handler, UnsavedTopic
from core_broker.processors.durability import Durability
from core_broker.processors.flow_control import CONTROLLED, PULLS, FlowControl
from core_broker.processors.groups import GroupProcessor
from core_broker.processors.inventory import InventoryProcessor
from core_broker.processors.kicks import KickProcessor
from core_broker.processors.locks import LockProcessor
from core_broker.processors.offsets import OffsetProcessor
from core_broker.processors.pull import PullProcessor, PullQuery
from core_broker.processors.query import QueryProcessor
from core_broker.processors.relays import RelayProcessor
from core_broker.processors.replicas import ReplicasProcessor
from core_broker.processors.replication import ReplicationProcessor
from core_broker.processors.replies import ReplyProcessor
from core_broker.processors.resets import ResetProcessor
from core_broker.processors.runtime_info import RuntimeInfoProcessor
from core_broker.processors.send import SendProcessor
from core_broker.processors.send_back import SendBackProcessor
from core_broker.processors.settings import SettingsProcessor
from core_broker.processors.statistics import StatisticsProcessor
from core_broker.processors.topics import TopicProcessor
from core_broker.processors.transactions import TransactionProcessor
from core_broker.processors.turn import Turn
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.state.long_poll import HeldPulls
from core_broker.store import ColdRead


class RequestTable:
    """All processors of a broker; `dispatch` calls the handler of a request."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx
        self.held_pulls: HeldPulls[PullQuery] = HeldPulls()
        self.pulls = PullProcessor(ctx, self.held_pulls)
        durability = Durability(ctx.store, lambda: ctx.config, lambda: ctx.replicas)
        self.turn = Turn(ctx.store, self.pulls.wake, durability)
        self.flow = FlowControl(ctx, self.turn, self.held_pulls)
        self.clients = ClientProcessor(ctx)
        self.runtime_info = RuntimeInfoProcessor(ctx)
        self._handlers = {**self._data_path(), **self._administration()}
        self._gate = ctx.gate
        self._enter = self._handle if ctx.gate is None else self._admit

    def dispatch(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """Answer one request, or return None when the handler answers later."""
        handler = self._handlers.get(request.code)
        # The VIP port is for producers: pulls are not supported there.
        if handler is None or (
            connection.local_port == self._ctx.vip_port and request.code in PULLS
        ):
            return RemotingCommand.response(
                ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
                f" request type {request.code} not supported",
            )
        if request.code in CONTROLLED:
            refusal = self.flow.refusal(connection, request)
            if refusal is not None:
                return refusal
        return self._enter(handler, connection, request)

    def _admit(
        self, handler: Handler, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand | None:
        """Run a handler if the gate admits the request; raises Refusal, which is the answer."""
        assert self._gate is not None
        self._gate.admit(connection.peer_host, Request.of(request))
        return self._handle(handler, connection, request)

    def _handle(
        self, handler: Handler, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand | None:
        """Run a handler; run it again once an unsaved topic is saved or cold data is read."""
        again = partial(self._handle, handler, connection, request)
        try:
            return handler(connection, request)
        except UnsavedTopic:
            self._ctx.answer_after_saving(ConfigTable.TOPICS, connection, request, again)
            return None
        except ColdRead as cold:
            self._ctx.answer_when_warm(cold, connection, request, again)
            return None

    def _data_path(self) -> dict[int, Handler]:
        """Handlers for producers and consumers."""
        send = SendProcessor(self._ctx, self.turn)
        send_back = SendBackProcessor(self._ctx, self.turn)
        replies = ReplyProcessor(self._ctx, self.turn)
        transactions = TransactionProcessor(self._ctx, self.turn)
        offsets = OffsetProcessor(self._ctx)
        locks = LockProcessor(self._ctx)
        assignments = AssignmentProcessor(self._ctx)
        return {
            Code.SEND_MESSAGE: send.send,
            Code.SEND_MESSAGE_V2: send.send_v2,
            Code.SEND_BATCH_MESSAGE: send.send_v2,
            Code.SEND_REPLY_MESSAGE: replies.reply,
            Code.SEND_REPLY_MESSAGE_V2: replies.reply_v2,
            Code.END_TRANSACTION: transactions.end,
            Code.CONSUMER_SEND_MSG_BACK: send_back.send_back,
            Code.PULL_MESSAGE: self.pulls.pull,
            Code.LITE_PULL_MESSAGE: self.pulls.pull,
            Code.HEART_BEAT: self.clients.heartbeat,
            Code.UNREGISTER_CLIENT: self.clients.unregister,
            Code.GET_CONSUMER_LIST_BY_GROUP: self.clients.consumer_list,
            Code.CHECK_CLIENT_CONFIG: self.clients.check_config,
            Code.QUERY_CONSUMER_OFFSET: offsets.query,
            Code.UPDATE_CONSUMER_OFFSET: offsets.update,
            Code.SEARCH_OFFSET_BY_TIMESTAMP: offsets.search,
            Code.GET_MAX_OFFSET: offsets.max_offset,
            Code.GET_MIN_OFFSET: offsets.min_offset,
            Code.GET_EARLIEST_MSG_STORETIME: offsets.earliest_store_time,
            Code.GET_ALL_CONSUMER_OFFSET: offsets.all_offsets,
            Code.GET_ALL_DELAY_OFFSET: offsets.delay_offsets,
            Code.QUERY_CORRECTION_OFFSET: offsets.correction,
            Code.CLONE_GROUP_OFFSET: offsets.clone,
            Code.QUERY_ASSIGNMENT: assignments.query,
            Code.GET_ALL_MESSAGE_REQUEST_MODE: assignments.request_modes,
            Code.LOCK_BATCH_MQ: locks.lock,
            Code.UNLOCK_BATCH_MQ: locks.unlock,
        }

    def _administration(self) -> dict[int, Handler]:
        """Handlers for administration tools and consoles."""
        topics = TopicProcessor(self._ctx)
        groups = GroupProcessor(self._ctx)
        connections = ConnectionsProcessor(self._ctx)
        stats = ConsumeStatsProcessor(self._ctx)
        query = QueryProcessor(self._ctx)
        relays = RelayProcessor(self._ctx)
        resets = ResetProcessor(self._ctx)
        settings = SettingsProcessor(self._ctx)
        cleaning = CleaningProcessor(self._ctx)
        inventory = InventoryProcessor(self._ctx)
        replication = ReplicationProcessor(self._ctx)
        return {
            Code.UPDATE_AND_CREATE_TOPIC: topics.update,
            Code.UPDATE_AND_CREATE_TOPIC_LIST: topics.update_list,
            Code.GET_TOPIC_CONFIG: topics.config,
            Code.DELETE_TOPIC_IN_BROKER: topics.delete,
            Code.GET_ALL_TOPIC_CONFIG: topics.all_configs,
            Code.GET_TOPIC_STATS_INFO: topics.stats,
            Code.QUERY_TOPIC_CONSUME_BY_WHO: topics.consumed_by,
            Code.QUERY_TOPICS_BY_CONSUMER: topics.consumed_topics,
            Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: topics.system_topics,
            Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: groups.update,
            Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: groups.update_list,
            Code.GET_SUBSCRIPTIONGROUP_CONFIG: groups.config,
            Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: groups.all_configs,
            Code.DELETE_SUBSCRIPTIONGROUP: groups.delete,
            Code.GET_CONSUMER_CONNECTION_LIST: connections.consumers,
            Code.GET_PRODUCER_CONNECTION_LIST: connections.producers,
            Code.GET_ALL_PRODUCER_INFO: connections.all_producers,
            Code.QUERY_SUBSCRIPTION_BY_CONSUMER: connections.subscription,
            Code.GET_CONSUME_STATS: stats.of_group,
            Code.GET_BROKER_CONSUME_STATS: stats.of_broker,
            Code.QUERY_CONSUME_TIME_SPAN: stats.time_span,
            Code.QUERY_MESSAGE: query.by_key,
            Code.VIEW_MESSAGE_BY_ID: query.by_offset,
            Code.QUERY_CONSUME_QUEUE: query.queue_units,
            Code.RESUME_CHECK_HALF_MESSAGE: TransactionProcessor(self._ctx, self.turn).resume,
            Code.GET_CONSUMER_RUNNING_INFO: relays.running_info,
            Code.CONSUME_MESSAGE_DIRECTLY: relays.consume_directly,
            Code.INVOKE_BROKER_TO_RESET_OFFSET: resets.reset_offset,
            Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: relays.consumer_status,
            Code.UPDATE_BROKER_CONFIG: settings.update,
            Code.GET_BROKER_CONFIG: settings.show,
            Code.GET_BROKER_RUNTIME_INFO: self.runtime_info.show,
            Code.GET_BROKER_HA_STATUS: replication.ha_status,
            Code.RESET_MASTER_FLUSH_OFFSET: replication.reset_flush_offset,
            Code.GET_BROKER_EPOCH_CACHE: replication.epochs,
            Code.VIEW_BROKER_STATS_DATA: StatisticsProcessor(self._ctx).view,
            Code.CLEAN_EXPIRED_CONSUMEQUEUE: cleaning.expired_queues,
            Code.CLEAN_UNUSED_TOPIC: cleaning.unused_topics,
            Code.DELETE_EXPIRED_COMMITLOG: cleaning.expired_log,
            Code.GET_TOPIC_INVENTORY: inventory.topics,
            Code.GET_GROUP_INVENTORY: inventory.groups,
            Code.GET_ALL_CLIENTS: inventory.clients,
            Code.SET_GROUP_OFFSETS: resets.set_offsets,
            Code.KICK_CLIENT: KickProcessor(self._ctx).kick,
            **ReplicasProcessor(self._ctx).handlers(),
            **AccessProcessor(self._ctx).handlers(),
            **self._users(),
        }

    def _users(self) -> dict[int, Handler]:
        ctx = self._ctx
        return user_handlers(
            ctx.users,
            ctx.users_file,
            ctx.gate,
            passwords_readable=ctx.config.user_password_readable,
        )
