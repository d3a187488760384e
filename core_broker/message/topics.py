"""Names of topics and groups: system names, derived names, and validation.

Compatible with RocketMQ's TopicValidator, Validators and MixAll.
"""

import re

from core_broker.errors import ClientError

#: Maximum name lengths, bytes. Only retry and dead-letter topics exceed the 127 bytes of record
#: magic 1.
TOPIC_BYTES_MAX = 127
DERIVED_TOPIC_BYTES_MAX = 255
GROUP_BYTES_MAX = 255

RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
#: Prefixes of the topics of failed messages: a group has one topic with each.
FAILURE_PREFIXES = (RETRY_PREFIX, DLQ_PREFIX)
SYSTEM_TOPIC_PREFIX = "rmq_sys_"
SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"
REPLY_TOPIC_SUFFIX = "_REPLY_TOPIC"

#: The template of automatically created topics.
AUTO_CREATE_TOPIC = "TBW102"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
BENCHMARK_TOPIC = "BenchmarkTest"
TRANS_HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
TRANS_OP_HALF_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TRANS_CHECK_MAX_TIME_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
SELF_TEST_TOPIC = "SELF_TEST_TOPIC"
OFFSET_MOVED_EVENT_TOPIC = "OFFSET_MOVED_EVENT"

SYSTEM_TOPICS = frozenset(
    {
        AUTO_CREATE_TOPIC,
        SCHEDULE_TOPIC,
        BENCHMARK_TOPIC,
        TRANS_HALF_TOPIC,
        TRANS_OP_HALF_TOPIC,
        TRANS_CHECK_MAX_TIME_TOPIC,
        TRACE_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_EVENT_TOPIC,
    }
)
#: System topics that clients may not write to.
SEND_FORBIDDEN_TOPICS = frozenset(
    {
        SCHEDULE_TOPIC,
        TRANS_HALF_TOPIC,
        TRANS_OP_HALF_TOPIC,
        TRANS_CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_EVENT_TOPIC,
    }
)

#: The consumer group of the broker's progress in settling half messages.
TRANSACTION_GROUP = "CID_RMQ_SYS_TRANS"
TOOLS_CONSUMER_GROUP = "TOOLS_CONSUMER"
SELF_TEST_CONSUMER_GROUP = "SELF_TEST_C_GROUP"
CLIENT_INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"
SYSTEM_GROUPS = frozenset(
    {
        TOOLS_CONSUMER_GROUP,
        SELF_TEST_CONSUMER_GROUP,
        "FILTERSRV_CONSUMER",
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_OWNER",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_PULL",
    }
)

_LEGAL = re.compile(r"[%|a-zA-Z0-9_-]+")
_LEGAL_TEXT = "^[%|a-zA-Z0-9_-]+$"


def retry_topic(group: str) -> str:
    """The topic that redelivers messages to a group after failed consumption."""
    return RETRY_PREFIX + group


def dlq_topic(group: str) -> str:
    """The topic of a group's dead letters."""
    return DLQ_PREFIX + group


def reply_topic(cluster: str) -> str:
    """The topic of request-reply responses in a cluster."""
    return cluster + REPLY_TOPIC_SUFFIX


def is_system_topic(topic: str) -> bool:
    """True for reserved system topics."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_TOPIC_PREFIX)


def is_system_group(group: str) -> bool:
    """True for groups of the system and its tools."""
    return group in SYSTEM_GROUPS or group.startswith(SYSTEM_GROUP_PREFIX)


def validate_topic(topic: str) -> None:
    """Raise ClientError with RocketMQ's text for an illegal topic name."""
    if not topic.strip():
        raise ClientError("The specified topic is blank.")
    if not _LEGAL.fullmatch(topic):
        raise ClientError(
            f"The specified topic contains illegal characters, allowing only {_LEGAL_TEXT}"
        )
    derived = topic.startswith(FAILURE_PREFIXES)
    limit = DERIVED_TOPIC_BYTES_MAX if derived else TOPIC_BYTES_MAX
    if len(topic) > limit:
        raise ClientError(f"The specified topic is longer than topic max length {limit}.")


def validate_group(group: str) -> None:
    """Raise ClientError with RocketMQ's text for an illegal group name."""
    if not group.strip():
        raise ClientError("the specified group is blank")
    if not _LEGAL.fullmatch(group):
        raise ClientError(
            f"the specified group[{group}] contains illegal characters, allowing only {_LEGAL_TEXT}"
        )
    if len(group) > GROUP_BYTES_MAX:
        raise ClientError(f"the specified group is longer than group max length {GROUP_BYTES_MAX}.")
