"""Writing a document as YAML: keys in order, one line per object, equal bytes for equal content.

JSON's strings, numbers and booleans are YAML too; keys and texts without special characters are
written without quotes. The general emitter of ruamel.yaml takes 20 times as long for 5,000 topics.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from core_broker.definitions.model import EVERYWHERE, FORMAT, KINDS, Document

#: Texts that every YAML version reads as a text, without quotes.
_PLAIN: Final = re.compile(r"[A-Za-z%_][A-Za-z0-9_%./|-]*")
#: Words of YAML 1.1 with another meaning.
_RESERVED: Final = frozenset(
    {"y", "n", "yes", "no", "true", "false", "on", "off", "null", "nan", "inf"}
)


def to_yaml(document: Document, notes: Iterable[str] = ()) -> str:
    """The document as text; ends with a line feed. Notes are comments below the first line."""
    comments = [f"# {' '.join(note.split())}" for note in notes]
    return "\n".join([f"format: {FORMAT}", *comments, *_sections(document), ""])


def _sections(document: Document) -> Iterator[str]:
    #: Texts of fields by identity: thousands of objects share few maps of fields.
    texts: dict[int, str] = {}
    for kind in KINDS:
        objects = document.objects.get(kind)
        if objects:
            yield f"{kind}:"
            for name, placement in sorted(objects.items()):
                yield from _object(kind, name, placement, texts)
    for name, value in sorted(document.more.items()):
        yield from _block(name, value, "")


def _object(
    kind: str, name: str, placement: Mapping[str, Any], texts: dict[int, str]
) -> Iterator[str]:
    if EVERYWHERE in placement:
        yield from _fields(kind, name, placement[EVERYWHERE], "  ", texts)
        return
    yield f"  {_scalar(name)}:"
    yield "    brokers:"
    for broker, fields in sorted(placement.items()):
        yield from _fields(kind, broker, fields, "      ", texts)


def _fields(
    kind: str, name: str, fields: Mapping[str, Any], indent: str, texts: dict[int, str]
) -> Iterator[str]:
    if kind == "acls":
        yield from _block(name, fields, indent)
        return
    text = texts.get(id(fields))
    if text is None:
        text = texts[id(fields)] = _flow(fields)
    yield f"{indent}{_scalar(name)}: {text}"


def _block(name: str, value: Any, indent: str) -> Iterator[str]:
    """A value below its key: maps with one key per line, lists with one item per line."""
    if isinstance(value, Mapping) and value:
        yield f"{indent}{_scalar(name)}:"
        for key, each in sorted(value.items()):
            yield from _block(key, each, f"{indent}  ")
    elif isinstance(value, list | tuple) and value:
        yield f"{indent}{_scalar(name)}:"
        for each in value:
            yield f"{indent}  - {_flow(each)}"
    else:
        yield f"{indent}{_scalar(name)}: {_flow(value)}"


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(k)}: {_flow(v)}" for k, v in sorted(value.items())) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _RESERVED and not value.startswith("%"):
        return value
    # ASCII escapes: YAML's \u takes one UTF-16 unit, so other characters are written as they are.
    return json.dumps(value, ensure_ascii=value.isascii())
