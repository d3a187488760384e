"""Writing a document as YAML: keys in order, one line per object, equal bytes for equal content.

JSON's strings, numbers and booleans are YAML too; keys and texts without special characters are
written without quotes. The general emitter of ruamel.yaml takes 20 times as long for 5,000 topics.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from json import dumps
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, Final

from core_broker.definitions.model import EVERYWHERE, FORMAT, KINDS, OBJECTS_MAX, Document

#: Maximum number of kept keys of texts: thousands of objects have labels with few different keys.
KEYS_MAX: Final = 1_024
#: Texts that every YAML version reads as a text, without quotes.
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_%./|-]*")
#: Words of YAML 1.1 with another meaning.
_RESERVED: Final = frozenset(
    {"y", "n", "yes", "no", "true", "false", "on", "off", "null", "nan", "inf"}
)
#: Texts of objects by kind and name.
ObjectTexts = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Block:
    """A map of a document as its lines; the callers of `block` may keep and share it."""

    text: str


def block(value: Mapping[str, Any], depth: int) -> Block:
    """The lines of a map that is not empty, `depth` maps below the document itself."""
    lines: list[str] = []
    _add_items(lines, value, "  " * depth)
    return Block("\n".join(lines))


def to_yaml(document: Document, notes: Iterable[str] = (), kept: ObjectTexts | None = None) -> str:
    """The document as text; ends with a line feed. Notes are comments below the first line.

    `kept` has texts of the document's objects that `object_texts` returned earlier.
    """
    comments = [f"# {' '.join(note.split())}" for note in notes]
    return "\n".join([f"format: {FORMAT}", *comments, *_lines(document, kept or {}), ""])


def object_texts(document: Document) -> ObjectTexts:
    """The texts of all objects, for callers that write the same objects repeatedly.

    A document with more than OBJECTS_MAX objects has no texts. Sections are not included.
    """
    if document.count > OBJECTS_MAX:
        return {}
    texts: dict[int, str] = {}
    return {
        kind: {name: _object(kind, name, placement, texts) for name, placement in objects.items()}
        for kind, objects in document.objects.items()
    }


def _lines(document: Document, kept: ObjectTexts) -> list[str]:
    #: Texts of fields by identity: thousands of objects share few maps of fields.
    texts: dict[int, str] = {}
    lines: list[str] = []
    for kind in KINDS:
        objects = document.objects.get(kind)
        if objects:
            lines.append(f"{kind}:")
            known = kept.get(kind, {})
            for name, placement in sorted(objects.items()):
                text = known.get(name)
                lines.append(_object(kind, name, placement, texts) if text is None else text)
    for name, value in sorted(document.more.items()):
        _add_block(lines, name, value, "")
    return lines


def _object(kind: str, name: str, placement: Mapping[str, Any], texts: dict[int, str]) -> str:
    lines: list[str] = []
    if EVERYWHERE in placement:
        _add_fields(lines, kind, name, placement[EVERYWHERE], "  ", texts)
    else:
        lines += (f"  {_scalar(name)}:", "    brokers:")
        for broker, fields in sorted(placement.items()):
            _add_fields(lines, kind, broker, fields, "      ", texts)
    return "\n".join(lines)


def _add_fields(
    lines: list[str],
    kind: str,
    name: str,
    fields: Mapping[str, Any],
    indent: str,
    texts: dict[int, str],
) -> None:
    if kind == "acls":
        _add_block(lines, name, fields, indent)
        return
    text = texts.get(id(fields))
    if text is None:
        text = texts[id(fields)] = _flow(fields)
    lines.append(f"{indent}{_scalar(name)}: {text}")


def _add_block(lines: list[str], name: str, value: Any, indent: str) -> None:
    """Add a value below its key: maps with one key per line, lists with one item per line."""
    if isinstance(value, str):  # first, because 10,000 objects have 50,000 labels
        lines.append(f"{indent}{_key(name)}: {_scalar(value)}")
    elif isinstance(value, Block):
        lines += (f"{indent}{_scalar(name)}:", value.text)
    elif isinstance(value, Mapping) and value:
        lines.append(f"{indent}{_scalar(name)}:")
        _add_items(lines, value, f"{indent}  ")
    elif isinstance(value, list | tuple) and value:
        lines.append(f"{indent}{_scalar(name)}:")
        lines += [f"{indent}  - {_flow(each)}" for each in value]
    else:
        lines.append(f"{indent}{_scalar(name)}: {_flow(value)}")


def _add_items(lines: list[str], value: Mapping[str, Any], indent: str) -> None:
    for key, each in sorted(value.items()):
        _add_block(lines, key, each, indent)


@lru_cache(KEYS_MAX)
def _key(name: str) -> str:
    return _scalar(name)


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(k)}: {_flow(v)}" for k, v in sorted(value.items())) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        return dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    # ASCII escapes: YAML's \u takes one UTF-16 unit, so other characters are written as they are.
    return encode_basestring_ascii(value) if value.isascii() else encode_basestring(value)
