"""Filters of the analytics pages."""

from math import floor

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from console.frame.formats import UNKNOWN, duration, exact, number
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
def kind_title(name: str | None) -> str:
    """A kind of messages in the reader's language."""
    return UNKNOWN if name is None else str(KIND_TITLES.get(name, name))


@register.filter
def step_title(step: Step) -> str:
    return str(STEPS[step.name][0])


@register.filter
def step_meaning(step: Step) -> str:
    return str(STEPS[step.name][1])


@register.filter
def band_title(band: Band) -> str:
    """From where to where a band of the heat map goes."""
    if band.to_ms is None:
        return f"≥ {duration(band.from_ms)}"
    if not band.from_ms:
        return f"< {duration(band.to_ms)}"
    return f"{duration(band.from_ms)} … {duration(band.to_ms)}"


@register.filter
def times(value: float, factor: float) -> float:
    """For places in a drawing."""
    return round(value * factor, 2)


@register.filter
def share_of(count: int | None, most: int) -> float:
    """In percent of the longest bar, at least so much that it can be seen."""
    if not count or not most:
        return 0.0
    return round(max(0.5, 100 * count / most), 1)


@register.filter
def cells(heat: HeatMap) -> SafeString:
    """The cells of the heat map as SVG: a thousand of them are too many for tags of a template.

    All that goes in is made here, of numbers.
    """
    width = round(HEAT_WIDTH / len(heat.points), 3)
    places = [(round(column * width, 2), exact(at)) for column, at in enumerate(heat.points)]
    drawn = []
    for row, band in enumerate(heat.bands):
        title = escape(band_title(band))
        drawn += [
            f'<rect class="heat-{cell.shade}" x="{x}" y="{row * HEAT_ROW}" width="{width}"'
            f' height="{HEAT_ROW - 1}"><title>{at} · {title} · {number(cell.count)}</title></rect>'
            for cell, (x, at) in zip(band.cells, places, strict=True)
            if cell.count
        ]
    return mark_safe("".join(drawn))  # noqa: S308 - of numbers, and escaped


@register.filter
def fullest(heat: HeatMap, band: Band) -> int:
    """When a band held most."""
    return max(zip(band.cells, heat.points, strict=True), key=lambda pair: pair[0].count)[1]
