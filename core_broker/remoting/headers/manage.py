"""Headers of administration that a broker answers.

Compatible with the RocketMQ classes of the same names.
"""

import msgspec

from core_broker.remoting.ext_fields import Boolean, Header, Int, Long


class CreateTopicRequestHeader(Header):
    """Request of UPDATE_AND_CREATE_TOPIC (17)."""

    topic: str
    default_topic: str
    read_queue_nums: Int
    write_queue_nums: Int
    perm: Int
    topic_filter_type: str
    topic_sys_flag: Int = 0
    order: Boolean = False
    attributes: str | None = None


class DeleteTopicRequestHeader(Header):
    """Request of DELETE_TOPIC_IN_BROKER (215)."""

    topic: str


class DeleteSubscriptionGroupRequestHeader(Header):
    """Request of DELETE_SUBSCRIPTIONGROUP (207). 4.9 clients send removeOffset, 5.x cleanOffset."""

    group_name: str
    clean_offset: Boolean = False
    remove_offset: Boolean = False


class GetTopicStatsInfoRequestHeader(Header):
    """Request of GET_TOPIC_STATS_INFO (202)."""

    topic: str


class GetTopicConfigRequestHeader(Header):
    """Request of GET_TOPIC_CONFIG (351)."""

    topic: str


class GetSubscriptionGroupConfigRequestHeader(Header):
    """Request of GET_SUBSCRIPTIONGROUP_CONFIG (352)."""

    group: str


class QueryTopicsByConsumerRequestHeader(Header):
    """Request of QUERY_TOPICS_BY_CONSUMER (343)."""

    group: str


class QuerySubscriptionByConsumerRequestHeader(Header):
    """Request of QUERY_SUBSCRIPTION_BY_CONSUMER (345)."""

    group: str
    topic: str


class GetConsumerConnectionListRequestHeader(Header):
    """Request of GET_CONSUMER_CONNECTION_LIST (203)."""

    consumer_group: str


class GetProducerConnectionListRequestHeader(Header):
    """Request of GET_PRODUCER_CONNECTION_LIST (204)."""

    producer_group: str


class GetConsumeStatsRequestHeader(Header):
    """Request of GET_CONSUME_STATS (208); without topic all topics of the group."""

    consumer_group: str
    topic: str | None = None


class GetConsumeStatsInBrokerHeader(Header):
    """Request of GET_BROKER_CONSUME_STATS (317)."""

    is_order: Boolean = False


class QueryTopicConsumeByWhoRequestHeader(Header):
    """Request of QUERY_TOPIC_CONSUME_BY_WHO (300)."""

    topic: str


class QueryConsumeTimeSpanRequestHeader(Header):
    """Request of QUERY_CONSUME_TIME_SPAN (303)."""

    topic: str
    group: str


class CloneGroupOffsetRequestHeader(Header):
    """Request of CLONE_GROUP_OFFSET (314)."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: Boolean = False


class QueryCorrectionOffsetHeader(Header):
    """Request of QUERY_CORRECTION_OFFSET (308); the groups are joined by commas."""

    topic: str
    filter_groups: str | None = None
    compare_group: str | None = None


class ViewBrokerStatsDataRequestHeader(Header):
    """Request of VIEW_BROKER_STATS_DATA (315)."""

    stats_name: str
    stats_key: str


class QueryConsumeQueueRequestHeader(Header):
    """Request of QUERY_CONSUME_QUEUE (321)."""

    topic: str
    queue_id: Int = 0
    index: Long = 0
    count: Int = 0
    consumer_group: str | None = None


class GetBrokerConfigResponseHeader(Header):
    """Answer to GET_BROKER_CONFIG (26); the version is a DataVersion as JSON."""

    version: str


class GetBrokerAclConfigResponseHeader(Header):
    """Answer to GET_BROKER_CLUSTER_ACL_INFO (52)."""

    version: str
    broker_name: str
    broker_addr: str
    cluster_name: str
    all_acl_file_version: str | None = msgspec.field(default=None, name="allAclFileVersion")


class CreateAccessConfigRequestHeader(Header):
    """Request of UPDATE_AND_CREATE_ACL_CONFIG (50); lists of permissions are joined by commas."""

    access_key: str
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: Boolean = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: str | None = None
    group_perms: str | None = None


class DeleteAccessConfigRequestHeader(Header):
    """Request of DELETE_ACL_CONFIG (51)."""

    access_key: str


class UpdateAccessAccountRequestHeader(Header):
    """Request of UPDATE_ACCESS_ACCOUNT (60005); the body is the PlainAccessConfig."""

    access_key: str


class KickClientRequestHeader(Header):
    """Request of KICK_CLIENT (60006); without a group, every connection of the client."""

    client_id: str
    reason: str
    group: str | None = None


class UpdateGlobalWhiteAddrsConfigRequestHeader(Header):
    """Request of UPDATE_GLOBAL_WHITE_ADDRS_CONFIG (53)."""

    global_white_addrs: str
    acl_file_full_path: str | None = None
