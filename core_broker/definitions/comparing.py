"""The differences between a document and a cluster. Pure.

Objects of the cluster that the document does not name are reported and never deleted.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from core_broker.definitions.model import EVERYWHERE, KINDS, PASSWORD, Document, Fields, Placement
from core_broker.errors import FormattedText

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


def refused(kind: str, name: str, problem: str) -> Item:
    """The item of an object that cannot be applied."""
    return Item(kind, name, Action.PROBLEM, problem=problem)


def compare(document: Document, present: Document, brokers: Sequence[str]) -> tuple[Item, ...]:
    """One item per object, by kind and name. `brokers` are the names of the cluster's masters.

    Kinds that the document does not have are not compared; objects of a kind that was not readable
    cannot be applied.
    """
    return tuple(
        item
        for kind in KINDS
        if kind in document.objects
        for item in _of_kind(kind, document.objects[kind], present, brokers)
    )


def _of_kind(
    kind: str, wanted: Mapping[str, Placement], present: Document, brokers: Sequence[str]
) -> Iterator[Item]:
    reason = present.left_out.get(kind)
    if reason is None:
        yield from _kind(kind, wanted, present.objects.get(kind, {}), brokers)
        return
    for name in sorted(wanted):
        yield refused(kind, name, FormattedText("not readable: {reason}", reason=reason))


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
        text = "The cluster has no broker {names}."
        return refused(kind, name, FormattedText(text, names=", ".join(unknown)))
    missing = tuple(sorted(set(wanted) - set(present)))
    if kind == "users" and missing and not all(wanted[each].get(PASSWORD) for each in missing):
        text = "A new user needs a password ({names}): create the user, or add the key password."
        return refused(kind, name, FormattedText(text, names=", ".join(missing)))
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
