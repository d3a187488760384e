"""Durations within a journey, with milliseconds."""

from django import template
from django.utils.translation import gettext as _

from console.frame.formats import MINUTE_MS, SECOND_MS, duration

register = template.Library()


@register.filter
def precise(ms: int) -> str:
    """1052 → `1.052 s`; durations below a second or above a minute use the common format."""
    if SECOND_MS <= ms < MINUTE_MS:
        return _("%(seconds).3f s") % {"seconds": ms / SECOND_MS}
    return duration(ms)


@register.filter
def tick(ms: int) -> str:
    """1500 → `1.5 s`, for axis ticks."""
    if SECOND_MS <= ms < MINUTE_MS:
        return _("%(seconds)s s") % {"seconds": f"{ms / SECOND_MS:g}"}
    return duration(ms)
