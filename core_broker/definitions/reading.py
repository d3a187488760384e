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
from core_broker.errors import FormattedText
from core_broker.yaml_nodes import YamlError, compose, items, line_of, members

#: Maximum number of keys, values, lists and maps: 50 to 100 microseconds and 1 KiB each.
NODES_MAX: Final = 250_000
#: Maximum length of a name or text of a field, characters.
TEXT_CHARS_MAX: Final = 1_024
_DIGITS_MAX = 10
THE_DOCUMENT: Final = FormattedText("the document")
A_MAP: Final = FormattedText("a map")
A_VALUE: Final = FormattedText("a value")
_BOOLEANS = {"true": True, "false": False}


def read(text: str | bytes, more: Collection[str] = ()) -> Document:
    """Parse a document; `more` names sections of other programs, returned as plain values.

    Raises DefinitionsError.
    """
    data = text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
    if len(data) > DOCUMENT_BYTES_MAX:
        most = DOCUMENT_BYTES_MAX // 2**20
        text = "The document has {size} bytes; the maximum is {most} MiB."
        raise DefinitionsError(text, size=len(data), most=most)
    remedy = FormattedText("apply the definitions in several documents")
    try:
        root = compose(data.decode(), NODES_MAX, remedy)
        return _document(root, more)
    except UnicodeDecodeError:
        raise DefinitionsError("The document is not UTF-8.") from None
    except YamlError as fault:
        raise DefinitionsError(fault.text) from None


def _document(root: Node | None, more: Collection[str]) -> Document:
    if root is None:
        text = "The document is empty; the first line is “format: {format}”."
        raise DefinitionsError(text, format=FORMAT)
    document = Document()
    has_format = False
    for key, node in members(root, THE_DOCUMENT):
        if key == "format":
            has_format = True
            if _text(node, key) != FORMAT:
                raise YamlError("{line}format is not {format}.", line=line_of(node), format=FORMAT)
        elif key in KINDS:
            document.objects[key] = _objects(key, node)
        elif key in more:
            document.more[key] = _plain(node)
        else:
            raise unknown_key(node, key, THE_DOCUMENT, ("format", *KINDS, *more))
    if not has_format:
        raise DefinitionsError("The document has no “format: {format}”.", format=FORMAT)
    if document.count > OBJECTS_MAX:
        text = "More than {most} objects; apply several documents."
        raise DefinitionsError(text, most=OBJECTS_MAX)
    return document


def unknown_key(node: Node, key: str, place: str, known: Iterable[str]) -> YamlError:
    names = sorted(known)
    near = get_close_matches(key[:TEXT_CHARS_MAX], names, n=1)
    about: dict[str, object] = {"line": line_of(node), "place": place, "key": key[:80]}
    if near:
        text = "{line}{place} has no key {key!r}; did you mean {near!r}?"
        return YamlError(text, near=near[0], **about)
    text = "{line}{place} has no key {key!r}; known keys: {names}."
    return YamlError(text, names=", ".join(names), **about)


def _objects(kind: str, node: Node) -> dict[str, Placement]:
    if isinstance(node, ScalarNode) and not node.value:
        return {}
    found: dict[str, Placement] = {}
    for name, value in members(node, kind):
        if not name or len(name) > TEXT_CHARS_MAX:
            text = "{line}a name in {kind} is empty or too long."
            raise YamlError(text, line=line_of(value), kind=kind)
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
        text = "{line}brokers of {name} names no broker."
        raise YamlError(text, line=line_of(node), name=name)
    return by_broker


def _fields(kind: str, name: str, node: Node) -> dict[str, Any]:
    if kind == "acls":
        return _policies(name, node)
    types = KINDS[kind]
    fields = {}
    for key, value in members(node, name):
        if key not in types:
            place = FormattedText("{name} of {kind}", name=name, kind=kind)
            raise unknown_key(value, key, place, types)
        fields[key] = _value(key, value, types[key])
    return fields


def _value(key: str, node: Node, expected: FieldType) -> Any:
    text = _text(node, key)
    match expected:
        case Switch():
            if text.lower() in _BOOLEANS:
                return _BOOLEANS[text.lower()]
            text = "{line}{name} is neither true nor false."
            raise YamlError(text, line=line_of(node), name=key)
        case Number(low, high):
            digits = text.removeprefix("-")
            if digits.isascii() and digits.isdecimal() and len(digits) <= _DIGITS_MAX:
                number = int(text)
                if low <= number <= high:
                    return number
            about = {"name": key, "low": low, "high": high}
            text = "{line}{name} is no number from {low} to {high}."
            raise YamlError(text, line=line_of(node), **about)
        case Word(words):
            if text in words:
                return text
            about = {"name": key, "words": ", ".join(words)}
            raise YamlError("{line}{name} is none of {words}.", line=line_of(node), **about)
        case Secret():
            return text


def _policies(name: str, node: Node) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for policy, value in members(node, name):
        if policy not in POLICIES:
            place = FormattedText("{name} of {kind}", name=name, kind="acls")
            raise unknown_key(value, policy, place, POLICIES)
        entries = [_entry(name, each) for each in items(value, policy)]
        found[policy] = sorted(entries, key=lambda entry: str(entry["resource"]))
    return found


def _entry(name: str, node: Node) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    place = FormattedText("an entry of {name}", name=name)
    for key, value in members(node, place):
        if key not in ENTRY_FIELDS:
            raise unknown_key(value, key, place, ENTRY_FIELDS)
        if key in {"actions", "sourceIps"}:
            entry[key] = [_text(each, key) for each in items(value, key)]
        else:
            entry[key] = _text(value, key)
    for key in ("resource", "actions"):
        if not entry.get(key):
            text = "{line}{place} has no {key}."
            raise YamlError(text, line=line_of(node), place=place, key=key)
    if entry.setdefault("decision", "Allow") not in {"Allow", "Deny"}:
        raise YamlError("{line}decision is neither Allow nor Deny.", line=line_of(node))
    if not entry.get("sourceIps"):
        entry.pop("sourceIps", None)
    return entry


def _text(node: Node, name: str) -> str:
    if not isinstance(node, ScalarNode):
        text = "{line}{name} is a list or map instead of one value."
        raise YamlError(text, line=line_of(node), name=name)
    text = str(node.value)
    if len(text) > TEXT_CHARS_MAX:
        about = {"name": name, "most": TEXT_CHARS_MAX}
        text = "{line}{name} has more than {most} characters."
        raise YamlError(text, line=line_of(node), **about)
    return text


def _plain(node: Node) -> Any:
    """Maps, lists and texts of a section that another program checks."""
    if isinstance(node, MappingNode):
        return {key: _plain(value) for key, value in members(node, A_MAP)}
    if isinstance(node, SequenceNode):
        return [_plain(each) for each in node.value]
    return _text(node, A_VALUE)
