"""The charts of a page: which metrics each scope shows, over the range of the page's address."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.gateway import now_ms
from console.services.analytics.ranges import SPANS
from console.services.history.metrics import (
    BY_NAME,
    INTERVAL_MS,
    Aggregate,
    Scope,
    broker_name,
)
from console.services.history.places import place_of
from console.services.history.ranges import read_history_range
from console.services.history.reading import Coverage, read_coverage
from console.services.history.store import STORE_ERRORS

#: Parameters of a page's address. Other forms of the pages have `begin` and `end` of their own.
RANGE, BEGIN, END = "range", "history_begin", "history_end"
#: Age of the newest sample from which a page says that sampling has stopped, ms.
SILENT_AFTER_MS: Final = 6 * INTERVAL_MS

COLORS: Final = ("--gantry-in", "--gantry-out")
MEAN = _("Mean of each step.")
PEAK = _("Greatest value of each step.")
LAST = _("Last value of each step.")


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of some metrics, of which the aggregate `shown` is drawn."""

    title: Any
    note: Any
    metrics: tuple[str, ...]
    shown: Aggregate
    unit: Any = ""
    #: Factor of the drawn values, and the top of the scale; 0: by the values.
    scale: float = 1
    top: int = 0


PER_SECOND = _("/s")
RATES = Chart(_("Messages per second"), MEAN, ("produce_rate", "consume_rate"), "avg", PER_SECOND)
LAG = Chart(_("Lag, messages"), PEAK, ("lag",), "max")
DEAD_LETTERS = Chart(_("Dead letters"), LAST, ("dead_letters",), "last")
REPLICA_LAG = Chart(_("Replication lag, KiB"), PEAK, ("replica_lag",), "max", "KiB", scale=1 / 1024)
DISK = Chart(_("Disk use"), LAST, ("disk_ratio",), "last", "%", 100, 100)
CHARTS: Final[dict[Scope, tuple[Chart, ...]]] = {
    "cluster": (RATES, LAG, DEAD_LETTERS, DISK),
    "topic": (RATES, LAG),
    "group": (
        LAG,
        Chart(_("Lag, seconds"), PEAK, ("lag_s",), "max", pgettext_lazy("seconds", "s")),
        Chart(_("Consume rate"), MEAN, ("consume_rate",), "avg", PER_SECOND),
        Chart(_("Clients"), LAST, ("clients",), "last"),
        DEAD_LETTERS,
    ),
    "broker": (
        RATES,
        DISK,
        Chart(_("Clients"), MEAN, ("connections",), "avg"),
        Chart(_("Produce latency p99"), PEAK, ("send_p99_ms",), "max", _("ms")),
        REPLICA_LAG,
    ),
}
SINGLE: Final[Mapping[str, Chart]] = {"dead_letters": DEAD_LETTERS}


@dataclass(frozen=True, slots=True)
class Section:
    """What the template shows. `problem` is a text for the user; `coverage` None: no samples."""

    scope: Scope
    charts: list[dict[str, Any]]
    spans: list[tuple[str, Any, str]]
    span: str
    begin_ms: int
    end_ms: int
    begin_local: str
    end_local: str
    kept: list[tuple[str, str]]
    coverage: Coverage | None
    is_silent: bool
    problem: str


def section_of(
    cluster: str, scope: Scope, name: str, params: Mapping[str, str], *, number: int = 0, chart: str
) -> Section:
    """Return the charts of a name; `number` is the id of a broker process.

    An invalid range is replaced by the default range, and `problem` says why.
    """
    at_ms, zone, problem = now_ms(), timezone.get_current_timezone(), ""
    given = {"range": params.get(RANGE, ""), "begin": params.get(BEGIN, "")}
    given["end"] = params.get(END, "")
    try:
        over = read_history_range(given, at_ms, zone)
    except ValueError as error:
        problem = str(error)
        over = read_history_range({}, at_ms, zone)
    coverage = None
    try:
        key = broker_name(name, number) if scope == "broker" else name
        coverage = read_coverage(place_of(settings.GANTRY_HOME, cluster), scope, key)
    except STORE_ERRORS as error:
        problem = str(error)
    selector: dict[str, Any] = {} if scope == "cluster" else {scope: name}
    if scope == "broker" and number:
        selector["broker_id"] = number
    limits: dict[str, Any] = (
        {"range": over.span} if over.span else {"begin_ms": over.begin_ms, "end_ms": over.end_ms}
    )
    api = reverse("api-history", kwargs={"cluster": cluster})
    kept = [(key, value) for key, value in params.items() if key not in (RANGE, BEGIN, END)]
    charts = (SINGLE[chart],) if chart else CHARTS[scope]
    if not number:  # a master has no lag
        charts = tuple(each for each in charts if each is not REPLICA_LAG)
    return Section(
        scope=scope,
        charts=[_drawn(chart, scope, api, {**selector, **limits}) for chart in charts],
        spans=[(key, SPANS[key][1], urlencode([*kept, (RANGE, key)])) for key in SPANS],
        span=over.span or "",
        begin_ms=over.begin_ms,
        end_ms=over.end_ms,
        begin_local=_local(over.begin_ms),
        end_local=_local(over.end_ms),
        kept=kept,
        coverage=coverage,
        is_silent=coverage is not None and at_ms - coverage.newest_ms > SILENT_AFTER_MS,
        problem=problem,
    )


def _drawn(chart: Chart, scope: Scope, api: str, query: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chart for the template, with the series for the script."""
    metrics = [BY_NAME[scope, name] for name in chart.metrics]
    return {
        "id": f"history-{chart.metrics[0]}",
        "title": chart.title,
        "note": chart.note,
        "unit": chart.unit,
        "top": chart.top,
        "series": [
            {
                "url": f"{api}?{urlencode({'metric': metric.name, **query})}",
                "label": str(metric.label),
                "color": color,
                "column": chart.shown,
                "scale": chart.scale,
            }
            for metric, color in zip(metrics, COLORS, strict=False)
        ],
    }


def _local(ms: int) -> str:
    """The value of a `datetime-local` field, in the time zone of the user."""
    moment = datetime.fromtimestamp(ms / 1000, UTC).astimezone(timezone.get_current_timezone())
    return f"{moment:%Y-%m-%dT%H:%M}"
