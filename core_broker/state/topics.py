"""The topics of a broker: topics.json.

    {"dataVersion":{…},"topicConfigTable":{topic: TopicConfig}}

A missing topic is created on first use from a template topic with the inherit bit, usually TBW102.
Configurations are replaced, never mutated. A change encodes a few topics, however many the table
has (encoded_members.py). Compatible with RocketMQ's TopicConfigManager.
"""

from collections.abc import Iterable, Mapping

import msgspec

from core_broker.errors import ClientError
from core_broker.message.topics import (
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    FAILURE_PREFIXES,
    OFFSET_MOVED_EVENT_TOPIC,
    SCHEDULE_TOPIC,
    SELF_TEST_TOPIC,
    reply_topic,
    validate_topic,
)
from core_broker.remoting.bodies import (
    FILTER_SINGLE_TAG,
    PERM_INHERIT,
    PERM_READ,
    PERM_WRITE,
    DataVersion,
    TopicConfig,
    TopicConfigSerializeWrapper,
    decode_body,
    encode_body,
)
from core_broker.state.encoded_members import EncodedMembers

#: Maximum queues of a new topic: code 202 visits every queue while the event loop waits.
QUEUES_PER_TOPIC_MAX = 4_096

#: Bits of `topic_sys_flag`, as in RocketMQ's TopicSysFlag.
UNIT = 0x1
UNIT_SUB = 0x2


class TopicTable:
    """All topics, the names of system topics, and the version of the table."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicConfig] = {}
        self._members = EncodedMembers[TopicConfig]()
        self._ordered: set[str] = set()
        self._failure_topics = 0
        self.version = DataVersion()
        #: Number of changes of existing topics; the creation of a topic does not count.
        self.replacements = 0
        self.system_topics: set[str] = set()
        #: Look-up by name; None for a missing topic.
        self.get = self._topics.get

    def __len__(self) -> int:
        return len(self._topics)

    @property
    def limited_count(self) -> int:
        """Number of topics without retry and dead-letter topics, of which each group has two."""
        return len(self._topics) - self._failure_topics

    @property
    def encoded_count(self) -> int:
        """Number of topics that all saves and answers have encoded."""
        return self._members.encoded

    @property
    def configs(self) -> list[TopicConfig]:
        """All topics."""
        return list(self._topics.values())

    def add_system_topics(self, topics: Iterable[TopicConfig]) -> None:
        """Add topics of the broker itself; topics already in the table keep their settings."""
        for topic in topics:
            if topic.topic_name not in self._topics:
                self._set(topic.topic_name, topic)
            self.system_topics.add(topic.topic_name)

    def put(self, topic: TopicConfig, now_ms: int) -> None:
        """Add a topic, or replace the topic with the same name."""
        self._set(topic.topic_name, topic)
        self.version = self.version.next(now_ms)

    def remove(self, name: str, now_ms: int) -> bool:
        """Delete a topic; False when the topic does not exist."""
        if name not in self._topics:
            return False
        self._drop(name)
        self.version = self.version.next(now_ms)
        return True

    def inherit(
        self, name: str, template: str, queues: int, *, sys_flag: int, now_ms: int
    ) -> TopicConfig | None:
        """Create a topic from a template; None without the inherit bit or with an illegal name."""
        parent = self._topics.get(template)
        if parent is None or not parent.perm & PERM_INHERIT:
            return None
        count = max(min(queues, parent.write_queue_nums), 1)
        return self._make(
            TopicConfig(
                topic_name=name,
                read_queue_nums=count,
                write_queue_nums=count,
                perm=parent.perm & ~PERM_INHERIT,
                topic_filter_type=parent.topic_filter_type,
                topic_sys_flag=sys_flag,
            ),
            now_ms,
        )

    def ensure(
        self, name: str, queues: int, perm: int, *, sys_flag: int = 0, now_ms: int
    ) -> tuple[TopicConfig | None, bool]:
        """The topic, created if missing, and True if it was created now; None for an illegal name.

        Creates retry and dead-letter topics.
        """
        topic = self._topics.get(name)
        if topic is not None:
            return topic, False
        count = max(queues, 0)
        config = TopicConfig(
            topic_name=name,
            read_queue_nums=count,
            write_queue_nums=count,
            perm=perm,
            topic_sys_flag=sys_flag,
        )
        created = self._make(config, now_ms)
        return created, created is not None

    def apply_order(self, order_table: Mapping[str, str], now_ms: int) -> list[TopicConfig]:
        """Set `order` exactly for the topics of a name server's order table; return the changed."""
        names = self._ordered ^ {name for name in order_table if name in self._topics}
        changed = [
            msgspec.structs.replace(topic, order=not topic.order)
            for topic in map(self._topics.__getitem__, sorted(names))
        ]
        for topic in changed:
            self._set(topic.topic_name, topic)
        if changed:
            self.version = self.version.next(now_ms)
        return changed

    def touch(self, now_ms: int) -> None:
        """Advance the version for a change of all topics, such as the broker's permission."""
        self.replacements += 1
        self.version = self.version.next(now_ms)

    def encode(self) -> bytes:
        """The table in the format of the file and of the answer to code 21."""
        return b"".join(self.parts())

    def parts(self) -> list[bytes]:
        """The encoded table in parts, to be joined without a separator."""
        head = b'{"dataVersion":%b,"topicConfigTable":{' % encode_body(self.version)
        return [head, *self._members.parts(), b"}}"]

    def restore(self, content: bytes) -> None:
        """Add the topics of the file; raises ProtocolError for an invalid content."""
        wrapper = decode_body(TopicConfigSerializeWrapper, content)
        for name, topic in wrapper.topic_config_table.items():
            self._set(name, topic)
        self.version = wrapper.data_version

    def replace_all(self, topics: Mapping[str, TopicConfig], version: DataVersion) -> None:
        """Become a copy of another broker's table; the broker's own system topics stay."""
        kept = self.system_topics.union(topics)
        for name in [name for name in self._topics if name not in kept]:
            self._drop(name)
        for name, topic in topics.items():
            if self._topics.get(name) != topic:
                self._set(name, topic)
        self.version = version

    def _drop(self, name: str) -> None:
        del self._topics[name]
        self._members.remove(name)
        self._ordered.discard(name)
        self._failure_topics -= name.startswith(FAILURE_PREFIXES)
        self.replacements += 1

    def _set(self, name: str, topic: TopicConfig) -> None:
        if name in self._topics:
            self.replacements += 1
        else:
            self._failure_topics += name.startswith(FAILURE_PREFIXES)
        self._topics[name] = topic
        self._members.put(name, topic)
        if topic.order:
            self._ordered.add(name)
        else:
            self._ordered.discard(name)

    def _make(self, topic: TopicConfig, now_ms: int) -> TopicConfig | None:
        if topic.write_queue_nums > QUEUES_PER_TOPIC_MAX:
            return None
        try:
            validate_topic(topic.topic_name)
        except ClientError:
            return None
        self.put(topic, now_ms)
        return topic


