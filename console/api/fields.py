"""`fields=`: the members of a list's items that an answer has.

`?fields=name,numbers.lag` keeps two members of each item; a dot leads into an object. An unknown
member is answered with 400. A list without items accepts any name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError

FIELDS_MAX = 50
FIELDS = OpenApiParameter(
    "fields",
    OpenApiTypes.STR,
    description="Members of the items, separated by commas, such as `name,numbers.lag`; the items "
    f"then have only these members. All if absent; at most {FIELDS_MAX}.",
)


def chosen_members(items: Sequence[Mapping[str, Any]], text: str) -> list[dict[str, Any]]:
    """Return the items with the members of `fields`; raises ValidationError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or len(names) > FIELDS_MAX:
        reason = _("Expected 1 to %(most)d names, separated by commas.") % {"most": FIELDS_MAX}
        raise ValidationError({"fields": [reason]})
    known = {name for item in items for name in _names(item)}
    unknown = [name for name in names if name not in known] if items else []
    if unknown:
        reason = _("Unknown member %(name)s. Known members: %(known)s")
        parts = {"name": unknown[0][:80], "known": ", ".join(sorted(known))}
        raise ValidationError({"fields": [reason % parts]})
    return [_picked(item, names) for item in items]


def _names(item: Mapping[str, Any]) -> list[str]:
    names = []
    for name, value in item.items():
        names.append(name)
        if isinstance(value, Mapping):
            names += [f"{name}.{inner}" for inner in value]
    return names


def _picked(item: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the members of one item; a member of a missing object is left out."""
    found: dict[str, Any] = {}
    for name in names:
        outer, dot, inner = name.partition(".")
        value = item.get(outer)
        if not dot:
            found[outer] = value
        elif isinstance(value, Mapping):
            if isinstance(found.setdefault(outer, {}), dict) and inner in value:
                found[outer] = {**found[outer], inner: value[inner]}
        else:
            found[outer] = value
    return found
