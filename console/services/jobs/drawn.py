"""The jobs of the picture on the list of jobs: those of a time range, whatever the page shows."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from console.services.jobs.models import Job
from console.services.jobs.timeline import Timeline, timeline_of

_HOUR_MS: Final = 3_600_000
#: Time ranges that end now: length in ms, and label. 0: all kept jobs.
RANGES: Final[dict[str, tuple[int, Any]]] = {
    "1h": (_HOUR_MS, _("1 hour")),
    "6h": (6 * _HOUR_MS, _("6 hours")),
    "24h": (24 * _HOUR_MS, _("24 hours")),
    "7d": (7 * 24 * _HOUR_MS, _("7 days")),
    "all": (0, _("all kept jobs")),
}
RANGE_DEFAULT: Final = "24h"
#: Maximum number of jobs in the picture; the newest are drawn.
JOBS_DRAWN_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Drawn:
    """The picture of a range's jobs, None without a job; `left_out` counts older ones beyond
    JOBS_DRAWN_MAX."""

    range: str
    timeline: Timeline | None
    left_out: int


def drawn(jobs: QuerySet[Job], chosen: str, now_ms: int, midnight_ms: int) -> Drawn:
    """Draw the jobs that were active within a range; an unknown name means RANGE_DEFAULT."""
    name = chosen if chosen in RANGES else RANGE_DEFAULT
    length_ms, _label = RANGES[name]
    if length_ms:
        begin = datetime.fromtimestamp((now_ms - length_ms) / 1_000, UTC)
        ended = Q(finished_at__gte=begin) | Q(finished_at__isnull=True)
        jobs = jobs.filter(ended | Q(created_at__gte=begin))
    newest = list(jobs.defer("log_tail", "error", "outputs")[:JOBS_DRAWN_MAX])
    count = len(newest) if len(newest) < JOBS_DRAWN_MAX else jobs.count()
    return Drawn(name, timeline_of(newest, now_ms, midnight_ms), count - len(newest))
