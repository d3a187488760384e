"""The section `protection`: names that are protected from deletion, by kind.

protection:
  topics: [orders, payments]
  groups: [billing]
"""

from collections.abc import Sequence
from typing import Any, Final

from django.http import HttpRequest
from rest_framework.request import Request

from console.areas.definitions.sections import Section
from console.resources.models import Kind, Protection
from console.resources.protection import protect
from core_broker.definitions.comparing import Action, Change, Item
from core_broker.definitions.model import DefinitionsError

NAME: Final = "protection"
KINDS: Final = {"topics": Kind.TOPIC, "groups": Kind.GROUP}
CONSOLE: Final = "console"


def export(cluster: str) -> dict[str, list[str]]:
    found = {name: sorted(_protected(cluster, kind)) for name, kind in KINDS.items()}
    return {name: names for name, names in found.items() if names}


def plan(cluster: str, value: Any) -> Sequence[Item]:
    """Names to protect; protected names that the document lacks stay protected."""
    if not isinstance(value, dict) or not set(value) <= set(KINDS):
        raise DefinitionsError(f"{NAME} has lists of names under {' and '.join(KINDS)}.")
    items = []
    for kind, names in value.items():
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise DefinitionsError(f"{kind} of {NAME} is no list of names.")
        wanted, held = set(names), _protected(cluster, KINDS[kind])
        change = (Change(CONSOLE, "protected", False, True),)
        for name in sorted(wanted | held):
            path = f"{kind}/{name}"
            if name not in wanted:
                items.append(Item(NAME, path, Action.EXTRA))
            elif name in held:
                items.append(Item(NAME, path, Action.SAME))
            else:
                items.append(Item(NAME, path, Action.UPDATE, change))
    return items


def apply(cluster: str, item: Item, request: HttpRequest | Request) -> None:
    kind, _slash, name = item.name.partition("/")
    protect(cluster, KINDS[kind], name, request.user.get_username())


def _protected(cluster: str, kind: Kind) -> set[str]:
    rows = Protection.objects.filter(cluster=cluster, kind=kind)
    return set(rows.values_list("name", flat=True))


SECTION: Final = Section(NAME, export, plan, apply)
