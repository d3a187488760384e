"""Totals of messages put and got, and what they were at the last two midnights.

The broker tells when a day begins. Compatible with RocketMQ's BrokerStats.
"""

from typing import NamedTuple


class Totals(NamedTuple):
    """Messages since the start of the broker."""

    put: int
    got: int


class DayTotals:
    """Remembers the totals of yesterday's and today's first moment."""

    def __init__(self) -> None:
        self.yesterday_morning = Totals(0, 0)
        self.today_morning = Totals(0, 0)

    def day_begins(self, now: Totals) -> None:
        """Note the totals at midnight."""
        self.yesterday_morning = self.today_morning
        self.today_morning = now
