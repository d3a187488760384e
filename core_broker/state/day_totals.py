"""Totals of messages put and got at the last two midnights.

The broker calls `day_begins` at midnight. Compatible with RocketMQ's BrokerStats.
"""

from typing import NamedTuple


class Totals(NamedTuple):
    """Number of messages since the start of the broker."""

    put: int
    got: int


class DayTotals:
    """The totals at the start of yesterday and of today."""

    def __init__(self) -> None:
        self.yesterday_morning = Totals(0, 0)
        self.today_morning = Totals(0, 0)

    def day_begins(self, now: Totals) -> None:
        """Record the totals at midnight."""
        self.yesterday_morning = self.today_morning
        self.today_morning = now
