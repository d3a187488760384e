"""Connected clients, and the running state of consumers.

Compatible with RocketMQ's classes of equal names; ClientConnection is RocketMQ's Connection.
"""

from msgspec import Struct, field

from core_broker.remoting.bodies.enum_names import (
    ConsumeFromWhere,
    ConsumeType,
    EnumName,
    MessageModel,
    name_ordinals,
)
from core_broker.remoting.bodies.heartbeat import SubscriptionData
from core_broker.remoting.bodies.route import MessageQueue


class GetConsumerListByGroupResponseBody(Struct, rename="camel", kw_only=True):
    """Answer to GET_CONSUMER_LIST_BY_GROUP (38)."""

    consumer_id_list: list[str] = []


class ClientConnection(Struct, rename="camel", kw_only=True):
    """One connected client; `language` is a LanguageCode name, `version` an MQVersion ordinal."""

    client_id: str
    client_addr: str
    language: str
    version: int


class QuerySubscriptionResponseBody(Struct, rename="camel", kw_only=True):
    """Answer to QUERY_SUBSCRIPTION_BY_CONSUMER (345); no data while the group is not connected."""

    group: str
    topic: str
    subscription_data: SubscriptionData | None = None


class ConsumerConnection(Struct, rename="camel", kw_only=True):
    """Answer to GET_CONSUMER_CONNECTION_LIST (203)."""

    connection_set: list[ClientConnection] = []
    subscription_table: dict[str, SubscriptionData] = {}
    consume_type: EnumName = ConsumeType.CONSUME_PASSIVELY.value
    message_model: EnumName = MessageModel.CLUSTERING.value
    consume_from_where: EnumName = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET.value

    def __post_init__(self) -> None:
        name_ordinals(
            self,
            consume_type=ConsumeType,
            message_model=MessageModel,
            consume_from_where=ConsumeFromWhere,
        )


class ProducerConnection(Struct, rename="camel", kw_only=True):
    """Answer to GET_PRODUCER_CONNECTION_LIST (204)."""

    connection_set: list[ClientConnection] = []


class ProducerInfo(Struct, rename="camel", kw_only=True):
    """A connected producer."""

    client_id: str
    remote_ip: str = field(name="remoteIP")
    language: str
    version: int
    last_update_timestamp: int


class ProducerTableInfo(Struct, rename="camel", kw_only=True):
    """Answer to GET_ALL_PRODUCER_INFO (328): producers by group."""

    data: dict[str, list[ProducerInfo]] = {}


class ProcessQueueInfo(Struct, rename="camel", kw_only=True):
    """A consumer's state of one queue. `droped` is RocketMQ's spelling."""

    commit_offset: int = 0
    cached_msg_min_offset: int = 0
    cached_msg_max_offset: int = 0
    cached_msg_count: int = 0
    cached_msg_size_in_mib: int = field(default=0, name="cachedMsgSizeInMiB")
    transaction_msg_min_offset: int = 0
    transaction_msg_max_offset: int = 0
    transaction_msg_count: int = 0
    locked: bool = False
    try_unlock_times: int = 0
    last_lock_timestamp: int = 0
    droped: bool = False
    last_pull_timestamp: int = 0
    last_consume_timestamp: int = 0


class ConsumeStatus(Struct, kw_only=True):
    """Rates and times of a consumer for one topic."""

    pull_rt: float = field(default=0.0, name="pullRT")
    pull_tps: float = field(default=0.0, name="pullTPS")
    consume_rt: float = field(default=0.0, name="consumeRT")
    consume_ok_tps: float = field(default=0.0, name="consumeOKTPS")
    consume_failed_tps: float = field(default=0.0, name="consumeFailedTPS")
    consume_failed_msgs: int = field(default=0, name="consumeFailedMsgs")


class ConsumerRunningInfo(Struct, rename="camel", kw_only=True):
    """Answer to GET_CONSUMER_RUNNING_INFO (307)."""

    properties: dict[str, str] = {}
    subscription_set: list[SubscriptionData] = []
    mq_table: dict[MessageQueue, ProcessQueueInfo] = {}
    status_table: dict[str, ConsumeStatus] = {}
    user_consumer_info: dict[str, str] | None = None
    jstack: str | None = None


class ConsumeMessageDirectlyResult(Struct, rename="camel", kw_only=True):
    """Answer to CONSUME_MESSAGE_DIRECTLY (309). `consume_result` is CR_SUCCESS, CR_LATER, …"""

    consume_result: str | None = None
    order: bool = False
    auto_commit: bool = True
    remark: str | None = None
    spent_time_mills: int = 0
