"""The tags code of a consume-queue unit.

The Java hash of TAGS, 0 without tags; in the schedule topic the delivery time, ms.
Compatible with RocketMQ's MessageExtBrokerInner.tagsString2tagsCode and
CommitLog.checkMessageAndReturnSize.
"""

from core_broker.message.hashing import tags_code
from core_broker.message.properties import PROPERTY_DELAY_TIME_LEVEL, PROPERTY_TAGS
from core_broker.message.topics import SCHEDULE_TOPIC

#: Maximum number of cached tags codes; beyond the maximum the cache is cleared.
TAGS_MAX = 4096
#: Maximum digits of a valid delay level; Java parses a 32-bit number.
LEVEL_DIGITS_MAX = 9


class TagsCodes:
    """Computes tags codes, with a cache."""

    def __init__(self, delay_levels_ms: tuple[int, ...]) -> None:
        self._delay_levels_ms = delay_levels_ms
        self._codes: dict[str, int] = {}

    def code(self, topic: str, properties: dict[str, str], stored_at: int) -> int:
        """Return the tags code of a message; `stored_at` is its store time, ms."""
        if topic == SCHEDULE_TOPIC:
            level = self._delay_level(properties)
            if level:
                return stored_at + self._delay_levels_ms[level - 1]
        tags = properties.get(PROPERTY_TAGS)
        if not tags:
            return 0
        code = self._codes.get(tags)
        if code is None:
            if len(self._codes) >= TAGS_MAX:
                self._codes.clear()
            code = self._codes[tags] = tags_code(tags)
        return code

    def _delay_level(self, properties: dict[str, str]) -> int:
        """The delay level of a message, 0 without one; at most the highest level."""
        text = properties.get(PROPERTY_DELAY_TIME_LEVEL, "0")
        if not text.isdecimal() or len(text) > LEVEL_DIGITS_MAX:
            return 0
        return min(int(text), len(self._delay_levels_ms))
