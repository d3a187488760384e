"""Headers of consuming: pulls, offsets, queries and what a broker asks of a consumer.

Compatible with the RocketMQ classes of the same names.
"""

import msgspec

from core_broker.remoting.ext_fields import Boolean, Header, Int, Long


class PullMessageRequestHeader(Header, gc=False):
    """Request of PULL_MESSAGE (11). The bits of `sys_flag` are in `message.sysflag`."""

    consumer_group: str
    topic: str
    queue_id: Int
    queue_offset: Long
    max_msg_nums: Int
    sys_flag: Int
    commit_offset: Long
    suspend_timeout_millis: Long
    sub_version: Long
    subscription: str | None = None
    expression_type: str | None = None
    max_msg_bytes: Int | None = None
    #: Name of the target broker.
    broker_name: str | None = msgspec.field(default=None, name="bname")


class PullMessageResponseHeader(Header, gc=False):
    """Answer to PULL_MESSAGE; contains all four numbers also for an empty result."""

    suggest_which_broker_id: Long
    next_begin_offset: Long
    min_offset: Long
    max_offset: Long


class QueryConsumerOffsetRequestHeader(Header):
    """Request of QUERY_CONSUMER_OFFSET (14)."""

    consumer_group: str
    topic: str
    queue_id: Int
    set_zero_if_not_found: Boolean | None = None


class QueryConsumerOffsetResponseHeader(Header):
    """Answer to QUERY_CONSUMER_OFFSET."""

    offset: Long


class UpdateConsumerOffsetRequestHeader(Header):
    """Request of UPDATE_CONSUMER_OFFSET (15)."""

    consumer_group: str
    topic: str
    queue_id: Int
    commit_offset: Long


class GetConsumerListByGroupRequestHeader(Header):
    """Request of GET_CONSUMER_LIST_BY_GROUP (38)."""

    consumer_group: str


class UnregisterClientRequestHeader(Header):
    """Request of UNREGISTER_CLIENT (35). C++ clients send "" as the group of an absent role."""

    client_id: str = msgspec.field(name="clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class NotifyConsumerIdsChangedRequestHeader(Header):
    """Request of NOTIFY_CONSUMER_IDS_CHANGED (40), broker to consumer, one-way."""

    consumer_group: str


class SearchOffsetRequestHeader(Header):
    """Request of SEARCH_OFFSET_BY_TIMESTAMP (29)."""

    topic: str
    queue_id: Int
    timestamp: Long
    boundary_type: str | None = None


class SearchOffsetResponseHeader(Header):
    """Answer to SEARCH_OFFSET_BY_TIMESTAMP."""

    offset: Long


class GetMaxOffsetRequestHeader(Header):
    """Request of GET_MAX_OFFSET (30)."""

    topic: str
    queue_id: Int
    committed: Boolean = True


class GetMaxOffsetResponseHeader(Header):
    """Answer to GET_MAX_OFFSET."""

    offset: Long


class GetMinOffsetRequestHeader(Header):
    """Request of GET_MIN_OFFSET (31)."""

    topic: str
    queue_id: Int


class GetMinOffsetResponseHeader(Header):
    """Answer to GET_MIN_OFFSET."""

    offset: Long


class GetEarliestMsgStoretimeRequestHeader(Header):
    """Request of GET_EARLIEST_MSG_STORETIME (32)."""

    topic: str
    queue_id: Int


class GetEarliestMsgStoretimeResponseHeader(Header):
    """Answer to GET_EARLIEST_MSG_STORETIME; -1 when the queue is empty."""

    timestamp: Long


class QueryMessageRequestHeader(Header):
    """Request of QUERY_MESSAGE (12)."""

    topic: str
    key: str
    max_num: Int
    begin_timestamp: Long
    end_timestamp: Long
    #: True to search by the unique key of a message instead of by its KEYS.
    unique_key_query: Boolean = msgspec.field(default=False, name="_UNIQUE_KEY_QUERY")


class QueryMessageResponseHeader(Header):
    """Answer to QUERY_MESSAGE."""

    index_last_update_timestamp: Long
    index_last_update_phyoffset: Long


class ViewMessageRequestHeader(Header):
    """Request of VIEW_MESSAGE_BY_ID (33); `offset` is physical."""

    offset: Long
    topic: str | None = None


class ResetOffsetRequestHeader(Header):
    """Request of INVOKE_BROKER_TO_RESET_OFFSET (222) and RESET_CONSUMER_CLIENT_OFFSET (220)."""

    topic: str
    group: str
    timestamp: Long = 0
    is_force: Boolean = False
    queue_id: Int = -1
    offset: Long | None = None


class GetConsumerStatusRequestHeader(Header):
    """Request of GET_CONSUMER_STATUS_FROM_CLIENT (221) and its relay through the broker (223)."""

    topic: str
    group: str
    client_addr: str | None = None


class GetConsumerRunningInfoRequestHeader(Header):
    """Request of GET_CONSUMER_RUNNING_INFO (307), which the broker relays to the consumer."""

    consumer_group: str
    client_id: str
    jstack_enable: Boolean = False


class ConsumeMessageDirectlyResultRequestHeader(Header):
    """Request of CONSUME_MESSAGE_DIRECTLY (309), which the broker relays with the message."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
