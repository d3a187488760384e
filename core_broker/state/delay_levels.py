"""The table of delay levels; levels count from 1.

A delayed message waits in SCHEDULE_TOPIC_XXXX, in the queue `level - 1`. Compatible with
RocketMQ's ScheduleMessageService.
"""

from core_broker.errors import SettingProblem, SettingsError
from core_broker.message.delays import LEVELS_MAX, parse_delay_levels

#: Delay level of a message's first retry: 10 s with the default table.
FIRST_RETRY_LEVEL = 3


class DelayLevels:
    """Delays in milliseconds by level, from the text of messageDelayLevel."""

    def __init__(self, text: str) -> None:
        try:
            self._delays_ms = parse_delay_levels(text)
        except ValueError:
            self._delays_ms = ()
        if not 0 < len(self._delays_ms) <= LEVELS_MAX:
            expected = "delays such as 10s, 5m, 2h or 1d, separated by blanks"
            raise SettingsError([SettingProblem("messageDelayLevel", expected, text)])

    @property
    def level_max(self) -> int:
        """The highest level; requests for higher levels get this level."""
        return len(self._delays_ms)

    def capped(self, level: int) -> int:
        """The level for a message that requests `level`."""
        return min(level, len(self._delays_ms))

    def delay_ms(self, level: int) -> int:
        """The delay of a level, ms."""
        return self._delays_ms[level - 1]
