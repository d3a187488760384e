"""Reading a document of definitions from YAML or JSON.

The text is composed into nodes by the bounded reader of YAML: no tags, anchors or aliases, a
maximum depth and a maximum number of nodes. Every fault names its line; an unknown key also the
nearest known one.
"""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any, Final

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from core_broker.definitions.model import (
    DOCUMENT_BYTES_MAX,
    ENTRY_FIELDS,
    EVERYWHERE,
    FORMAT,
    KINDS,
    OBJECTS_MAX,
    POLICIES,
    DefinitionsError,
    Document,
    FieldType,
    Number,
    Placement,
    Secret,
    Switch,
    Word,
)
from core_broker.yaml_nodes import YamlError, compose, items, line_of, members

#: Maximum number of keys, values, lists and maps: 50 to 100 microseconds and 1 KiB each.
NODES_MAX: Final = 250_000
#: Maximum length of a name or text of a field, characters.
TEXT_CHARS_MAX: Final = 1_024
_DIGITS_MAX = 10
_BOOLEANS = {"true": True, "false": False}


def read(text: str | bytes, more: Collection[str] = ()) -> Document:
    """Parse a document; `more` names sections of other programs, returned as plain values.

    Raises DefinitionsError.
    """
    data = text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
    if len(data) > DOCUMENT_BYTES_MAX:
        most = DOCUMENT_BYTES_MAX // 2**20
        raise DefinitionsError(f"The document has {len(data)} bytes; the maximum is {most} MiB.")
    try:
        root = compose(data.decode(), NODES_MAX, "apply the definitions in several documents")
        return _document(root, more)
    except UnicodeDecodeError:
        raise DefinitionsError("The document is not UTF-8.") from None
    except YamlError as fault:
        raise DefinitionsError(str(fault)) from None


def _document(root: Node | None, more: Collection[str]) -> Document:
    if root is None:
        raise DefinitionsError(f"The document is empty; the first line is “format: {FORMAT}”.")
    document = Document()
    has_format = False
    for key, node in members(root, "the document"):
        if key == "format":
            has_format = True
            if _text(node, key) != FORMAT:
                raise YamlError(f"{line_of(node)}format is not {FORMAT}.")
        elif key in KINDS:
            document.objects[key] = _objects(key, node)
        elif key in more:
            document.more[key] = _plain(node)
        else:
            raise unknown_key(node, key, "the document", ("format", *KINDS, *more))
    if not has_format:
        raise DefinitionsError(f"The document has no “format: {FORMAT}”.")
    if document.count > OBJECTS_MAX:
        raise DefinitionsError(f"More than {OBJECTS_MAX} objects; apply several documents.")
    return document


def unknown_key(node: Node, key: str, place: str, known: Iterable[str]) -> YamlError:
    names = sorted(known)
    near = get_close_matches(key[:TEXT_CHARS_MAX], names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(names)}."
    return YamlError(f"{line_of(node)}{place} has no key {key[:80]!r}; {hint}")


def _objects(kind: str, node: Node) -> dict[str, Placement]:
    if isinstance(node, ScalarNode) and not node.value:
        return {}
    found: dict[str, Placement] = {}
    for name, value in members(node, kind):
        if not name or len(name) > TEXT_CHARS_MAX:
            raise YamlError(f"{line_of(value)}a name in {kind} is empty or too long.")
        found[name] = _placement(kind, name, value)
    return found


def _placement(kind: str, name: str, node: Node) -> Placement:
    inside = list(members(node, name))
    if [key for key, _value in inside] != ["brokers"]:
        return {EVERYWHERE: _fields(kind, name, node)}
    by_broker = {
        broker: _fields(kind, name, value) for broker, value in members(inside[0][1], "brokers")
    }
    if not by_broker or EVERYWHERE in by_broker:
        raise YamlError(f"{line_of(node)}brokers of {name} names no broker.")
    return by_broker


def _fields(kind: str, name: str, node: Node) -> dict[str, Any]:
    if kind == "acls":
        return _policies(name, node)
    types = KINDS[kind]
    fields = {}
    for key, value in members(node, name):
        if key not in types:
            raise unknown_key(value, key, f"{name} of {kind}", types)
        fields[key] = _value(key, value, types[key])
    return fields


def _value(key: str, node: Node, expected: FieldType) -> Any:
    text = _text(node, key)
    match expected:
        case Switch():
            if text.lower() in _BOOLEANS:
                return _BOOLEANS[text.lower()]
            raise YamlError(f"{line_of(node)}{key} is neither true nor false.")
        case Number(low, high):
            digits = text.removeprefix("-")
            if digits.isascii() and digits.isdecimal() and len(digits) <= _DIGITS_MAX:
                number = int(text)
                if low <= number <= high:
                    return number
            raise YamlError(f"{line_of(node)}{key} is no number from {low} to {high}.")
        case Word(words):
            if text in words:
                return text
            raise YamlError(f"{line_of(node)}{key} is none of {', '.join(words)}.")
        case Secret():
            return text


def _policies(name: str, node: Node) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for policy, value in members(node, name):
        if policy not in POLICIES:
            raise unknown_key(value, policy, f"{name} of acls", POLICIES)
        entries = [_entry(name, each) for each in items(value, policy)]
        found[policy] = sorted(entries, key=lambda entry: str(entry["resource"]))
    return found


def _entry(name: str, node: Node) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    for key, value in members(node, f"an entry of {name}"):
        if key not in ENTRY_FIELDS:
            raise unknown_key(value, key, f"an entry of {name}", ENTRY_FIELDS)
        if key in {"actions", "sourceIps"}:
            entry[key] = [_text(each, key) for each in items(value, key)]
        else:
            entry[key] = _text(value, key)
    for key in ("resource", "actions"):
        if not entry.get(key):
            raise YamlError(f"{line_of(node)}an entry of {name} has no {key}.")
    if entry.setdefault("decision", "Allow") not in {"Allow", "Deny"}:
        raise YamlError(f"{line_of(node)}decision is neither Allow nor Deny.")
    if not entry.get("sourceIps"):
        entry.pop("sourceIps", None)
    return entry


def _text(node: Node, name: str) -> str:
    if not isinstance(node, ScalarNode):
        raise YamlError(f"{line_of(node)}{name} is a list or map instead of one value.")
    text = str(node.value)
    if len(text) > TEXT_CHARS_MAX:
        raise YamlError(f"{line_of(node)}{name} has more than {TEXT_CHARS_MAX} characters.")
    return text


def _plain(node: Node) -> Any:
    """Maps, lists and texts of a section that another program checks."""
    if isinstance(node, MappingNode):
        return {key: _plain(value) for key, value in members(node, "a map")}
    if isinstance(node, SequenceNode):
        return [_plain(each) for each in node.value]
    return _text(node, "a value")
