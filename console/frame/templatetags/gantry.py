"""Tags and filters available in every template without `{% load %}`."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django import template
from django.contrib.staticfiles import finders
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from console.frame import formats
from console.gateway import Answer, BrokerFailure, now_ms
from console.gateway.topics.permission import perm_words

register = template.Library()


def _filter(name: str, show: Callable[[Any], str]) -> None:
    """Register a filter that treats "" (a missing template variable) like None."""
    register.filter(name, lambda value: show(None if value == "" else value))


_filter("number", formats.number)
_filter("compact", formats.compact)
_filter("rate", formats.rate)
_filter("size", formats.size)
_filter("percent", formats.percent)
_filter("duration", formats.duration)
_filter("latency", formats.latency)
_filter("exact", formats.exact)


@cache
def _icon_body(name: str) -> str:
    """Return the content of the <svg> of a vendored icon.

    Raises TemplateSyntaxError for an unknown icon.
    """
    found = finders.find(f"vendor/icons/{name}.svg")
    if not isinstance(found, str):
        raise template.TemplateSyntaxError(f"static/vendor/icons has no {name}.svg")
    with open(found, encoding="utf-8") as file:  # noqa: PTH123 -- one of our own files
        svg = file.read()
    return svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")].strip()


@register.simple_tag
def icon(name: str, classes: str = "") -> SafeString:
    """Render a decorative icon in the colour of the surrounding text.

    Templates put a text beside it.
    """
    return format_html(
        '<svg class="icon {}" width="24" height="24" viewBox="0 0 24 24" fill="none" '
        'stroke="currentColor" stroke-width="1.75" stroke-linecap="round" '
        'stroke-linejoin="round" aria-hidden="true">{}</svg>',
        classes,
        mark_safe(_icon_body(name)),  # noqa: S308 -- one of our own files
    )


@register.simple_tag
def when(ms: int | None) -> SafeString | str:
    """Render “3 min ago” with the exact time as tooltip; app.js updates the text."""
    if ms is None:
        return unknown()
    try:
        machine = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return str(ms)
    return format_html(
        '<time datetime="{}" title="{}" data-ms="{}">{}</time>',
        machine,
        formats.exact(ms),
        ms,
        formats.ago(ms, now_ms()),
    )


@register.simple_tag
def unknown(reason: str = "") -> SafeString:
    """Render a dash for an unknown value, never 0 or -1."""
    return format_html(
        '<span class="text-secondary" title="{}">{}</span>', reason or _("unknown"), formats.UNKNOWN
    )


@register.simple_tag
def colon() -> str:
    """Render the colon between a label or name and its text: full-width in Chinese."""
    return pgettext("between a label and its text", ": ")


@register.inclusion_tag("parts/perm.html")
def perm(value: int | None) -> dict[str, Any]:
    """Render the badge of a topic's permission, in words and number."""
    return {"perm": perm_words(value)}


@register.inclusion_tag("parts/copy.html")
def copy(text: str) -> dict[str, Any]:
    """Render a button that copies `text`; the button is hidden without JavaScript."""
    return {"text": text}


@register.inclusion_tag("parts/stale.html")
def stale(brokers: Iterable[str] | str, failures: Iterable[BrokerFailure] | str) -> dict[str, Any]:
    """Mark values of brokers that are down, with the time of the oldest values."""
    names = {brokers} if isinstance(brokers, str) else set(brokers)
    lost = [one for one in failures if not isinstance(one, str) and one.broker in names]
    oldest = min(
        ((one.as_of_ms, one.broker) for one in lost if one.as_of_ms is not None),
        default=(None, ""),
    )
    return {"at_ms": oldest[0], "broker": oldest[1]}


@register.inclusion_tag("parts/answered.html")
def answered(answer: Answer[Any], read_ms: int | None = None) -> dict[str, Any]:
    """Render the age of an answer, and of the oldest values in place of missing ones.

    `read_ms` is the time when the oldest values were read, for an answer from earlier answers.
    """
    times = [one.as_of_ms for one in answer.failures if one.as_of_ms is not None]
    if read_ms is not None and read_ms < answer.asked_at_ms:
        times.append(read_ms)
    return {"answer": answer, "oldest_ms": min(times, default=None)}
