"""Chips of labels: each is a link to the list with the objects that have the label."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django import template

from console.resources.label_filter import added
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
    def text(self) -> str:
        return f"{self.key}={self.value}"

    @property
    def link(self) -> str:
        """The value where it is a web address, else empty."""
        return self.value if self.value.startswith(WEB) else ""


@register.simple_tag
def label_chips(labels: Labels, search: str = "") -> list[Chip]:
    """Return the chips of an object."""
    return [Chip(key, value, added(search, key, value)) for key, value in labels.items()]


@register.inclusion_tag("resources/label_row.html", takes_context=True)
def label_row(
    context: template.Context, labels_by_name: Mapping[str, Labels], name: str, search: str
) -> dict[str, object]:
    """Render the first chips of a row of a list; the rest as a number, with their texts."""
    chips = label_chips(labels_by_name.get(name, {}), search)
    rest = chips[ROW_CHIPS_MAX:]
    return {
        "request": context["request"],
        "chips": chips[:ROW_CHIPS_MAX],
        "rest": ", ".join(chip.text for chip in rest),
        "rest_count": len(rest),
    }
