"""The view of a topology in the parameters of a URL, for page and API."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext as _

from console.areas.topology.selection import NODES_MAX, STEPS_MAX, View
from console.frame.tables import SEARCH_CHARS_MAX
from console.gateway.topology.model import NODE_KINDS

#: Maximum length of `focus`: the kind, a colon and a name.
FOCUS_CHARS_MAX: Final = 300
#: Maximum value of `limit`, nodes.
LIMIT_MAX: Final = 2_000
FLAGS: Final = {"": False, "0": False, "false": False, "1": True, "true": True}


@dataclass(slots=True)
class Reading:
    """A view, and the errors of invalid parameters, whose defaults take effect."""

    view: View
    errors: dict[str, list[str]] = field(default_factory=dict)


def read_view(params: Mapping[str, str]) -> Reading:
    """Read `q`, `focus`, `steps`, `collapse`, `system`, `retry` and `limit`."""
    errors: dict[str, list[str]] = {}
    values: dict[str, Any] = {"search": params.get("q", "").strip()}
    if len(values["search"]) > SEARCH_CHARS_MAX:
        errors["q"] = [_("At most %(most)d characters.") % {"most": SEARCH_CHARS_MAX}]
        values["search"] = values["search"][:SEARCH_CHARS_MAX]
    focus = params.get("focus", "")
    kind, colon, _name = focus.partition(":")
    if focus and (kind not in NODE_KINDS or not colon or len(focus) > FOCUS_CHARS_MAX):
        example = "topic:orders"
        errors["focus"] = [_("Expected kind and name, like %(example)s") % {"example": example}]
        focus = ""
    values["focus"] = focus
    values["steps"] = _number(params, "steps", 1, STEPS_MAX, errors)
    values["nodes_max"] = _number(params, "limit", NODES_MAX, LIMIT_MAX, errors)
    kinds = [each for each in params.get("collapse", "").split(",") if each]
    unknown = [each for each in kinds if each not in NODE_KINDS]
    if unknown:
        known = ", ".join(NODE_KINDS)
        errors["collapse"] = [_("Expected a list of: %(known)s") % {"known": known}]
    values["stacked"] = frozenset(each for each in NODE_KINDS if each in kinds)
    for name, target in (("system", "with_system"), ("retry", "with_retry")):
        text = params.get(name, "").lower()
        if text not in FLAGS:
            errors[name] = [_("Expected true or false")]
        values[target] = FLAGS.get(text, False)
    return Reading(View(**values), errors)


def _number(
    params: Mapping[str, str], name: str, default: int, most: int, errors: dict[str, list[str]]
) -> int:
    text = params.get(name, "")
    if not text:
        return default
    if text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= most:
        return int(text[:9])
    errors[name] = [_("Expected a number from 1 to %(most)d.") % {"most": most}]
    return default
