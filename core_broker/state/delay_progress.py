"""The progress of the delivery of delayed messages, by level: delayOffset.json.

    {"offsetTable":{1:2,3:5}}      level: next offset in its queue of SCHEDULE_TOPIC_XXXX

After a crash, messages delivered since the last write of the file are delivered again. Compatible
with RocketMQ's ScheduleMessageService and DelayOffsetSerializeWrapper.
"""

from collections.abc import Mapping

from core_broker.remoting.bodies import (
    DelayOffsetSerializeWrapper,
    Dialect,
    decode_body,
    encode_body,
)


class DelayProgress:
    """The next offset to deliver in the queue of each level."""

    def __init__(self) -> None:
        self._offsets: dict[int, int] = {}
        #: Number of changes, by which an unchanged table is not written again.
        self.changes = 0

    def offset(self, level: int) -> int:
        """The next offset to deliver; 0 before the level's first delivery."""
        return self._offsets.get(level, 0)

    def advance(self, level: int, offset: int) -> None:
        """Record that all messages before `offset` are delivered."""
        if offset != self._offsets.get(level):
            self._offsets[level] = offset
            self.changes += 1

    def advance_all(self, offsets: Mapping[int, int]) -> None:
        """Adopt another broker's progress in the levels where that is ahead."""
        for level, offset in offsets.items():
            self.advance(level, max(offset, self.offset(level)))

    def replace_all(self, offsets: Mapping[int, int]) -> None:
        """Become a copy of another broker's progress."""
        if self._offsets != offsets:
            self._offsets = dict(offsets)
            self.changes += 1

    @property
    def levels(self) -> list[int]:
        """Levels with at least one delivery."""
        return sorted(self._offsets)

    def encode(self) -> bytes:
        """The table in the format of the file and of the answer to code 45."""
        table = DelayOffsetSerializeWrapper(offset_table=dict(sorted(self._offsets.items())))
        return encode_body(table, Dialect.FASTJSON)

    def restore(self, content: bytes) -> None:
        """Load the content of the file; raises ProtocolError for an invalid content."""
        self._offsets = dict(decode_body(DelayOffsetSerializeWrapper, content).offset_table)


def is_due(delivery_ms: int, now_ms: int, delay_ms: int) -> bool:
    """True when a message is to be delivered now.

    A delivery time more than the whole delay ahead means that the clock was set back. As in
    RocketMQ, such a message is due.
    """
    return delivery_ms <= now_ms or delivery_ms > now_ms + delay_ms
