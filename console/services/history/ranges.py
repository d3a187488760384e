"""Time ranges of the history: limits from parameters, and the step of the points. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from django.utils.translation import gettext as _

from console.services.analytics.ranges import read_limits
from console.services.history.metrics import DAY_MS, HOUR_MS, INTERVAL_MS, MINUTE_MS
from console.services.history.reading import POINTS_MAX

#: Maximum number of points of a range without an explicit step.
POINTS_DEFAULT_MAX: Final = 361
#: Age up to which samples are kept, ms; older points are minutes.
SAMPLES_KEPT_MS: Final = DAY_MS
STEPS_MS: Final = (
    *(INTERVAL_MS, 3 * INTERVAL_MS),
    *(minutes * MINUTE_MS for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * HOUR_MS for hours in (1, 2, 6, 12)),
    *(days * DAY_MS for days in (1, 2, 7)),
)
#: Steps below a minute: a minute has a whole number of them.
FINE_STEPS_MS: Final = (INTERVAL_MS, 2 * INTERVAL_MS, 3 * INTERVAL_MS)


@dataclass(frozen=True, slots=True)
class HistoryRange:
    """`count` steps from `begin_ms`, a multiple of `step_ms`; `span` is "" for own limits."""

    begin_ms: int
    step_ms: int
    count: int
    span: str

    @property
    def end_ms(self) -> int:
        return self.begin_ms + self.step_ms * self.count


def read_history_range(
    params: Mapping[str, str], now_ms: int, zone: tzinfo, *, interval_ms: int = INTERVAL_MS
) -> HistoryRange:
    """The range of `range`, `begin_ms`, `end_ms` and `step_ms`, widened to whole steps.

    Without a step, the smallest standard step not below `interval_ms` with POINTS_DEFAULT_MAX
    points. Raises ValueError with a text for the user.
    """
    begin_ms, end_ms, span = read_limits(params, now_ms, zone)
    text = params.get("step_ms", "")
    is_old = begin_ms < now_ms - SAMPLES_KEPT_MS - MINUTE_MS
    if not text:
        return _widened(begin_ms, end_ms, _step_ms(begin_ms, end_ms, interval_ms, is_old), span)
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise ValueError(_("step_ms must be a number of milliseconds."))
    step_ms = int(text)
    if step_ms not in FINE_STEPS_MS and (step_ms == 0 or step_ms % MINUTE_MS):
        raise ValueError(
            _("step_ms must be %(steps)s or a multiple of 60000.")
            % {"steps": ", ".join(map(str, FINE_STEPS_MS))}
        )
    if step_ms < MINUTE_MS and is_old:
        raise ValueError(_("Before the last 24 hours, step_ms must be a multiple of 60000."))
    found = _widened(begin_ms, end_ms, step_ms, span)
    if found.count > POINTS_MAX:
        raise ValueError(
            _("The range has %(count)s points, more than %(most)s: choose a larger step_ms.")
            % {"count": found.count, "most": POINTS_MAX}
        )
    return found


def _step_ms(begin_ms: int, end_ms: int, interval_ms: int, is_old: bool) -> int:
    least_ms = max(interval_ms, MINUTE_MS if is_old else INTERVAL_MS)
    return next(
        (
            step
            for step in STEPS_MS
            if step >= least_ms and (end_ms - begin_ms) / step <= POINTS_DEFAULT_MAX
        ),
        STEPS_MS[-1],
    )


def _widened(begin_ms: int, end_ms: int, step_ms: int, span: str) -> HistoryRange:
    begin = begin_ms // step_ms * step_ms
    return HistoryRange(begin, step_ms, -(-(end_ms - begin) // step_ms), span)
