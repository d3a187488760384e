"""The section `alarms`: rules of alarms by name, with the names of their receivers.

    alarms:
      High lag: {source: metric, scope: group, metric: lag, threshold: 10000, severity: warning}

Receivers hold secrets and are no part of a document: a rule names receivers of this console.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.core.exceptions import ValidationError as WrongValues
from django.http import HttpRequest
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from console.areas.definitions.sections import Section
from console.frame.access import Need, check_may
from console.frame.permissions import Target
from console.gateway import GatewayError
from console.services.alarms.models import AlarmRule, Receiver
from console.services.alarms.rules import rules_of, save
from console.services.alarms.rules_api import body_of, read
from console.services.alarms.scope import RESOURCE, check_scope
from console.services.alarms.serializers import RECEIVERS_OF_RULE_MAX
from core_broker.definitions.comparing import Action, Change, Item
from core_broker.definitions.model import DefinitionsError

NAME: Final = "alarms"
CONSOLE: Final = "console"
RECEIVERS: Final = "receivers"


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
            after = _shown(*_read(cluster, name, fields))
        except DefinitionsError as fault:
            items.append(Item(NAME, name, Action.PROBLEM, problem=str(fault)))
            continue
        changes = tuple(
            Change(CONSOLE, key, before.get(key), each)
            for key, each in sorted(after.items())
            if before.get(key) != each
        )
        action = Action.CREATE if name not in held else Action.UPDATE if changes else Action.SAME
        items.append(Item(NAME, name, action, changes, {CONSOLE: fields}))
    return items


def apply(cluster: str, item: Item, request: HttpRequest | Request) -> None:
    if item.wanted is None:
        raise DefinitionsError(item.problem)
    values, receivers = _read(cluster, item.name, item.wanted[CONSOLE])
    held = {rule.name: rule for rule in rules_of(cluster)}.get(item.name)
    check_may(request, Need.WRITE, Target(RESOURCE, cluster))
    check_scope(request, Need.WRITE, values["cluster"], held.cluster if held else cluster)
    try:
        save(held, values, receivers, request.user.get_username())
    except WrongValues as wrong:
        raise DefinitionsError("; ".join(wrong.messages)) from wrong
    except GatewayError as refusal:
        raise DefinitionsError(str(refusal.detail)) from refusal


def _fields(rule: AlarmRule) -> dict[str, Any]:
    body = body_of(rule)
    del body["name"]
    body[RECEIVERS] = sorted(each.name for each in rule.receivers.all())
    return {key: value for key, value in body.items() if value is not None}


def _read(
    cluster: str, name: str, fields: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Receiver]]:
    """The values of a rule and its receivers. Raises DefinitionsError."""
    names = fields.get(RECEIVERS) or []
    is_list = isinstance(names, list) and len(names) <= RECEIVERS_OF_RULE_MAX
    if not is_list or not all(isinstance(each, str) for each in names):
        raise DefinitionsError(f"{RECEIVERS} is no list of at most {RECEIVERS_OF_RULE_MAX} names.")
    known = {each.name: each for each in Receiver.objects.filter(name__in=names)}
    unknown = [each for each in names if each not in known]
    if unknown:
        raise DefinitionsError(f"This console has no receiver {', '.join(unknown)}.")
    body = {**fields, "name": name, RECEIVERS: [each.pk for each in known.values()]}
    try:
        return read(cluster, body)
    except ValidationError as wrong:
        raise DefinitionsError(described(wrong.detail)) from wrong


def _shown(values: Mapping[str, Any], receivers: Sequence[Receiver]) -> dict[str, Any]:
    """The values as `_fields` has them."""
    shown = {key: value for key, value in values.items() if value is not None}
    del shown["name"]
    shown["all_clusters"] = shown.pop("cluster") == ""
    return {**shown, RECEIVERS: sorted(each.name for each in receivers)}


def described(detail: Any) -> str:
    if isinstance(detail, dict):
        return "; ".join(f"{key}: {described(value)}" for key, value in detail.items())
    if isinstance(detail, list):
        return " ".join(map(described, detail))
    return str(detail)


SECTION: Final = Section(NAME, export, plan, apply)
