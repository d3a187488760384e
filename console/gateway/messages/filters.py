"""Message filters: by tag, by SQL92 over properties, by body.

The parts of a filter are joined by AND. The console evaluates them, message by message: a broker
filters by SQL92 only with `enablePropertyFilter`, never by body, and never in a topic without read
permission. Broker and console share the SQL92 compiler, so a consumer with an expression receives
the messages that the console shows.

Bodies with a schema are searched as the JSON text that the pages show.

Bounds: expressions have a maximum length, a regular expression runs in linear time (RE2), a JSON
path is a plain walk, and a filter reads only the first BODY_BYTES_MAX bytes of a large body.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec
import re2
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.engine.errors import Unusable
from console.gateway.messages import json_paths
from console.gateway.messages.masks import NO_MASK, Mask
from console.gateway.messages.schemas.decoder import NO_DECODER, Decoder
from core_broker.errors import FilterSyntaxError, ProtocolError
from core_broker.filter.sql92 import compile_sql92
from core_broker.message import sysflag
from core_broker.message.compression import decompress
from core_broker.message.model import MessageExt

TAGS_CHARS_MAX = 255
SQL_CHARS_MAX = 2_000
BODY_CHARS_MAX = 500
#: Maximum size of the examined part of a body, and of a decompressed body, bytes.
BODY_BYTES_MAX = 4 * 1024 * 1024
REGEX_MEMORY_BYTES_MAX = 1024 * 1024
COMPILED_MAX = 64

Test = Callable[[MessageExt], bool]


class BodyTest(StrEnum):
    """The kind of a body filter."""

    #: The body contains the text, in any letter case.
    TEXT = "text"
    #: A regular expression (RE2 syntax) matches somewhere in the body.
    REGEX = "regex"
    #: A path in a JSON body: `$.order.total > 100`, or `$.order` for “the path exists”.
    JSON = "json"


class FilterError(Unusable):
    """A part of a filter is invalid; `field` is tags, sql or body."""

    kind = "filter"
    title = _("The filter cannot be used")

    def __init__(self, field: str, detail: Any) -> None:
        super().__init__(detail)
        self.field = field


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """A filter; an empty part matches all messages. Hashable, for use as a question's argument."""

    tags: str = ""
    sql: str = ""
    body: str = ""
    body_test: BodyTest = BodyTest.TEXT
    #: Bodies with a schema are searched as JSON text.
    decoder: Decoder = NO_DECODER

    def __bool__(self) -> bool:
        return bool(self.tags or self.sql or self.body)

    def decoding(self, decoder: Decoder) -> "MessageFilter":
        """Return the filter for a cluster with body schemas."""
        return replace(self, decoder=decoder) if self.body else self

    def compiled(self, mask: Mask = NO_MASK) -> Test:
        """Return the test of one message; raise FilterError for an invalid part.

        The test sees the message through the mask.
        """
        test = _compiled(self)
        return (lambda message: test(mask.message(message))) if mask else test


@lru_cache(maxsize=COMPILED_MAX)
def _compiled(wanted: MessageFilter) -> Test:
    tests: list[Test] = []
    if wanted.tags:
        tests.append(_by_tags(wanted.tags))
    if wanted.sql:
        tests.append(_by_sql(wanted.sql))
    if wanted.body:
        tests.append(_by_body(wanted.body, wanted.body_test, wanted.decoder))
    return lambda message: all(test(message) for test in tests)


def _check_length(field: str, text: str, chars_max: int) -> None:
    if len(text) > chars_max:
        raise FilterError(field, format_lazy(_("At most {most} characters."), most=chars_max))


def _by_tags(text: str) -> Test:
    _check_length("tags", text, TAGS_CHARS_MAX)
    wanted = {tag.strip() for tag in text.split("||")} - {""}
    if not wanted:
        raise FilterError("tags", _("Name a tag, or several with || between them."))
    if "*" in wanted:
        return lambda _message: True
    return lambda message: message.tags in wanted


def _by_sql(text: str) -> Test:
    _check_length("sql", text, SQL_CHARS_MAX)
    try:
        compiled = compile_sql92(text)
    except FilterSyntaxError as wrong:
        raise FilterError("sql", str(wrong)) from wrong
    return lambda message: compiled.matches(message.properties) is True


