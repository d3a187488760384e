"""The section `masking`: rules of masked fields by name.

masking:
  Card numbers: {topic: orders-*, kind: json, expression: $..card}
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.core.exceptions import ValidationError as WrongValues
from django.http import HttpRequest
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from console.areas.definitions.alarms import CONSOLE, described
from console.areas.definitions.sections import Section
from console.frame.access import Need, check_may
from console.frame.permissions import Target
from console.gateway import GatewayError
from console.services.masking.api import MaskingFields, read
from console.services.masking.models import MaskingRule
from console.services.masking.rules import Draft, checked, rules_of, save
from console.services.masking.views import RESOURCE, check_scope
from core_broker.definitions.comparing import Action, Change, Item
from core_broker.definitions.model import DefinitionsError

NAME: Final = "masking"


def export(cluster: str) -> dict[str, dict[str, Any]]:
    return {rule.name: _fields(rule) for rule in rules_of(cluster)}


def plan(cluster: str, value: Any) -> Sequence[Item]:
    """Rules to create and change; rules that the document lacks stay as they are."""
    if not isinstance(value, dict) or not all(isinstance(each, dict) for each in value.values()):
        raise DefinitionsError(f"{NAME} has a map of fields per rule.")
    held = {rule.name: rule for rule in rules_of(cluster)}
    items = []
    for name in sorted({*value, *held}):
        if name not in value:
            items.append(Item(NAME, name, Action.EXTRA))
            continue
        before = _fields(held[name]) if name in held else {}
        fields = {**before, **value[name]}
        try:
            draft = _read(name, fields)
        except DefinitionsError as fault:
            items.append(Item(NAME, name, Action.PROBLEM, problem=str(fault)))
            continue
        changes = tuple(
            Change(CONSOLE, key, before.get(key), getattr(draft, key))
            for key in sorted(_NAMES)
            if before.get(key) != getattr(draft, key)
        )
        action = Action.CREATE if name not in held else Action.UPDATE if changes else Action.SAME
        items.append(Item(NAME, name, action, changes, {CONSOLE: fields}))
    return items


def apply(cluster: str, item: Item, request: HttpRequest | Request) -> None:
    if item.wanted is None:
        raise DefinitionsError(item.problem)
    draft = _read(item.name, item.wanted[CONSOLE])
    held = {rule.name: rule for rule in rules_of(cluster)}.get(item.name)
    check_may(request, Need.ADMIN, Target(RESOURCE, cluster))
    check_scope(request, draft.all_clusters, held)
    try:
        save(request.user, held, draft, cluster)
    except WrongValues as wrong:
        raise DefinitionsError("; ".join(wrong.messages)) from wrong
    except GatewayError as refusal:
        raise DefinitionsError(str(refusal.detail)) from refusal


_NAMES: Final = frozenset(MaskingFields().fields) - {"name"}


def _fields(rule: MaskingRule) -> dict[str, Any]:
    return {name: getattr(rule, name) for name in sorted(_NAMES)}


def _read(name: str, fields: Mapping[str, Any]) -> Draft:
    """The draft of a rule. Raises DefinitionsError."""
    try:
        draft = read({**fields, "name": name})
        checked(draft)
    except ValidationError as wrong:
        raise DefinitionsError(described(wrong.detail)) from wrong
    except WrongValues as wrong:
        raise DefinitionsError("; ".join(wrong.messages)) from wrong
    return draft


SECTION: Final = Section(NAME, export, plan, apply)
