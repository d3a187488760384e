"""Delay levels: `messageDelayLevel` names one delay per level, level 1 first.

A delayed message is first stored in the topic SCHEDULE_TOPIC_XXXX, queue level - 1. Compatible with
RocketMQ's ScheduleMessageService.
"""

#: Maximum number of levels.
LEVELS_MAX = 1_000
UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_delay_levels(text: str) -> tuple[int, ...]:
    """Return the delay of each level, ms; raises ValueError for malformed text."""
    return tuple(_delay_ms(each) for each in text.split())


def _delay_ms(word: str) -> int:
    amount, unit = word[:-1], word[-1]
    if unit not in UNIT_MS or not amount.isdecimal():
        raise ValueError(f"{word!r} is not a number followed by s, m, h or d")
    return int(amount) * UNIT_MS[unit]
