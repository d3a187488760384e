"""The rules of a new console, created by a migration. Pure."""

from collections.abc import Mapping
from typing import Any, Final

#: By key; names are translated by `titles.DEFAULT_TITLES` until somebody changes them.
DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "critical": {
        "name": "Critical findings",
        "source": "finding",
        "finding_severity": "critical",
        "severity": "critical",
        "for_s": 30,
        "clear_for_s": 60,
    },
    "warnings": {
        "name": "Warnings of the findings",
        "source": "finding",
        "finding_severity": "warning",
        "severity": "warning",
        "for_s": 300,
        "clear_for_s": 120,
    },
    "lag": {
        "name": "High lag of a group",
        "source": "metric",
        "scope": "group",
        "metric": "lag",
        "threshold": 100_000.0,
        "clear_threshold": 50_000.0,
        "severity": "warning",
        "for_s": 300,
        "clear_for_s": 60,
    },
    "disk": {
        "name": "Disk of a broker is full",
        "source": "metric",
        "scope": "broker",
        "metric": "disk_ratio",
        "threshold": 0.85,
        "clear_threshold": 0.8,
        "severity": "critical",
        "for_s": 60,
        "clear_for_s": 60,
    },
    "silence": {
        "name": "Produce rate dropped",
        "source": "metric",
        "scope": "cluster",
        "metric": "produce_rate",
        "function": "drop",
        "window_s": 1_800,
        "threshold": 80.0,
        "clear_threshold": 50.0,
        "severity": "warning",
        "for_s": 180,
        "clear_for_s": 60,
        "enabled": False,
    },
}
