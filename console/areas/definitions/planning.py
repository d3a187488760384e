"""Export, plan and application of definitions, shared by page and REST resource."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, override
from rest_framework.request import Request

from console.areas.definitions.reader import Reader
from console.areas.definitions.sections import registered
from console.areas.definitions.texts import localized
from console.audit.recording import audited
from console.frame.access import Need, check_may
from console.frame.permissions import Target
from console.gateway import Cluster, Unusable, gateway
from console.gateway.changes import BrokerOutcome, FieldChange
from console.gateway.definitions import Outcomes, apply_items, definitions
from console.resources import history, left_labels
from console.resources.models import Kind
from core_broker.definitions.cluster import Outcome
from core_broker.definitions.comparing import Action, Item, compare
from core_broker.definitions.model import KINDS, DefinitionsError, Document
from core_broker.definitions.reading import read
from core_broker.definitions.writing import to_yaml

APPLY_ACTION = "definitions.apply"
_HISTORY_KINDS = {"topics": Kind.TOPIC, "groups": Kind.GROUP}


class UnusableDefinitions(Unusable):
    kind = "definitions"
    title = gettext_lazy("The definitions cannot be used")


@dataclass(frozen=True, slots=True)
class Applied:
    """An item and its result; `error` is empty after success and for an item without changes."""

    item: Item
    result: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The differences of a document and a cluster, with notes for the reader."""

    items: tuple[Item, ...]
    notes: tuple[str, ...]

    @property
    def drift(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.is_drift)

    @property
    def extra(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.action is Action.EXTRA)

    def count(self, action: Action) -> int:
        return sum(item.action is action for item in self.items)


def export_text(reader: Reader) -> tuple[str, tuple[str, ...]]:
    """The definitions of a cluster that the user may read, as YAML, and notes about other parts."""
    gathered = gateway.cluster(reader.cluster).ask(definitions).value
    document = reader.visible(gathered.document)
    document.more = {
        name: value for name, section in registered().items() if (value := section.exported(reader))
    }
    notes = _notes(reader, gathered.document, [*KINDS, *registered()])
    with override("en"):  # equal definitions give equal bytes, whatever language the reader has
        text = to_yaml(document, map(localized, notes), gathered.texts)
    return text, tuple(map(localized, notes))


def left_out(reader: Reader) -> tuple[str, ...]:
    """Notes about parts that exports lack, because the user may not read the parts."""
    sections = {name: each.resource for name, each in registered().items() if each.resource}
    return tuple(map(str, reader.notes(KINDS, sections)))


def plan(reader: Reader, text: str | bytes) -> Plan:
    """Compare a document with the cluster. Raises UnusableDefinitions."""
    sections = registered()
    try:
        wanted = read(text, sections)
        own = [
            item
            for name, value in wanted.more.items()
            for item in sections[name].planned(reader, value)
        ]
    except DefinitionsError as fault:
        raise UnusableDefinitions(localized(fault.text)) from fault
    gathered = gateway.cluster(reader.cluster).ask(definitions).value
    compared, refusals = reader.split(wanted)
    items = compare(compared, reader.visible(gathered.document), gathered.brokers)
    notes = _notes(reader, gathered.document, [*wanted.objects, *wanted.more])
    shown = [replace(each, problem=localized(each.problem)) for each in (*items, *refusals)]
    return Plan((*shown, *own), (*map(localized, notes), *_warnings(items)))


def _notes(reader: Reader, present: Document, parts: Sequence[str]) -> list[Any]:
    """Notes about parts that brokers or permissions keep from the reader."""
    kinds = [part for part in parts if part in KINDS]
    owned = {
        name: section.resource
        for name, section in registered().items()
        if name in parts and section.resource
    }
    refused = [part for part in kinds if part in present.left_out]
    kept = Document(left_out={part: present.left_out[part] for part in refused})
    return [*kept.notes, *reader.notes([each for each in kinds if each not in refused], owned)]


def apply(request: HttpRequest | Request, cluster: Cluster, planned: Plan) -> list[Applied]:
    """Apply the plan with an audit row. The pages of topics and groups undo their changes.

    Raises PermissionDenied for changes of users and lists without `acl:admin`.
    """
    if any(item.kind in ("users", "acls") and item.is_drift for item in planned.items):
        check_may(request, Need.ADMIN, Target("acl", cluster.name))
    with audited(request, APPLY_ACTION, cluster=cluster.name, target=cluster.name) as entry:
        entry.after = {"items": [f"{item.kind} {item.name}" for item in planned.drift]}
        sections = registered()
        on_brokers = [item for item in planned.items if item.kind not in sections]
        for item in on_brokers:
            if item.action is Action.CREATE and item.kind in _HISTORY_KINDS:
                left_labels.forget_absent(cluster, _HISTORY_KINDS[item.kind], [item.name])
        outcomes = cluster.do(apply_items, tuple(on_brokers))
        results = [
            _own_result(request, cluster, item)
            if item.kind in sections
            else _result(item, outcomes)
            for item in planned.items
        ]
        entry.outcomes(
            {"item": f"{each.item.kind} {each.item.name}", "error": each.error or None}
            for each in results
            if each.item.is_drift
        )
    for item in on_brokers:
        _keep_history(request, cluster, item, outcomes.get((item.kind, item.name), ()))
    return results


def _result(item: Item, outcomes: Outcomes) -> Applied:
    if not item.is_drift:
        return Applied(item, item.action.value)
    failed = [each for each in outcomes.get((item.kind, item.name), ()) if each.error is not None]
    if failed:
        error = "; ".join(f"{each.broker}: {each.error}".removeprefix(": ") for each in failed)
        return Applied(item, "failed", error)
    return Applied(item, "created" if item.action is Action.CREATE else "updated")


def _own_result(request: HttpRequest | Request, cluster: Cluster, item: Item) -> Applied:
    if not item.is_drift:
        return Applied(item, item.action.value)
    if item.problem:
        return Applied(item, "failed", item.problem)
    try:
        registered()[item.kind].apply(cluster.name, item, request)
    except DefinitionsError as fault:
        return Applied(item, "failed", localized(fault.text))
    except (DatabaseError, PermissionDenied) as failure:
        return Applied(item, "failed", str(failure))
    return Applied(item, "created" if item.action is Action.CREATE else "updated")


def _warnings(items: Sequence[Item]) -> list[str]:
    """Topics whose write queues are more than their read queues: consumers miss messages."""
    found = []
    for item in items:
        if item.kind != "topics" or not item.is_drift:
            continue
        for broker, fields in (item.wanted or {}).items():
            written, read_queues = fields.get("writeQueueNums", 8), fields.get("readQueueNums", 8)
            if written > read_queues:
                text = _("%(topic)s on %(broker)s: no consumer reads queues %(first)s to %(last)s.")
                values = {"topic": item.name, "broker": broker}
                found.append(text % {**values, "first": read_queues, "last": written - 1})
    return found


def _keep_history(
    request: HttpRequest | Request, cluster: Cluster, item: Item, outcomes: Sequence[Outcome]
) -> None:
    kind = _HISTORY_KINDS.get(item.kind)
    if kind is None or item.action is not Action.UPDATE:
        return
    lines = [
        FieldChange(each.broker, _snake(each.field), each.before, each.after)
        for each in item.changes
        if each.broker not in item.missing
    ]
    done = [BrokerOutcome(each.broker, "", each.error) for each in outcomes]
    history.keep(request.user, cluster.name, kind, item.name, lines, done)


def _snake(name: str) -> str:
    return re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", name)
