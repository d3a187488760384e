"""The section `labels`: labels of topics and groups by name.

    labels:
      topics:
        orders: {owner: ann, tier: gold}
      groups:
        billing: {owner: bob}

Keys that a document lacks keep their values, and so do objects that a document lacks.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext
from rest_framework.request import Request

from console.areas.definitions.reader import RESOURCES, Reader
from console.areas.definitions.rule_sections import CONSOLE, reasons
from console.areas.definitions.sections import Section
from console.frame.access import Need, check_may
from console.frame.permissions import Target
from console.gateway import NotAllowedNow
from console.resources.labels import (
    Labels,
    change,
    checked,
    labels_by_name,
    labels_of_json,
    stored_labels,
)
from console.resources.models import NAME_CHARS_MAX, Kind
from core_broker.definitions.comparing import Action, Change, Item, refused
from core_broker.definitions.model import DefinitionsError
from core_broker.definitions.writing import Block, block

NAME: Final = "labels"
KINDS: Final = {"topics": Kind.TOPIC, "groups": Kind.GROUP}
#: Depth of an object's labels in the document: below `labels`, the kind, and the name.
DEPTH: Final = 3
#: Maximum number of kept blocks, and maximum length of the JSON of a kept block, characters. Five
#: labels have 200; to read and write those of 10,000 objects anew takes 100 ms.
BLOCKS_MAX: Final = 20_000
KEPT_CHARS_MAX: Final = 1_000


def export(reader: Reader) -> dict[str, dict[str, Block]]:
    found = {kind: _blocks(reader, kind) for kind in KINDS}
    return {kind: blocks for kind, blocks in found.items() if blocks}


def plan(reader: Reader, value: Any) -> Sequence[Item]:
    """Labels to add or to change; labels that the document lacks stay."""
    if not isinstance(value, dict) or not set(value) <= set(KINDS):
        text = "{name} has maps of labels by name under {kinds}."
        raise DefinitionsError(text, name=NAME, kinds=", ".join(KINDS))
    items = []
    for kind, wanted in value.items():
        is_map = isinstance(wanted, dict)
        if not is_map or not all(isinstance(each, dict) for each in wanted.values()):
            text = "{kind} of {name} is no map of names with labels."
            raise DefinitionsError(text, kind=kind, name=NAME)
        held, is_readable = _held(reader, kind), reader.names(kind)
        for name in sorted({*wanted, *held}):
            path = f"{kind}/{name}"
            if not is_readable(name):
                items.append(reader.refusal(NAME, path, RESOURCES[kind]))
            elif name not in wanted:
                items.append(Item(NAME, path, Action.EXTRA))
            else:
                items.append(_item(path, held.get(name, {}), wanted[name]))
    return items


def _item(path: str, before: Labels, given: Mapping[str, Any]) -> Item:
    name = path.partition("/")[2]
    if not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable():
        return refused(NAME, path, gettext("This is no name of a topic or group."))
    try:
        after = checked({**before, **given})
    except ValidationError as wrong:
        return refused(NAME, path, reasons(wrong))
    changes = tuple(
        Change(CONSOLE, key, before.get(key), each)
        for key, each in after.items()
        if before.get(key) != each
    )
    changed = Action.UPDATE if before else Action.CREATE
    return Item(NAME, path, changed if changes else Action.SAME, changes, {CONSOLE: given})


def apply(cluster: str, item: Item, request: HttpRequest | Request) -> None:
    assert item.wanted is not None
    kind, _slash, name = item.name.partition("/")
    check_may(request, Need.WRITE, Target(RESOURCES[kind], cluster, name))
    given, by = item.wanted[CONSOLE], request.user.get_username()
    try:
        change(cluster, KINDS[kind], name, by, lambda held: {**held, **given})
    except ValidationError as wrong:
        raise DefinitionsError(reasons(wrong)) from wrong
    except NotAllowedNow as refusal:
        raise DefinitionsError(str(refusal.detail)) from refusal


def _held(reader: Reader, kind: str) -> dict[str, Labels]:
    """The labels of the objects that the user may read."""
    found, is_readable = labels_by_name(reader.cluster, KINDS[kind]), reader.names(kind)
    return {name: labels for name, labels in found.items() if is_readable(name)}


def _blocks(reader: Reader, kind: str) -> dict[str, Block]:
    """The lines of the labels of the objects that the user may read."""
    is_readable = reader.names(kind)
    return {
        name: _kept_block(stored) if len(stored) <= KEPT_CHARS_MAX else _block(stored)
        for name, stored in stored_labels(reader.cluster, KINDS[kind])
        if is_readable(name)
    }


@lru_cache(BLOCKS_MAX)
def _kept_block(stored: str) -> Block:
    """`_block`, kept by the labels themselves, so that changed labels have another block."""
    return _block(stored)


def _block(stored: str) -> Block:
    return block(labels_of_json(stored), DEPTH)


SECTION: Final = Section(NAME, export, plan, apply)
