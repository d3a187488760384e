"""Thresholds of the rules, for all clusters of the console; `docs/settings.md` lists them."""

from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From the variables CONSOLE_FINDINGS_*; `console/environment.py` validates them."""

    #: Age of the oldest unconsumed message of a group with clients, seconds.
    lag_s: int = 300
    #: Usage of a broker's disk, percent: warning, critical.
    disk_percent: int = 75
    disk_critical_percent: int = 90
    #: Time until a disk is full at the current growth, hours.
    disk_hours: int = 24
    #: Bytes of the master's log that a slave does not have, MiB.
    replica_mb: int = 64
    #: Difference between the clocks of a broker and of the console, seconds.
    clock_s: int = 5
    #: Time without progress of a queue with lag and a connected consumer, seconds.
    stuck_s: int = 120
    #: Rest of the validity of a certificate, days.
    certificate_days: int = 30


def thresholds() -> Thresholds:
    """Return the thresholds of the settings."""
    return Thresholds(**settings.FINDING_THRESHOLDS)
