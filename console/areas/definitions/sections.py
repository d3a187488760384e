"""Sections of a document that the console keeps itself, beside the definitions of the brokers.

An area with own definitions registers a section in `AppConfig.ready`:

    sections.register(Section("protection", export, plan, apply))
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from rest_framework.request import Request

from core_broker.definitions.comparing import Item
from core_broker.definitions.model import KINDS


@dataclass(frozen=True, slots=True)
class Section:
    """A section by name. Values are plain maps, lists and texts of the document."""

    name: str
    #: Argument: the cluster's name. The section's value, empty for none.
    export: Callable[[str], Any]
    #: Arguments: cluster, value. One item per object; raises DefinitionsError for a wrong value.
    plan: Callable[[str, Any], Sequence[Item]]
    #: Arguments: cluster, item, the request. Raises DefinitionsError, and PermissionDenied.
    apply: Callable[[str, Item, HttpRequest | Request], None]


_sections: dict[str, Section] = {}


def register(section: Section) -> None:
    assert section.name not in {*KINDS, *_sections}, section.name
    _sections[section.name] = section


def registered() -> dict[str, Section]:
    return dict(_sections)
