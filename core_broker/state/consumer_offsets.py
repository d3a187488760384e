"""How far each group has consumed each queue: consumerOffset.json.

    {"offsetTable":{"topic@group":{"0":12,"1":7}}}      queue id: next offset to consume

Compatible with RocketMQ's ConsumerOffsetManager, which reads the queue ids with and without quotes.
"""

from collections.abc import Iterator

import msgspec

from core_broker.remoting.bodies import ConsumerOffsetSerializeWrapper, decode_body

SEPARATOR = "@"
#: Pairs of topic and group; more are refused, so that forged commits cannot fill the memory.
ENTRIES_MAX = 200_000
#: Queues of one topic that a group may have an offset in.
QUEUES_MAX = 65_536

_encode = msgspec.json.Encoder(order="sorted").encode


class ConsumerOffsets:
    """The committed offsets of all groups."""

    def __init__(self) -> None:
        self._table: dict[str, dict[int, int]] = {}
        #: Counts changes, so that an unchanged table is not written again.
        self.changes = 0

    def __len__(self) -> int:
        return len(self._table)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> bool:
        """Set an offset, forwards or backwards; False when there is no room for another entry."""
        key = topic + SEPARATOR + group
        queues = self._table.get(key)
        if queues is None:
            if len(self._table) >= ENTRIES_MAX:
                return False
            queues = self._table[key] = {}
        if queue_id not in queues and len(queues) >= QUEUES_MAX:
            return False
        queues[queue_id] = offset
        self.changes += 1
        return True

    def committed(self, group: str, topic: str, queue_id: int) -> int | None:
        """The offset of a group in a queue, or None when it never committed one."""
        queues = self._table.get(topic + SEPARATOR + group)
        return queues.get(queue_id) if queues is not None else None

    def topics_of(self, group: str) -> list[str]:
        """The topics in which a group has an offset."""
        return [topic for topic, other in self._pairs() if other == group]

    def groups_of(self, topic: str) -> list[str]:
        """The groups that have an offset in a topic."""
        return [group for other, group in self._pairs() if other == topic]

    def forget_group(self, group: str) -> None:
        """Drop the offsets of a deleted group."""
        self._drop([topic + SEPARATOR + group for topic in self.topics_of(group)])

    def forget_topic(self, topic: str) -> None:
        """Drop the offsets in a deleted topic, whose queues will begin at 0 again."""
        self._drop([topic + SEPARATOR + group for group in self.groups_of(topic)])

    def encode(self) -> bytes:
        """The table as it is kept in the file and answered to code 43."""
        return _encode({"offsetTable": self._table})

    def restore(self, content: bytes) -> None:
        """Take over what a file holds; raises ProtocolError when it is no such file."""
        self._table = dict(decode_body(ConsumerOffsetSerializeWrapper, content).offset_table)

    def _pairs(self) -> Iterator[tuple[str, str]]:
        for key in self._table:
            topic, _, group = key.rpartition(SEPARATOR)
            yield topic, group

    def _drop(self, keys: list[str]) -> None:
        for key in keys:
            del self._table[key]
        self.changes += len(keys)
