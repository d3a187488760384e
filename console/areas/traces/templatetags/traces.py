"""Lengths of time within a journey, where milliseconds matter."""

from django import template
from django.utils.translation import gettext as _

from console.frame.formats import MINUTE_MS, SECOND_MS, duration

register = template.Library()


@register.filter
def precise(ms: int) -> str:
    """1052 → `1.052 s`; what is longer than a minute, or shorter than a second, as everywhere."""
    if SECOND_MS <= ms < MINUTE_MS:
        return _("%(seconds).3f s") % {"seconds": ms / SECOND_MS}
    return duration(ms)


@register.filter
def tick(ms: int) -> str:
    """1500 → `1.5 s`: for marks of an axis, which stand at round places."""
    if SECOND_MS <= ms < MINUTE_MS:
        return _("%(seconds)s s") % {"seconds": f"{ms / SECOND_MS:g}"}
    return duration(ms)
