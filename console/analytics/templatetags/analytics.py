"""Filters of the analytics pages."""

from __future__ import annotations

from math import floor

from django import template

from console.formats import UNKNOWN

register = template.Library()


@register.filter
def success(ratio: float | None) -> str:
    """A success rate, rounded down: 100 % only when nothing failed."""
    if ratio is None:
        return UNKNOWN
    if ratio >= 1:
        return "100 %"
    return f"{floor(ratio * 10_000) / 100:.2f} %"
