"""The differences between a document and a cluster. Pure.

Objects of the cluster that the document does not name are reported and never deleted.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from core_broker.definitions.model import EVERYWHERE, KINDS, PASSWORD, Document, Fields, Placement

MASK = "***"


class Action(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    SAME = "same"
    #: Only the cluster has the object.
    EXTRA = "extra"
    #: The document cannot be applied to this cluster; `problem` says why.
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Change:
    """A field on one broker; `before` is None for an object that the broker lacks."""

    broker: str
    field: str
    before: Any
    after: Any

    @property
    def before_text(self) -> str:
        return _text(self.before)

    @property
    def after_text(self) -> str:
        return _text(self.after)


def _text(value: Any) -> str:
    """A value as the document has it: texts without quotes, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Item:
    """One object of the document or the cluster. `wanted` has the complete fields by broker."""

    kind: str
    name: str
    action: Action
    changes: tuple[Change, ...] = ()
    wanted: Mapping[str, Fields] | None = None
    #: Brokers that lack the object.
    missing: tuple[str, ...] = ()
    problem: str = ""

    @property
    def is_drift(self) -> bool:
        return self.action in {Action.CREATE, Action.UPDATE, Action.PROBLEM}


def compare(document: Document, present: Document, brokers: Sequence[str]) -> tuple[Item, ...]:
    """One item per object, by kind and name. `brokers` are the names of the cluster's masters.

    Kinds that the document does not have are not compared.
    """
    return tuple(
        item
        for kind in KINDS
        if kind in document.objects
        for item in _kind(kind, document.objects[kind], present.objects.get(kind, {}), brokers)
    )


def _kind(
    kind: str,
    wanted: Mapping[str, Placement],
    present: Mapping[str, Placement],
    brokers: Sequence[str],
) -> Iterator[Item]:
    for name in sorted({*wanted, *present}):
        if name not in wanted:
            yield Item(kind, name, Action.EXTRA)
            continue
        yield _item(kind, name, wanted[name], spread(present.get(name, {}), brokers), brokers)


def spread(placement: Placement, brokers: Iterable[str]) -> dict[str, Fields]:
    """Fields by broker name."""
    if EVERYWHERE in placement:
        return dict.fromkeys(brokers, placement[EVERYWHERE])
    return dict(placement)


def _item(
    kind: str,
    name: str,
    placement: Placement,
    present: Mapping[str, Fields],
    brokers: Sequence[str],
) -> Item:
    wanted = spread(placement, brokers)
    unknown = sorted(set(wanted) - set(brokers))
    if unknown:
        return Item(
            kind, name, Action.PROBLEM, problem=f"The cluster has no broker {', '.join(unknown)}."
        )
    missing = tuple(sorted(set(wanted) - set(present)))
    if kind == "users" and missing and not all(wanted[each].get(PASSWORD) for each in missing):
        return Item(
            kind,
            name,
            Action.PROBLEM,
            problem=f"A new user needs a password ({', '.join(missing)}): create the user, or add "
            "the key password.",
        )
    complete: dict[str, Fields] = {}
    changes: list[Change] = []
    for broker, fields in sorted(wanted.items()):
        held = present.get(broker, {})
        complete[broker] = {**held, **fields}
        changes += [
            Change(broker, key, held.get(key), MASK if key == PASSWORD else value)
            for key, value in sorted(fields.items())
            if held.get(key) != value and not (key == PASSWORD and held)
        ]
        if not fields and broker in missing:
            changes.append(Change(broker, "", None, ""))
    action = Action.CREATE if not present else Action.UPDATE if changes else Action.SAME
    return Item(kind, name, action, tuple(changes), complete, missing)
