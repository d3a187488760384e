"""Time ranges of the analytics pages, and the points of charts. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final

from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from trace.lake import HOUR_MS, HourIndex, hour_of

MINUTE_MS: Final = 60_000
DAY_MS: Final = 24 * HOUR_MS
#: Maximum number of points of a chart, before the range is widened to whole steps.
POINTS_MAX: Final = 120
#: Maximum length of a range, ms.
RANGE_MS_MAX: Final = 366 * DAY_MS
#: Maximum length of a date and time in a query string, characters.
TEXT_CHARS_MAX: Final = 40

STEPS_MS: Final = tuple(
    minutes * MINUTE_MS for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1440, 4320, 10080)
)
SPANS: Final[Mapping[str, tuple[int, object]]] = {
    "15m": (15 * MINUTE_MS, _("15 minutes")),
    "1h": (HOUR_MS, _("1 hour")),
    "6h": (6 * HOUR_MS, _("6 hours")),
    "24h": (DAY_MS, _("24 hours")),
    "7d": (7 * DAY_MS, _("7 days")),
    "30d": (30 * DAY_MS, _("30 days")),
}
SPAN_DEFAULT: Final = "1h"


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From `begin_ms` (inclusive) to `end_ms` (exclusive), both multiples of `step_ms`."""

    begin_ms: int
    end_ms: int
    step_ms: int
    #: The name of the range in SPANS; "" for a range with explicit begin and end.
    span: str = ""

    @property
    def points(self) -> range:
        return range(self.begin_ms, self.end_ms, self.step_ms)

    @property
    def hours(self) -> list[HourIndex]:
        """The hours of the lake that overlap the range."""
        return list(range(hour_of(self.begin_ms), hour_of(self.end_ms - 1) + 1))


def read_range(params: Mapping[str, str], now_ms: int, zone: tzinfo) -> TimeRange:
    """The range of the parameters, widened to whole steps. Raises ValueError as `read_limits`."""
    return on_grid(*read_limits(params, now_ms, zone))


def read_limits(params: Mapping[str, str], now_ms: int, zone: tzinfo) -> tuple[int, int, str]:
    """Begin, end and name in SPANS of `range=6h`; of `begin_ms` and `end_ms`; or of the form fields
    `begin` and `end`, local times in `zone`, whose name is "". Raises ValueError with a text for
    the user.

    A named range ends with the current minute.
    """
    begin, end = _end(params, "begin", zone), _end(params, "end", zone)
    if begin is not None or end is not None:
        end_ms = now_ms if end is None else end
        if begin is None or not begin < end_ms <= begin + RANGE_MS_MAX:
            raise ValueError(_now("The begin must be before the end, and at most a year before."))
        return begin, end_ms, ""
    span = params.get("range") or SPAN_DEFAULT
    if span not in SPANS:
        raise ValueError(_now("The range must be one of %(names)s.") % {"names": ", ".join(SPANS)})
    length_ms = SPANS[span][0]
    end_ms = (now_ms // MINUTE_MS + 1) * MINUTE_MS
    return end_ms - length_ms, end_ms, span


def on_grid(begin_ms: int, end_ms: int, span: str = "") -> TimeRange:
    """The range widened to the smallest step with at most POINTS_MAX points."""
    step_ms = next(
        (step for step in STEPS_MS if (end_ms - begin_ms) / step <= POINTS_MAX), STEPS_MS[-1]
    )
    begin = begin_ms // step_ms * step_ms
    end = -(-end_ms // step_ms) * step_ms
    return TimeRange(begin, end, step_ms, span)


def _end(params: Mapping[str, str], name: str, zone: tzinfo) -> int | None:
    """Begin or end of the range, ms; None without the parameter."""
    text = params.get(f"{name}_ms", "")
    if text:
        if not (text.isascii() and text.isdigit() and len(text) <= 14):
            error = _now("%(name)s must be a time in milliseconds since 1970.")
            raise ValueError(error % {"name": f"{name}_ms"})
        return int(text)
    local = params.get(name, "")
    if not local:
        return None
    try:
        moment = datetime.fromisoformat(local[:TEXT_CHARS_MAX])
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        time_ms = int(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        time_ms = -1
    if time_ms < 0:
        error = _now("%(name)s must be a date and time, such as 2026-11-05T13:00.")
        raise ValueError(error % {"name": name})
    return time_ms
