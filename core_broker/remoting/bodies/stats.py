"""Offsets and rates of a broker.

Compatible with RocketMQ's classes of equal names. Tables by queue have object keys.
"""

from msgspec import Struct, field

from core_broker.remoting.bodies.heartbeat import SubscriptionData
from core_broker.remoting.bodies.route import MessageQueue


class OffsetWrapper(Struct, rename="camel", kw_only=True):
    """A group's offset in a queue. `last_timestamp`: store time of the last consumed message."""

    broker_offset: int
    consumer_offset: int
    last_timestamp: int = 0
    pull_offset: int | None = None


class ConsumeStats(Struct, rename="camel", kw_only=True):
    """Answer to GET_CONSUME_STATS (208)."""

    offset_table: dict[MessageQueue, OffsetWrapper] = {}
    consume_tps: float = 0.0


class ConsumeStatsList(Struct, rename="camel", kw_only=True):
    """Answer to GET_BROKER_CONSUME_STATS (317): consume stats by group, then by topic."""

    consume_stats_list: list[dict[str, list[ConsumeStats]]] = []
    broker_addr: str | None = None
    total_diff: int | None = None
    total_inflight_diff: int | None = None


class TopicOffset(Struct, rename="camel", kw_only=True):
    """Minimum and maximum offset of a queue, and the store time of the last message."""

    min_offset: int
    max_offset: int
    last_update_timestamp: int = 0


class TopicStatsTable(Struct, rename="camel", kw_only=True):
    """Answer to GET_TOPIC_STATS_INFO (202)."""

    offset_table: dict[MessageQueue, TopicOffset] = {}
    topic_put_tps: float | None = None


class BrokerStatsItem(Struct, rename="camel", kw_only=True):
    """Growth of a counter over a span of time."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


class BrokerStatsData(Struct, rename="camel", kw_only=True):
    """Answer to VIEW_BROKER_STATS_DATA (315)."""

    stats_minute: BrokerStatsItem = field(default_factory=BrokerStatsItem)
    stats_hour: BrokerStatsItem = field(default_factory=BrokerStatsItem)
    stats_day: BrokerStatsItem = field(default_factory=BrokerStatsItem)


class QueueTimeSpan(Struct, rename="camel", kw_only=True):
    """Store times at both ends of a queue and at a group's offset."""

    message_queue: MessageQueue
    min_time_stamp: int
    max_time_stamp: int
    consume_time_stamp: int
    delay_time: int


class QueryConsumeTimeSpanBody(Struct, rename="camel", kw_only=True):
    """Answer to QUERY_CONSUME_TIME_SPAN (303)."""

    consume_time_span_set: list[QueueTimeSpan] = []


class ConsumeQueueData(Struct, rename="camel", kw_only=True):
    """A unit of a consume queue; `matches` is the result of the group's filter."""

    physic_offset: int
    physic_size: int
    tags_code: int
    matches: bool = field(default=False, name="eval")
    extend_data_json: str | None = None
    bit_map: str | None = None
    msg: str | None = None


class QueryConsumeQueueResponseBody(Struct, rename="camel", kw_only=True):
    """Answer to QUERY_CONSUME_QUEUE (321)."""

    queue_data: list[ConsumeQueueData] = []
    min_queue_index: int = 0
    max_queue_index: int = 0
    subscription_data: SubscriptionData | None = None
    filter_data: str | None = None


class HAConnectionRuntimeInfo(Struct, rename="camel", kw_only=True):
    """A slave of a master, with its progress."""

    addr: str
    slave_ack_offset: int = 0
    diff: int = 0
    in_sync: bool = False
    transferred_byte_in_second: int = 0
    transfer_from_where: int = 0


class HAClientRuntimeInfo(Struct, rename="camel", kw_only=True):
    """The progress of a slave; all zeros for a master."""

    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0
    max_offset: int = 0
    transferred_byte_in_second: int = 0
    master_addr: str | None = None


class HARuntimeInfo(Struct, rename="camel", kw_only=True):
    """Answer to GET_BROKER_HA_STATUS (907)."""

    master: bool = True
    master_commit_log_max_offset: int = 0
    in_sync_slave_nums: int = 0
    ha_connection_info: list[HAConnectionRuntimeInfo] = []
    ha_client_runtime_info: HAClientRuntimeInfo = field(default_factory=HAClientRuntimeInfo)
