"""Masks: fields of messages that a reader may not see are replaced by `***`. Pure.

A mask has the rules of a cluster and the topics that the reader sees unmasked. The masked message
takes the place of the stored message before filters, lookups and presentation, so that no filter
finds a masked value. A rule applies to a topic and to copies of its messages: retry and dead-letter
topics, delayed and half messages name the original topic in a property. Every rule applies to a
copy without the name of an original topic, and to system topics such as the trace topic.

A body that a rule cannot read is masked whole: binary, too large, not decompressible, or not JSON
without a rule for text. So is a body of trace records where keys or tags of messages are hidden.
"""

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

import re2

from console.gateway.messages import json_paths
from console.gateway.patterns import fits
from core_broker.errors import ProtocolError
from core_broker.message import properties as names
from core_broker.message import sysflag
from core_broker.message.compression import decompress
from core_broker.message.model import MessageExt
from core_broker.message.topics import (
    DLQ_PREFIX,
    FAILURE_PREFIXES,
    RETRY_PREFIX,
    SYSTEM_TOPICS,
    TRACE_TOPIC,
    is_system_topic,
)

HIDDEN: Final = "***"
#: Maximum size of a body that is masked by field, bytes; a larger body is masked whole.
BODY_BYTES_MAX: Final = 4 * 1024 * 1024
REGEX_MEMORY_BYTES_MAX: Final = 1024 * 1024
COMPILED_MAX: Final = 256
EXPRESSION_CHARS_MAX: Final = 500
ORIGIN_PROPERTIES: Final = (
    names.PROPERTY_RETRY_TOPIC,
    names.PROPERTY_DLQ_ORIGIN_TOPIC,
    names.PROPERTY_REAL_TOPIC,
)
#: Properties that brokers and the console need; rules do not mask them.
STRUCTURAL_PROPERTIES: Final = (names.RESERVED_PROPERTIES | set(ORIGIN_PROPERTIES)) - {
    names.PROPERTY_KEYS,
    names.PROPERTY_TAGS,
    names.PROPERTY_CORRELATION_ID,
}
#: Properties of a message that its trace records repeat.
TRACED_PROPERTIES: Final = (names.PROPERTY_KEYS, names.PROPERTY_TAGS)
#: The beginning of a trace record: kind and separator (`trace.codec`).
_TRACE_RECORD: Final = re.compile(
    rb"(?:^|\x02)(?:Pub|SubBefore|SubAfter|EndTransaction|Recall)\x01"
)
_JSON_BLANKS: Final = str.maketrans("", "", " \t\r\n")


class MaskKind(StrEnum):
    """What a rule masks."""

    #: Values at a path of a JSON body: `$.card.number`, `$..card`.
    JSON = "json"
    #: Matches of a regular expression (RE2) in a text body; with groups, only the groups.
    REGEX = "regex"
    #: The whole body.
    BODY = "body"
    #: Properties by name, with `*` for any characters.
    PROPERTY = "property"
    #: The keys of the message, also in its trace records.
    KEYS = "keys"


#: Kinds with an expression.
KINDS_WITH_EXPRESSION: Final = frozenset({MaskKind.JSON, MaskKind.REGEX, MaskKind.PROPERTY})
_BODY_KINDS: Final = frozenset({MaskKind.JSON, MaskKind.REGEX, MaskKind.BODY})


@dataclass(frozen=True, slots=True)
class MaskRule:
    """A rule for the topics that fit the pattern."""

    topic: str
    kind: MaskKind
    expression: str = ""


@dataclass(frozen=True, slots=True)
class Mask:
    """The rules of a cluster, and what a reader sees unmasked; hashable.

    `unmasked` has a list of topic patterns per layer of the reader's permissions. The reader sees a
    topic that every layer has; without layers, none.
    """

    rules: tuple[MaskRule, ...] = ()
    unmasked: tuple[tuple[str, ...], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rules)

    def sees(self, topic: str) -> bool:
        return bool(self.unmasked) and all(
            any(fits(pattern, topic) for pattern in layer) for layer in self.unmasked
        )

    def hiding(self, message: MessageExt) -> tuple[MaskRule, ...]:
        """Return the rules that hide fields of the message."""
        if not self.rules:
            return ()
        own, origins = topics_of(message)
        if _mask_traces(self.rules) and holds_traces(message):
            origins = ()  # records are about messages of any topic
        return tuple(each for each in self.rules if self._hides(each, own, origins))

    def hides_body(self, message: MessageExt) -> bool:
        """True when a rule for bodies applies, whether or not the body has such a value."""
        rules = self.hiding(message)
        is_ruled = any(each.kind in _BODY_KINDS for each in rules)
        return is_ruled or (_mask_traces(rules) and holds_traces(message))

    def message(self, message: MessageExt) -> MessageExt:
        """Return the message as the reader sees it: the same object without a hidden field."""
        return masked(message, self.hiding(message))

    def keeps_hidden(self, message: MessageExt, topic: str) -> bool:
        """True when a copy of the message in `topic` is masked like the message."""
        rules = self.hiding(message)
        return not rules or (
            not self.sees(topic) and all(fits(each.topic, topic) for each in rules)
        )

    def keys_hidden(self, topic: str) -> bool:
        """True when the reader may not see the keys of messages of the topic."""
        return self._property_hidden(topic, names.PROPERTY_KEYS)

    def tags_hidden(self, topic: str) -> bool:
        return self._property_hidden(topic, names.PROPERTY_TAGS)

    def _property_hidden(self, topic: str, name: str) -> bool:
        origins = () if _is_carrier(topic) else (topic,)
        rules = (each for each in self.rules if self._hides(each, (topic,), origins))
        return any(_masks_property(each, name) for each in rules)

    def _hides(self, rule: MaskRule, own: Iterable[str], origins: Iterable[str]) -> bool:
        """`own` are the topics that hold the message; without `origins`, every rule applies."""
        matched = [each for each in origins if fits(rule.topic, each)]
        matched = matched or [each for each in own if fits(rule.topic, each)]
        if not matched and not origins:
            matched = list(own)
        return bool(matched) and not all(map(self.sees, matched))


