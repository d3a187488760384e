"""How far the delivery of delayed messages has come, by level: delayOffset.json.

    {"offsetTable":{1:2,3:5}}      level: next offset in its queue of SCHEDULE_TOPIC_XXXX

What was delivered after the file was last written is delivered again after a crash. Compatible with
RocketMQ's ScheduleMessageService and DelayOffsetSerializeWrapper.
"""

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
        #: Counts changes, so that an unchanged table is not written again.
        self.changes = 0

    def offset(self, level: int) -> int:
        """The next offset to deliver; 0 for a level that never delivered."""
        return self._offsets.get(level, 0)

    def advance(self, level: int, offset: int) -> None:
        """Note that everything before `offset` is delivered."""
        if offset != self._offsets.get(level):
            self._offsets[level] = offset
            self.changes += 1

    @property
    def levels(self) -> list[int]:
        """The levels that ever delivered."""
        return sorted(self._offsets)

    def encode(self) -> bytes:
        """The table as it is kept in the file and answered to code 45."""
        table = DelayOffsetSerializeWrapper(offset_table=dict(sorted(self._offsets.items())))
        return encode_body(table, Dialect.FASTJSON)

    def restore(self, content: bytes) -> None:
        """Take over what a file holds; raises ProtocolError when it is no such file."""
        self._offsets = dict(decode_body(DelayOffsetSerializeWrapper, content).offset_table)


def is_due(delivery_ms: int, now_ms: int, delay_ms: int) -> bool:
    """True when a message is to be delivered now.

    A delivery time further away than the whole delay comes from a clock that was set back since,
    and counts as due, as it does in RocketMQ.
    """
    return delivery_ms <= now_ms or delivery_ms > now_ms + delay_ms
