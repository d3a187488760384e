"""Tables of topics, groups, offsets and settings, in the format of bodies and of config files.

Compatible with RocketMQ's classes of equal names. Fields that 5.x added are None for 4.9.
"""

from msgspec import Struct, field

FILTER_SINGLE_TAG = "SINGLE_TAG"
FILTER_MULTI_TAG = "MULTI_TAG"


class DataVersion(Struct, rename="camel"):
    """The version of a table. Tables with equal versions are equal."""

    timestamp: int = 0
    counter: int = 0
    state_version: int | None = None

    def next(self, now_ms: int) -> "DataVersion":
        """The version after a further change."""
        return DataVersion(now_ms, self.counter + 1, self.state_version)


class TopicConfig(Struct, rename="camel", kw_only=True):
    """A topic on a broker."""

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = 6
    topic_filter_type: str = FILTER_SINGLE_TAG
    topic_sys_flag: int = 0
    order: bool = False
    attributes: dict[str, str] | None = None


class TopicConfigSerializeWrapper(Struct, rename="camel", kw_only=True):
    """Answer to GET_ALL_TOPIC_CONFIG (21), part of a registration, and topics.json."""

    topic_config_table: dict[str, TopicConfig] = {}
    data_version: DataVersion = field(default_factory=DataVersion)


class CreateTopicListRequestBody(Struct, rename="camel", kw_only=True):
    """Request of UPDATE_AND_CREATE_TOPIC_LIST (18)."""

    topic_config_list: list[TopicConfig] = []


class SubscriptionGroupConfig(Struct, rename="camel", kw_only=True):
    """A consumer group on a broker."""

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    consume_message_orderly: bool | None = None
    consume_timeout_minute: int | None = None
    group_sys_flag: int | None = None
    attributes: dict[str, str] | None = None


class SubscriptionGroupList(Struct, rename="camel", kw_only=True):
    """Request of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225)."""

    group_config_list: list[SubscriptionGroupConfig] = []


class SubscriptionGroupWrapper(Struct, rename="camel", kw_only=True):
    """Answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201), and subscriptionGroup.json."""

    subscription_group_table: dict[str, SubscriptionGroupConfig] = {}
    data_version: DataVersion = field(default_factory=DataVersion)
    forbidden_table: dict[str, dict[str, int]] | None = None


class ConsumerOffsetSerializeWrapper(Struct, rename="camel", kw_only=True):
    """Answer to GET_ALL_CONSUMER_OFFSET (43), and consumerOffset.json: by topic@group and queue."""

    offset_table: dict[str, dict[int, int]] = {}
    data_version: DataVersion | None = None


class DelayOffsetSerializeWrapper(Struct, rename="camel", kw_only=True):
    """Answer to GET_ALL_DELAY_OFFSET (45), and delayOffset.json: offset by delay level."""

    offset_table: dict[int, int] = {}
    data_version: DataVersion | None = None


class KVTable(Struct, rename="camel", kw_only=True):
    """A table of texts: runtime information (28) and key-value settings (219)."""

    table: dict[str, str] = {}


class TopicList(Struct, rename="camel", kw_only=True):
    """A list of topics (206, 224, 304, 305, 343)."""

    topic_list: list[str] = []
    broker_addr: str | None = None


class GroupList(Struct, rename="camel", kw_only=True):
    """Answer to QUERY_TOPIC_CONSUME_BY_WHO (300)."""

    group_list: list[str] = []
