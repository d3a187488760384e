"""Typed bodies under RocketMQ's class names, and their encoding.

    route      brokers and queues of topics          heartbeat  registration of clients
    tables     topics, groups, offsets, settings     register   registration of brokers
    stats      offsets and rates                     clients    connected clients
    queues     locks and offsets of single queues    filters    filter expressions of groups
    inventory  whole-broker answers, private codes   codec      reading and writing

Attributes are the JSON members in snake_case; None is an absent member.
"""

from core_broker.remoting.bodies.clients import (
    ClientConnection,
    ConsumeMessageDirectlyResult,
    ConsumerConnection,
    ConsumerRunningInfo,
    ConsumeStatus,
    GetConsumerListByGroupResponseBody,
    ProcessQueueInfo,
    ProducerConnection,
    ProducerInfo,
    ProducerTableInfo,
)
from core_broker.remoting.bodies.codec import (
    decode_body,
    encode_body,
)
from core_broker.remoting.bodies.enum_names import (
    ConsumeFromWhere,
    ConsumeType,
    MessageModel,
)
from core_broker.remoting.bodies.filters import (
    BloomFilterData,
    ConsumerFilterData,
    ConsumerFilterWrapper,
    FilterDataMapByTopic,
)
from core_broker.remoting.bodies.heartbeat import (
    EXPRESSION_SQL92,
    EXPRESSION_TAG,
    SUBSCRIBE_ALL,
    CheckClientRequestBody,
    ConsumerData,
    HeartbeatData,
    ProducerData,
    SubscriptionData,
)
from core_broker.remoting.bodies.queues import (
    GetConsumerStatusBody,
    LockBatchRequestBody,
    LockBatchResponseBody,
    MessageQueueForC,
    QueryCorrectionOffsetBody,
    ResetOffsetBody,
    ResetOffsetBodyForC,
    UnlockBatchRequestBody,
)
from core_broker.remoting.bodies.register import (
    RegisterBrokerBody,
    decode_register_body,
    encode_register_body,
)
from core_broker.remoting.bodies.route import (
    MASTER_ID,
    PERM_INHERIT,
    PERM_PRIORITY,
    PERM_READ,
    PERM_WRITE,
    BrokerData,
    ClusterInfo,
    MessageQueue,
    QueueData,
    TopicRouteData,
)
from core_broker.remoting.bodies.stats import (
    BrokerStatsData,
    BrokerStatsItem,
    ConsumeQueueData,
    ConsumeStats,
    ConsumeStatsList,
    OffsetWrapper,
    QueryConsumeQueueResponseBody,
    QueryConsumeTimeSpanBody,
    QueueTimeSpan,
    TopicOffset,
    TopicStatsTable,
)
from core_broker.remoting.bodies.tables import (
    FILTER_MULTI_TAG,
    FILTER_SINGLE_TAG,
    ConsumerOffsetSerializeWrapper,
    DataVersion,
    DelayOffsetSerializeWrapper,
    GroupList,
    KVTable,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    TopicConfig,
    TopicConfigSerializeWrapper,
    TopicList,
)
from core_broker.remoting.fastjson import Dialect

__all__ = [
    "EXPRESSION_SQL92",
    "EXPRESSION_TAG",
    "FILTER_MULTI_TAG",
    "FILTER_SINGLE_TAG",
    "MASTER_ID",
    "PERM_INHERIT",
    "PERM_PRIORITY",
    "PERM_READ",
    "PERM_WRITE",
    "SUBSCRIBE_ALL",
    "BloomFilterData",
    "BrokerData",
    "BrokerStatsData",
    "BrokerStatsItem",
    "CheckClientRequestBody",
    "ClientConnection",
    "ClusterInfo",
    "ConsumeFromWhere",
    "ConsumeMessageDirectlyResult",
    "ConsumeQueueData",
    "ConsumeStats",
    "ConsumeStatsList",
    "ConsumeStatus",
    "ConsumeType",
    "ConsumerConnection",
    "ConsumerData",
    "ConsumerFilterData",
    "ConsumerFilterWrapper",
    "ConsumerOffsetSerializeWrapper",
    "ConsumerRunningInfo",
    "DataVersion",
    "DelayOffsetSerializeWrapper",
    "Dialect",
    "FilterDataMapByTopic",
    "GetConsumerListByGroupResponseBody",
    "GetConsumerStatusBody",
    "GroupList",
    "HeartbeatData",
    "KVTable",
    "LockBatchRequestBody",
    "LockBatchResponseBody",
    "MessageModel",
    "MessageQueue",
    "MessageQueueForC",
    "OffsetWrapper",
    "ProcessQueueInfo",
    "ProducerConnection",
    "ProducerData",
    "ProducerInfo",
    "ProducerTableInfo",
    "QueryConsumeQueueResponseBody",
    "QueryConsumeTimeSpanBody",
    "QueryCorrectionOffsetBody",
    "QueueData",
    "QueueTimeSpan",
    "RegisterBrokerBody",
    "ResetOffsetBody",
    "ResetOffsetBodyForC",
    "SubscriptionData",
    "SubscriptionGroupConfig",
    "SubscriptionGroupWrapper",
    "TopicConfig",
    "TopicConfigSerializeWrapper",
    "TopicList",
    "TopicOffset",
    "TopicRouteData",
    "TopicStatsTable",
    "UnlockBatchRequestBody",
    "decode_body",
    "decode_register_body",
    "encode_body",
    "encode_register_body",
]
