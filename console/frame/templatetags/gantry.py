"""Tags and filters that every template may use without loading them."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django import template
from django.contrib.staticfiles import finders
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from console.frame import formats
from console.gateway import Answer, now_ms
from console.gateway.topics.permission import perm_words

register = template.Library()


def _filter(name: str, show: Callable[[Any], str]) -> None:
    """A filter for which what a template cannot find ("") is as unknown as None."""
    register.filter(name, lambda value: show(None if value == "" else value))


_filter("number", formats.number)
_filter("compact", formats.compact)
_filter("rate", formats.rate)
_filter("size", formats.size)
_filter("percent", formats.percent)
_filter("duration", formats.duration)
_filter("exact", formats.exact)


@cache
def _icon_body(name: str) -> str:
    """What is inside the <svg> of a vendored icon; the templates name only icons that exist."""
    found = finders.find(f"vendor/icons/{name}.svg")
    if not isinstance(found, str):
        raise template.TemplateSyntaxError(f"static/vendor/icons has no {name}.svg")
    with open(found, encoding="utf-8") as file:  # noqa: PTH123 -- one of our own files
        svg = file.read()
    return svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")].strip()


@register.simple_tag
def icon(name: str, classes: str = "") -> SafeString:
    """An icon in the colour of the text around it; it says nothing, so a text stands beside it."""
    return format_html(
        '<svg class="icon {}" width="24" height="24" viewBox="0 0 24 24" fill="none" '
        'stroke="currentColor" stroke-width="1.75" stroke-linecap="round" '
        'stroke-linejoin="round" aria-hidden="true">{}</svg>',
        classes,
        mark_safe(_icon_body(name)),  # noqa: S308 -- one of our own files
    )


@register.simple_tag
def when(ms: int | None) -> SafeString | str:
    """“3 min ago”, with the exact time one hover away; app.js keeps it current."""
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
    """The dash for what nobody could tell; never a 0 or -1."""
    return format_html(
        '<span class="text-secondary" title="{}">{}</span>', reason or _("unknown"), formats.UNKNOWN
    )


@register.inclusion_tag("parts/perm.html")
def perm(value: int | None) -> dict[str, Any]:
    """The badge of a topic's permission, in words and number."""
    return {"perm": perm_words(value)}


@register.inclusion_tag("parts/copy.html")
def copy(text: str) -> dict[str, Any]:
    """A button that copies `text`; scripts show it, since without them it could do nothing."""
    return {"text": text}


@register.inclusion_tag("parts/answered.html")
def answered(answer: Answer[Any]) -> dict[str, Any]:
    """How old an answer is, and which brokers are missing from it."""
    return {"answer": answer}