NO_MASK: Final = Mask()


def topics_of(message: MessageExt) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the topics of a message, and the original topics that it names.

    A topic of an application is its own original topic. The retry topic and the DLQ topic of a
    group count as one.
    """
    named = [message.topic, *(message.properties.get(name, "") for name in ORIGIN_PROPERTIES)]
    own: dict[str, None] = {}
    for topic in filter(None, named):
        own[topic] = None
        for prefix, twin in ((DLQ_PREFIX, RETRY_PREFIX), (RETRY_PREFIX, DLQ_PREFIX)):
            if topic.startswith(prefix):
                own[twin + topic.removeprefix(prefix)] = None
    return tuple(own), tuple(each for each in own if not _is_carrier(each))


def holds_traces(message: MessageExt) -> bool:
    """True for a message of the trace topic or a copy, and for a body with a trace record: clients
    can have another trace topic."""
    if TRACE_TOPIC in topics_of(message)[0]:
        return True
    body = message.body
    if message.sys_flag & sysflag.COMPRESSED:
        try:
            body = decompress(body, message.sys_flag, BODY_BYTES_MAX)
        except ProtocolError:
            return True
    return _TRACE_RECORD.search(body) is not None


def masked(message: MessageExt, rules: tuple[MaskRule, ...]) -> MessageExt:
    """Return the message with the fields of the rules replaced; the same object without any."""
    properties = {
        name: HIDDEN if value and any(_masks_property(each, name) for each in rules) else value
        for name, value in message.properties.items()
    }
    body_rules = tuple(each for each in rules if each.kind in _BODY_KINDS)
    body = _masked_body(message, body_rules) if body_rules and message.body else None
    if message.body and _mask_traces(rules) and holds_traces(message):
        body = HIDDEN.encode()
    if body is None and properties == message.properties:
        return message
    if body is None:
        return replace(message, properties=properties)
    return replace(
        message,
        properties=properties,
        body=body,
        body_crc=zlib.crc32(body) & 0x7FFFFFFF,
        sys_flag=message.sys_flag & ~(sysflag.COMPRESSED | sysflag.COMPRESSION_MASK),
    )


def masked_text(text: str, rules: Iterable[MaskRule]) -> str | None:
    """Return the text of a body with the fields of the rules replaced; None: masked whole."""
    rules = tuple(rules)
    paths = [each for each in rules if each.kind is MaskKind.JSON]
    patterns = [each for each in rules if each.kind is MaskKind.REGEX]
    if any(each.kind is MaskKind.BODY for each in rules):
        return None
    try:
        document = json_paths.parse(text)
    except ValueError:
        document = None
    if isinstance(document, list):
        return _masked_json(text, document, paths, patterns)
    looks_like_json = text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[")
    if not patterns or (paths and looks_like_json):
        return None
    return _without_matches(text, patterns)


def _masked_json(
    text: str, document: Any, paths: Iterable[MaskRule], patterns: Sequence[MaskRule]
) -> str | None:
    # Written again: escaped characters must not hide a value from a regular expression.
    compact = json_paths.written(document) if patterns else text
    if any(_loses_matches(text, compact, _compiled(rule.expression)) for rule in patterns):
        return None  # the expression depends on blanks that the written form lacks
    count = 0
    for rule in paths:
        document, changed = json_paths.replaced(document, _steps(rule.expression), HIDDEN)
        count += changed
    if not count and not patterns:
        return text
    rewritten = json_paths.written(document) if count else compact
    found = _without_matches(rewritten, patterns)
    if count:
        for rule in patterns:
            pattern = _compiled(rule.expression)
            before, after = (Counter(_pieces(each, pattern)) for each in (compact, rewritten))
            if any(piece in found for piece in before - after):
                return None  # the expression depends on a value that a path has replaced
    return found if count or found != rewritten else text


def _loses_matches(text: str, compact: str, pattern: Any) -> bool:
    """True when the compact form of a document shows what the pattern hides in its text."""
    stored, kept = (list(_places(each, pattern)) for each in (text, compact))
    if text.translate(_JSON_BLANKS) != compact.translate(_JSON_BLANKS):  # escaped characters
        stored, kept = ([(0, piece) for _at, piece in each] for each in (stored, kept))
    return bool(Counter(stored) - Counter(kept))


def _places(text: str, pattern: Any) -> Iterable[tuple[int, str]]:
    """Yield the texts that the pattern hides, with their places; both without blanks of JSON."""
    at = place = 0
    for begin, end in _spans(text, [pattern]):
        place += len(text[at:begin].translate(_JSON_BLANKS))
        piece = text[begin:end].translate(_JSON_BLANKS)
        yield place, piece
        place += len(piece)
        at = end


def _pieces(text: str, pattern: Any) -> list[str]:
    return [text[begin:end] for begin, end in _spans(text, [pattern])]


def check_expression(kind: MaskKind, expression: str) -> None:
    """Raise ValueError, with a reason, for an expression that a rule of the kind cannot have."""
    match kind:
        case MaskKind.JSON:
            if json_paths.Deep(json_paths.Every.CHILD.value) in _steps(expression):
                raise ValueError("..* is no step: write .*")
        case MaskKind.REGEX:
            _compiled(expression)
        case MaskKind.PROPERTY:
            if expression in STRUCTURAL_PROPERTIES:
                raise ValueError("property of the broker")


def _masked_body(message: MessageExt, rules: tuple[MaskRule, ...]) -> bytes | None:
    """Return the masked body; None for a body without a masked field."""
    body = message.body
    if message.sys_flag & sysflag.COMPRESSED:
        try:
            body = decompress(body, message.sys_flag, BODY_BYTES_MAX)
        except ProtocolError:
            return HIDDEN.encode()
    text = _text_of(body) if len(body) <= BODY_BYTES_MAX else None
    found = None if text is None else masked_text(text, rules)
    if found is None:
        return HIDDEN.encode()
    return None if found == text else found.encode("utf-8", "backslashreplace")


def _text_of(body: bytes) -> str | None:
    """Return UTF-8, or UTF-16 with a byte order mark, without control characters; else None."""
    codec = "utf-16" if body.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = body.decode(codec)
    except UnicodeDecodeError:
        return None
    is_clean = not any(char < " " and char not in "\t\n\r" for char in set(text))
    return text if is_clean and "\x7f" not in text else None


def _without_matches(text: str, rules: Iterable[MaskRule]) -> str:
    parts, at = [], 0
    for begin, end in _spans(text, [_compiled(rule.expression) for rule in rules]):
        parts += [text[at:begin], HIDDEN]
        at = end
    return "".join([*parts, text[at:]])


def _spans(text: str, patterns: Iterable[Any]) -> list[tuple[int, int]]:
    """Return what the patterns hide, in order; nested and overlapping spans are one."""
    found: list[tuple[int, int]] = []
    for pattern in patterns:
        groups = range(1, pattern.groups + 1) if pattern.groups else (0,)
        found += [match.span(group) for match in pattern.finditer(text) for group in groups]
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(span for span in found if span[1] > span[0]):
        if merged and begin < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


@lru_cache(maxsize=COMPILED_MAX)
def _steps(expression: str) -> tuple[json_paths.Step, ...]:
    steps, rest = json_paths.read_path(expression)
    if rest or not steps:
        raise ValueError("no path")
    return steps


@lru_cache(maxsize=COMPILED_MAX)
def _compiled(expression: str) -> Any:
    options = re2.Options()
    options.max_mem = REGEX_MEMORY_BYTES_MAX
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except re2.error as fault:
        reason = fault.args[0] if fault.args else ""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(text) from fault


def _masks_property(rule: MaskRule, name: str) -> bool:
    if rule.kind is MaskKind.KEYS:
        return name == names.PROPERTY_KEYS
    is_open = name not in STRUCTURAL_PROPERTIES
    return rule.kind is MaskKind.PROPERTY and is_open and fits(rule.expression, name)


def _mask_traces(rules: Iterable[MaskRule]) -> bool:
    return any(_masks_property(rule, name) for rule in rules for name in TRACED_PROPERTIES)


def _is_carrier(topic: str) -> bool:
    """True for topics with copies of messages of other topics."""
    return is_system_topic(topic) or topic in SYSTEM_TOPICS or topic.startswith(FAILURE_PREFIXES)