def _by_body(text: str, test: BodyTest, decoder: Decoder) -> Test:
    _check_length("body", text, BODY_CHARS_MAX)
    match test:
        case BodyTest.TEXT:
            return _contains(text, decoder)
        case BodyTest.REGEX:
            return _by_regex(text, decoder)
        case BodyTest.JSON:
            return _by_path(text, decoder)


def _contains(text: str, decoder: Decoder) -> Test:
    wanted = text.lower()
    raw = wanted.encode()
    if raw.isascii() and not raw.islower():  # caseless text: compare bytes
        return lambda message: raw in searched(message, decoder)
    return lambda message: wanted in searched(message, decoder).decode(errors="replace").lower()


def _by_regex(text: str, decoder: Decoder) -> Test:
    options = re2.Options()
    options.max_mem = REGEX_MEMORY_BYTES_MAX
    options.log_errors = False
    try:
        pattern = re2.compile(text, options)
    except re2.error as wrong:
        reason = wrong.args[0] if wrong.args else ""
        shown = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise FilterError(
            "body", format_lazy(_("Not a regular expression of RE2: {reason}."), reason=shown)
        ) from wrong

    def test(message: MessageExt) -> bool:
        return pattern.search(searched(message, decoder).decode(errors="replace")) is not None

    return test


_COMPARISON = re.compile(r"\s*(?P<sign>==|!=|>=|<=|=|>|<|~)\s*(?P<value>.+?)\s*", re.DOTALL)


def _by_path(text: str, decoder: Decoder) -> Test:
    steps, rest = _path(text.strip())
    wanted = _comparison(rest)

    def test(message: MessageExt) -> bool:
        try:
            document = msgspec.json.decode(searched(message, decoder))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return False  # not JSON
        return any(wanted(each) for each in json_paths.found(document, steps))

    return test


def _path(text: str) -> tuple[tuple[json_paths.Step, ...], str]:
    """Return the steps of a path and the rest of the text."""
    try:
        return json_paths.read_path(text)
    except ValueError:
        if text.startswith("$"):
            most = json_paths.PATH_STEPS_MAX
            raise FilterError("body", format_lazy(_("At most {most} steps."), most=most)) from None
        hint = _("A JSON path begins with $, for example $.order.id = 7.")
        raise FilterError("body", hint) from None


def _comparison(text: str) -> Callable[[Any], bool]:
    if not text.strip():
        return lambda _value: True
    found = _COMPARISON.fullmatch(text)
    if found is None:
        raise FilterError(
            "body",
            format_lazy(
                _("After the path comes an operator, such as = or ~, and a value, not “{text}”."),
                text=text.strip()[:40],
            ),
        )
    sign, wanted = found["sign"], _value(found["value"])
    if sign == "~":
        part = str(found["value"]).strip("\"'").lower()
        return lambda value: part in _text(value).lower()
    if sign in {"=", "=="}:
        return lambda value: _same(value, wanted)
    if sign == "!=":
        return lambda value: not _same(value, wanted)
    return _ordered(sign, wanted)


def _ordered(sign: str, wanted: Any) -> Callable[[Any], bool]:
    def test(value: Any) -> bool:
        both_numbers = _is_number(value) and _is_number(wanted)
        if not both_numbers and not (isinstance(value, str) and isinstance(wanted, str)):
            return False
        below, same = value < wanted, value == wanted
        return {"<": below, "<=": below or same, ">": not below and not same, ">=": not below}[sign]

    return test


def _value(text: str) -> Any:
    """Return a JSON value, or the unchanged text."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _same(value: Any, wanted: Any) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    return bool(value == wanted)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def searched(message: MessageExt, decoder: Decoder) -> bytes:
    """Return the JSON text of a body with a schema, else the body."""
    decoded = decoder.decode(message)
    return body_of(message) if decoded is None or decoded.misfit else decoded.text.encode()


def body_of(message: MessageExt) -> bytes:
    """Return the decompressed body, at most BODY_BYTES_MAX bytes.

    A body that fails to decompress, or decompresses to more than BODY_BYTES_MAX, stays compressed.
    """
    if not message.sys_flag & sysflag.COMPRESSED:
        return message.body[:BODY_BYTES_MAX]
    try:
        return decompress(message.body, message.sys_flag, BODY_BYTES_MAX)
    except ProtocolError:
        return message.body[:BODY_BYTES_MAX]
