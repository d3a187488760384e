"""Role changes and pictures for pages and REST resources, from Django's database."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from console.gateway.replicas.model import ReplicaSet
from console.services.replicas.models import RoleChange, WatchSpan
from console.services.replicas.timeline import Timeline, draw
from console.services.replicas.watching import CHANGES_MAX, GAP_MS, SPANS_MAX

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
#: Lengths of the picture: milliseconds and label.
RANGES: Final[dict[str, tuple[int, Any]]] = {
    "10m": (10 * MINUTE_MS, _("10 minutes")),
    "1h": (HOUR_MS, _("1 hour")),
    "1d": (DAY_MS, _("1 day")),
    "30d": (30 * DAY_MS, _("30 days")),
}
RANGE_DEFAULT: Final = "1h"


@dataclass(frozen=True, slots=True)
class Record:
    """The role changes of a set, oldest first, and the watched times of the cluster."""

    changes: tuple[RoleChange, ...]
    spans: tuple[tuple[int, int], ...]

    @property
    def watched_since_ms(self) -> int | None:
        return self.spans[0][0] if self.spans and self.changes else None

    @property
    def watched_until_ms(self) -> int | None:
        return self.spans[-1][1] if self.spans and self.changes else None

    @property
    def last_failover(self) -> RoleChange | None:
        return next((one for one in reversed(self.changes) if one.is_failover), None)

    def picture(self, found: ReplicaSet, range_: str, now_ms: int) -> Timeline:
        length_ms, _label = RANGES[range_]
        addrs = sorted(one.addr for one in found.replicas)
        return draw(self.changes, self.spans, now_ms - length_ms, now_ms, addrs)


def read_range(text: str | None) -> str:
    """Return a key of RANGES; the default for other texts."""
    return text if text in RANGES else RANGE_DEFAULT


def read_records(cluster: str, names: Sequence[str], now_ms: int) -> dict[str, Record]:
    """Return the record of each set. A watch that goes on counts until now."""
    spans = [
        (one.begin_ms, one.end_ms)
        for one in WatchSpan.objects.filter(cluster=cluster).order_by("begin_ms")[:SPANS_MAX]
    ]
    if spans and 0 <= now_ms - spans[-1][1] <= GAP_MS:
        spans[-1] = spans[-1][0], now_ms
    changes: dict[str, list[RoleChange]] = {name: [] for name in names}
    rows = RoleChange.objects.filter(cluster=cluster, name__in=list(names)).order_by("pk")
    for row in rows[:CHANGES_MAX]:
        changes[row.name].append(row)
    return {name: Record(tuple(found), tuple(spans)) for name, found in changes.items()}
