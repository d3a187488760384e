"""Chips of labels: each is a link to the list with the objects that have the label."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from django import template
from django.http import QueryDict
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from console.resources.label_filter import Search
from console.resources.labels import Labels

register = template.Library()

#: Maximum number of chips in a row of a list; the page of the object has all.
ROW_CHIPS_MAX: Final = 3
WEB: Final = ("https://", "http://")


@dataclass(frozen=True, slots=True)
class Chip:
    """A label, and the search of the list that finds it beside the words of the present search."""

    key: str
    value: str
    search: str

    @property
    def link(self) -> str:
        """The value where it is a web address, else empty."""
        return self.value if self.value.startswith(WEB) else ""


@register.simple_tag
def label_chips(labels: Labels, search: str = "") -> list[Chip]:
    """Return the chips of an object."""
    added = Search(search).added
    return [Chip(key, value, added(key, value)) for key, value in labels.items()]


@register.simple_tag(takes_context=True)
def row_chips(
    context: template.Context, labels_by_name: Mapping[str, Labels], search: str
) -> dict[str, SafeString]:
    """Return the chips of a page's rows as HTML by name, for `label_row`.

    The address and the search are parsed once per page, not per chip: a page has 150 chips.
    """
    params = context["request"].GET.copy()
    params.pop("page", None)
    found = Search(search)
    rows = labels_by_name.items()
    return {name: _row(labels, found, params) for name, labels in rows if labels}


@register.simple_tag
def label_row(chips_by_name: Mapping[str, SafeString], name: str) -> SafeString | str:
    """Render the first chips of a row of a list; the rest as a number, with their texts."""
    return chips_by_name.get(name, "")


def _row(labels: Labels, search: Search, params: QueryDict) -> SafeString:
    return format_html(
        '<span class="label-chips">{}{}</span>',
        format_html_join(
            "",
            '<a class="label-chip" href="?{}" title="{}">{}</a>',
            _links(labels, search, params),
        ),
        _rest(labels),
    )


def _links(labels: Labels, search: Search, params: QueryDict) -> Iterator[tuple[str, str, str]]:
    """Address and texts of the first chips. `params` gets their searches, one after the other."""
    for key, value in islice(labels.items(), ROW_CHIPS_MAX):
        params["q"] = search.added(key, value)
        text = f"{key}={value}"
        yield params.urlencode(), text, text


def _rest(labels: Labels) -> SafeString | str:
    rest = [f"{key}={value}" for key, value in islice(labels.items(), ROW_CHIPS_MAX, None)]
    if not rest:
        return ""
    return format_html(
        '<span class="label-chip more-labels" title="{}">+{}</span>', ", ".join(rest), len(rest)
    )
