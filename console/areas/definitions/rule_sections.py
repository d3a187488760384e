"""Sections with rules by name: `alarms` and `masking` say how their rules are read and stored.

    alarms:
      High lag: {source: metric, scope: group, metric: lag, threshold: 10000, severity: warning}

A field that a document leaves out keeps its value; rules that a document lacks stay as they are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from django.core.exceptions import ValidationError as WrongValues
from django.http import HttpRequest
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from console.areas.definitions.reader import Reader
from console.areas.definitions.sections import Section
from console.areas.definitions.texts import localized
from console.gateway import GatewayError
from core_broker.definitions.comparing import Action, Change, Item, refused
from core_broker.definitions.model import DefinitionsError

#: Place of the changes, where changes of topics name a broker.
CONSOLE: Final = "console"


class Rule(Protocol):
    @property
    def name(self) -> Any: ...


R = TypeVar("R", bound=Rule)
#: A checked rule that is not stored yet.
D = TypeVar("D")


# Without slots: a frozen generic with slots cannot be made in Python 3.11.
@dataclass(frozen=True)
class RuleKind(Generic[R, D]):
    """Rules of one kind. Functions may raise ValidationError of Django and of REST framework."""

    name: str
    resource: str
    #: The rules of a cluster.
    stored: Callable[[str], Iterable[R]]
    #: The fields of a stored rule, without its name.
    fields: Callable[[R], Mapping[str, Any]]
    #: Arguments: cluster, name, fields.
    read: Callable[[str, str, Mapping[str, Any]], D]
    #: A draft as `fields` has a stored rule.
    shown: Callable[[D], Mapping[str, Any]]
    #: Arguments: request, cluster, the stored rule to change, draft. Checks the permissions.
    save: Callable[[HttpRequest | Request, str, R | None, D], object]

    @property
    def section(self) -> Section:
        return Section(self.name, self.export, self.plan, self.apply, self.resource)

    def export(self, reader: Reader) -> dict[str, Mapping[str, Any]]:
        return {rule.name: self.fields(rule) for rule in self.stored(reader.cluster)}

    def plan(self, reader: Reader, value: Any) -> Sequence[Item]:
        is_map = isinstance(value, dict)
        if not is_map or not all(isinstance(each, dict) for each in value.values()):
            raise DefinitionsError("{name} has a map of fields per rule.", name=self.name)
        held = {rule.name: self.fields(rule) for rule in self.stored(reader.cluster)}
        return [
            self._item(reader.cluster, name, held.get(name), value[name])
            if name in value
            else Item(self.name, name, Action.EXTRA)
            for name in sorted({*value, *held})
        ]

    def apply(self, cluster: str, item: Item, request: HttpRequest | Request) -> None:
        assert item.wanted is not None
        held = {rule.name: rule for rule in self.stored(cluster)}.get(item.name)
        try:
            draft = self.read(cluster, item.name, item.wanted[CONSOLE])
            self.save(request, cluster, held, draft)
        except (ValidationError, WrongValues) as wrong:
            raise DefinitionsError(reasons(wrong)) from wrong
        except GatewayError as refusal:
            raise DefinitionsError(str(refusal.detail)) from refusal

    def _item(
        self, cluster: str, name: str, held: Mapping[str, Any] | None, given: Mapping[str, Any]
    ) -> Item:
        before = held or {}
        fields = {**before, **given}
        try:
            after = self.shown(self.read(cluster, name, fields))
        except (ValidationError, WrongValues) as wrong:
            return refused(self.name, name, reasons(wrong))
        except DefinitionsError as fault:
            return refused(self.name, name, localized(fault.text))
        changes = tuple(
            Change(CONSOLE, key, before.get(key), each)
            for key, each in sorted(after.items())
            if before.get(key) != each
        )
        action = Action.CREATE if held is None else Action.UPDATE if changes else Action.SAME
        return Item(self.name, name, action, changes, {CONSOLE: fields})


def reasons(wrong: ValidationError | WrongValues) -> str:
    """The reasons of wrong values as one sentence."""
    return "; ".join(wrong.messages) if isinstance(wrong, WrongValues) else _listed(wrong.detail)


def _listed(detail: Any) -> str:
    if isinstance(detail, dict):
        return "; ".join(f"{key}: {_listed(value)}" for key, value in detail.items())
    if isinstance(detail, list):
        return " ".join(map(_listed, detail))
    return str(detail)
