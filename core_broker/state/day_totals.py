"""Totals of messages put and got at the last two midnights.

The broker calls `day_begins` at midnight. Compatible with RocketMQ's BrokerStats.
"""

from typing import NamedTuple


class Totals(NamedTuple):
    """Number of messages since the start of the broker."""

    put: int
    got: int


class DayTotals:
    """The totals at the start of yesterday and of today.

    `midnight_ms` is the time of the last midnight; None if the broker has started since.
    """

    def __init__(self) -> None:
        self.midnight_ms: int | None = None
        self.yesterday_morning = Totals(0, 0)
        self.today_morning = Totals(0, 0)

    def day_begins(self, now: Totals, now_ms: int) -> None:
        """Record the totals at midnight."""
        self.midnight_ms = now_ms
        self.yesterday_morning = self.today_morning
        self.today_morning = now
