"""Sections of a document that the console keeps itself, beside the definitions of the brokers.

An area with own definitions registers a section in `AppConfig.ready`:

    sections.register(Section("protection", export, plan, apply))
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from rest_framework.request import Request

from console.areas.definitions.reader import Reader
from core_broker.definitions.comparing import Item
from core_broker.definitions.model import KINDS


@dataclass(frozen=True, slots=True)
class Section:
    """A section by name. Values are plain maps, lists and texts of the document."""

    name: str
    #: The section's value that the user may read, empty for none.
    export: Callable[[Reader], Any]
    #: Arguments: reader, value. One item per object; raises DefinitionsError for a wrong value.
    plan: Callable[[Reader, Any], Sequence[Item]]
    #: Arguments: cluster, item, the request. Raises DefinitionsError, and PermissionDenied.
    apply: Callable[[str, Item, HttpRequest | Request], None]
    #: Resource whose objects the section has; empty: the section's functions ask the reader.
    resource: str = ""

    def exported(self, reader: Reader) -> Any:
        """`export`, for a user who may read the resource; else empty."""
        return self.export(reader) if self.is_readable(reader) else None

    def planned(self, reader: Reader, value: Any) -> Sequence[Item]:
        """`plan`, for a user who may read the resource; else one refused item per name."""
        if self.is_readable(reader):
            return self.plan(reader, value)
        names = value if isinstance(value, dict) else {"": value}
        return [reader.refusal(self.name, name, self.resource) for name in sorted(names)]

    def is_readable(self, reader: Reader) -> bool:
        return not self.resource or reader.may_read(self.resource)


_sections: dict[str, Section] = {}


def register(section: Section) -> None:
    assert section.name not in {*KINDS, *_sections}, section.name
    _sections[section.name] = section


def registered() -> dict[str, Section]:
    return dict(_sections)
