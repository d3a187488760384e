"""Lengths of time within a journey, where milliseconds matter."""

from __future__ import annotations

from django import template
from django.utils.translation import gettext as _

from console.formats import MINUTE_MS, SECOND_MS, duration

register = template.Library()


@register.filter
def precise(ms: int) -> str:
    """1052 → `1.052 s`; what is longer than a minute, or shorter than a second, as everywhere."""
    if SECOND_MS <= ms < MINUTE_MS:
        return _("%(seconds).3f s") % {"seconds": ms / SECOND_MS}
    return duration(ms)