def perm_text(perm: int) -> str:
    """A permission in the form of RocketMQ's remarks: RW- for 6."""
    bits = ((PERM_READ, "R"), (PERM_WRITE, "W"), (PERM_INHERIT, "X"))
    return "".join(letter if perm & bit else "-" for bit, letter in bits)


def topic_text(topic: TopicConfig) -> str:
    """A topic in the form of RocketMQ's remarks."""
    return (
        f"TopicConfig [topicName={topic.topic_name}, readQueueNums={topic.read_queue_nums}, "
        f"writeQueueNums={topic.write_queue_nums}, perm={perm_text(topic.perm)}, "
        f"topicFilterType={topic.topic_filter_type}, topicSysFlag={topic.topic_sys_flag}, "
        f"order={str(topic.order).lower()}]"
    )


def system_topics(
    *,
    cluster: str,
    broker: str,
    template_queues: int,
    delay_levels: int,
    auto_create: bool,
    cluster_topic: bool,
    broker_topic: bool,
    trace_topic: str | None,
) -> list[TopicConfig]:
    """The topics that a 4.9 broker creates at its start."""
    plain = PERM_READ | PERM_WRITE
    inherit = plain | PERM_INHERIT
    rows = [
        (SELF_TEST_TOPIC, 1, plain),
        (BENCHMARK_TOPIC, 1024, plain),
        (cluster, 16, inherit if cluster_topic else PERM_INHERIT),
        (broker, 1, inherit if broker_topic else PERM_INHERIT),
        (OFFSET_MOVED_EVENT_TOPIC, 1, plain),
        (SCHEDULE_TOPIC, delay_levels, plain),
        (reply_topic(cluster), 1, plain),
    ]
    if auto_create:
        rows.append((AUTO_CREATE_TOPIC, template_queues, inherit))
    if trace_topic is not None:
        rows.append((trace_topic, 1, plain))
    return [
        TopicConfig(
            topic_name=name,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=perm,
            topic_filter_type=FILTER_SINGLE_TAG,
        )
        for name, queues, perm in rows
    ]
