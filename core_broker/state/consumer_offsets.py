"""The committed offsets of groups: consumerOffset.json.

    {"offsetTable":{"topic@group":{"0":12,"1":7}}}      queue id: next offset to consume

Compatible with RocketMQ's ConsumerOffsetManager. RocketMQ reads queue ids with and without quotes.
"""

from collections.abc import Iterator

import msgspec

from core_broker.remoting.bodies import ConsumerOffsetSerializeWrapper, decode_body

SEPARATOR = "@"
#: Maximum pairs of topic and group, so that forged commits cannot exhaust the memory.
ENTRIES_MAX = 200_000
#: Maximum queues with an offset in one pair of topic and group.
QUEUES_MAX = 65_536
#: Size of a slice of the encoded table, offsets and pairs: less than a millisecond of work.
OFFSETS_PER_SLICE = 2_000

_encode = msgspec.json.Encoder().encode


class ConsumerOffsets:
    """The committed offsets of all groups."""

    def __init__(self) -> None:
        #: group -> topic -> queue id -> offset
        self._table: dict[str, dict[str, dict[int, int]]] = {}
        self._entries = 0
        #: Number of changes, by which an unchanged table is not written again.
        self.changes = 0

    def __len__(self) -> int:
        return self._entries

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> bool:
        """Set an offset, forwards or backwards; False when the table is full."""
        topics = self._table.get(group, {})
        queues = topics.get(topic)
        if queues is None:
            if self._entries >= ENTRIES_MAX:
                return False
            queues = self._table.setdefault(group, topics)[topic] = {}
            self._entries += 1
        if queue_id not in queues and len(queues) >= QUEUES_MAX:
            return False
        queues[queue_id] = offset
        self.changes += 1
        return True

    def committed(self, group: str, topic: str, queue_id: int) -> int | None:
        """The offset of a group in a queue; None before the first commit."""
        return self._table.get(group, {}).get(topic, {}).get(queue_id)

    def clone(self, source: str, target: str, topic: str) -> bool:
        """Copy a group's offsets in a topic to another group; False when the table is full.

        Has no effect when the source group has no offset in the topic.
        """
        queues = self._table.get(source, {}).get(topic)
        if not queues or source == target:
            return True
        if topic not in self._table.get(target, {}):
            if self._entries >= ENTRIES_MAX:
                return False
            self._entries += 1
        self._table.setdefault(target, {})[topic] = dict(queues)
        self.changes += 1
        return True

    def topics_of(self, group: str) -> list[str]:
        """The topics in which a group has an offset."""
        return list(self._table.get(group, ()))

    def groups_of(self, topic: str) -> list[str]:
        """The groups that have an offset in a topic."""
        return [group for group, topics in self._table.items() if topic in topics]

    def rows(self) -> Iterator[tuple[str, str, int, int]]:
        """Every group, topic, queue id and offset."""
        for group, topics in self._table.items():
            for topic, queues in topics.items():
                for queue_id, offset in queues.items():
                    yield group, topic, queue_id, offset

    def forget_group(self, group: str) -> None:
        """Drop the offsets of a deleted group."""
        self._entries -= len(self._table.pop(group, ()))
        self.changes += 1

    def forget(self, group: str, topic: str) -> None:
        """Drop the offsets of a group in a topic."""
        topics = self._table.get(group, {})
        if topics.pop(topic, None) is not None:
            self._entries -= 1
            self.changes += 1
            if not topics:
                del self._table[group]

    def forget_topic(self, topic: str) -> None:
        """Drop the offsets in a deleted topic, whose queues will begin at 0 again."""
        for group in self.groups_of(topic):
            self.forget(group, topic)

    def encode(self) -> bytes:
        """The table in the format of the file and of the answer to code 43."""
        return b"".join(self.slices())

    def slices(self) -> Iterator[bytes]:
        """The encoded table in slices of about OFFSETS_PER_SLICE offsets.

        The table may change between two slices: a slice has the offsets of its own time.
        """
        yield b'{"offsetTable":{'
        separator = b""
        pairs: dict[str, dict[int, int]] = {}
        size = 0
        for group in list(self._table):
            for topic in self.topics_of(group):
                queues = self._table.get(group, {}).get(topic)
                if queues is None:
                    continue
                pairs[topic + SEPARATOR + group] = queues
                size += 1 + len(queues)
                if size >= OFFSETS_PER_SLICE:
                    yield separator + _encode(pairs)[1:-1]
                    separator, pairs, size = b",", {}, 0
        if pairs:
            yield separator + _encode(pairs)[1:-1]
        yield b"}}"

    def restore(self, content: bytes) -> None:
        """Load the content of the file; raises ProtocolError for an invalid content."""
        wrapper = decode_body(ConsumerOffsetSerializeWrapper, content)
        for key, queues in wrapper.offset_table.items():
            topic, _, group = key.rpartition(SEPARATOR)
            self._table.setdefault(group, {})[topic] = queues
            self._entries += 1
