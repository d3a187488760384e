"""The section `protection`: names that are protected from deletion, by kind.

protection:
  topics: [orders, payments]
  groups: [billing]
"""

from collections.abc import Sequence
from typing import Any, Final

from django.http import HttpRequest
from rest_framework.request import Request

from console.areas.definitions.reader import RESOURCES, Reader
from console.areas.definitions.rule_sections import CONSOLE
from console.areas.definitions.sections import Section
from console.resources.models import Kind, Protection
from console.resources.protection import protect
from core_broker.definitions.comparing import Action, Change, Item
from core_broker.definitions.model import DefinitionsError

NAME: Final = "protection"
KINDS: Final = {"topics": Kind.TOPIC, "groups": Kind.GROUP}


def export(reader: Reader) -> dict[str, list[str]]:
    found = {kind: sorted(_protected(reader, kind)) for kind in KINDS}
    return {kind: names for kind, names in found.items() if names}


def plan(reader: Reader, value: Any) -> Sequence[Item]:
    """Names to protect; protected names that the document lacks stay protected."""
    if not isinstance(value, dict) or not set(value) <= set(KINDS):
        text = "{name} has lists of names under {kinds}."
        raise DefinitionsError(text, name=NAME, kinds=", ".join(KINDS))
    items = []
    for kind, names in value.items():
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise DefinitionsError("{kind} of {name} is no list of names.", kind=kind, name=NAME)
        wanted, held, is_readable = set(names), _protected(reader, kind), reader.names(kind)
        change = (Change(CONSOLE, "protected", False, True),)
        for name in sorted(wanted | held):
            path = f"{kind}/{name}"
            if not is_readable(name):
                items.append(reader.refusal(NAME, path, RESOURCES[kind]))
            elif name not in wanted:
                items.append(Item(NAME, path, Action.EXTRA))
            elif name in held:
                items.append(Item(NAME, path, Action.SAME))
            else:
                items.append(Item(NAME, path, Action.UPDATE, change))
    return items


def apply(cluster: str, item: Item, request: HttpRequest | Request) -> None:
    kind, _slash, name = item.name.partition("/")
    protect(cluster, KINDS[kind], name, request.user.get_username())


def _protected(reader: Reader, kind: str) -> set[str]:
    """The protected names that the user may read."""
    rows = Protection.objects.filter(cluster=reader.cluster, kind=KINDS[kind])
    return set(filter(reader.names(kind), rows.values_list("name", flat=True)))


SECTION: Final = Section(NAME, export, plan, apply)
