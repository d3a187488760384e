"""Filters of the analytics pages."""

from math import floor

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from console.frame.formats import UNKNOWN, duration, exact, latency, number
from console.services.analytics.aggregates import Step
from console.services.analytics.heatmap import Band, HeatMap
from console.services.analytics.labels import KIND_TITLES, STEPS

register = template.Library()

HEAT_WIDTH = 1000
HEAT_ROW = 20


@register.filter
def success(ratio: float | None) -> str:
    """A success rate, rounded down: 100 % only when nothing failed."""
    if ratio is None:
        return UNKNOWN
    if ratio >= 1:
        return "100 %"
    return f"{floor(ratio * 10_000) / 100:.2f} %"


@register.filter
def percentile(ms: float | None) -> str:
    """A percentile of a latency; 0 reads `< 1 ms`: trace times are whole ms."""
    return f"< {duration(1)}" if ms is not None and ms < 1 else latency(ms)


@register.filter
def kind_title(name: str | None) -> str:
    """The title of a message type in the language of the page."""
    return UNKNOWN if name is None else str(KIND_TITLES.get(name, name))


@register.filter
def step_title(step: Step) -> str:
    return str(STEPS[step.name][0])


@register.filter
def step_meaning(step: Step) -> str:
    return str(STEPS[step.name][1])


@register.filter
def band_title(band: Band) -> str:
    """The latency range of a band of the heat map."""
    if band.to_ms is None:
        return f"≥ {duration(band.from_ms)}"
    if not band.from_ms:
        return f"< {duration(band.to_ms)}"
    return f"{duration(band.from_ms)} … {duration(band.to_ms)}"


@register.filter
def times(value: float, factor: float) -> float:
    """Multiply a coordinate or length of an SVG by `factor`."""
    return round(value * factor, 2)


@register.filter
def share_of(count: int | None, most: int) -> float:
    """The length of a bar in percent of the longest bar; a visible bar has at least 0.5 %."""
    if not count or not most:
        return 0.0
    return round(max(0.5, 100 * count / most), 1)


@register.filter
def cells(heat: HeatMap) -> SafeString:
    """The cells of the heat map as SVG: about a thousand cells, too slow as template tags.

    The SVG consists of numbers and escaped titles only.
    """
    width = round(HEAT_WIDTH / len(heat.points), 3)
    columns = [(round(column * width, 2), exact(at)) for column, at in enumerate(heat.points)]
    drawn = []
    for row, band in enumerate(heat.bands):
        title = escape(band_title(band))
        drawn += [
            f'<rect class="heat-{cell.shade}" x="{x}" y="{row * HEAT_ROW}" width="{width}"'
            f' height="{HEAT_ROW - 1}"><title>{at} · {title} · {number(cell.count)}</title></rect>'
            for cell, (x, at) in zip(band.cells, columns, strict=True)
            if cell.count
        ]
    return mark_safe("".join(drawn))  # noqa: S308 - numbers and escaped titles


@register.filter
def fullest(heat: HeatMap, band: Band) -> int:
    """The point in time with the highest count of a band, ms."""
    return max(zip(band.cells, heat.points, strict=True), key=lambda pair: pair[0].count)[1]
