"""A JSON document as a folding tree: nested <details> elements, without scripts.

The tree is lossless: numbers keep their digits, members keep their order, and duplicate names are
kept. Nodes beyond NODES_MAX are counted and not shown.
"""

import json
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import ngettext

NODES_MAX = 2_000
DEPTH_MAX = 40
#: Initially open levels.
OPEN_LEVELS = 3
VALUE_CHARS_MAX = 4_000


class Literal(str):
    """The literal text of a number."""

    __slots__ = ()


class Members(tuple[tuple[str, Any], ...]):
    """The members of an object, in order, with repeated names."""

    __slots__ = ()


def parse(text: str) -> Any:
    """Parse a document; raises ValueError for invalid JSON and for nesting beyond DEPTH_MAX."""
    try:
        document = json.loads(
            text,
            object_pairs_hook=Members,
            parse_float=Literal,
            parse_int=Literal,
            parse_constant=_refuse,
        )
    except RecursionError as fault:
        raise ValueError("nested too deep") from fault
    if _depth(document) > DEPTH_MAX:
        raise ValueError("nested too deep")
    return document


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _depth(document: Any) -> int:
    depth, level = 0, [document]
    while level:
        depth += 1
        level = [
            value for node in level if isinstance(node, Members | list) for value in _values(node)
        ]
    return depth


def _values(node: Any) -> list[Any]:
    return [value for _name, value in node] if isinstance(node, Members) else list(node)


@dataclass(slots=True)
class _Budget:
    left: int


def draw(document: Any) -> tuple[SafeString, bool]:
    """The tree as HTML; the flag is True when nodes were omitted."""
    budget = _Budget(NODES_MAX)
    drawn = format_html('<ul class="tree"><li>{}</li></ul>', _node(document, "", 0, budget))
    return drawn, budget.left <= 0


def _node(value: Any, name: SafeString | str, level: int, budget: _Budget) -> SafeString:
    budget.left -= 1
    if not isinstance(value, Members | list) or not value:
        return format_html("{}{}", name, _leaf(value))
    is_object = isinstance(value, Members)
    brackets = "{}" if is_object else "[]"
    shown, hidden = [], 0
    for number, item in enumerate(value):
        if budget.left <= 0:
            hidden = len(value) - number
            break
        key, inner = item if is_object else (str(number), item)
        label = format_html(
            '<span class="{}">{}</span>: ', "key" if is_object else "index", _cut(key)
        )
        shown.append((_node(inner, label, level + 1, budget),))
    more = ngettext("{count} more is not shown", "{count} more are not shown", hidden)
    rest = format_html('<li class="more">… {}</li>', more.format(count=hidden)) if hidden else ""
    return format_html(
        '<details{}><summary>{}{}<span class="size">{}</span>{}</summary><ul>{}{}</ul></details>',
        mark_safe(" open") if level < OPEN_LEVELS else "",
        name,
        brackets[0],
        len(value),
        brackets[1],
        format_html_join("", "<li>{}</li>", shown),
        rest,
    )


def _leaf(value: Any) -> SafeString:
    if isinstance(value, Literal):
        return format_html('<span class="number">{}</span>', _cut(value))
    if isinstance(value, str):
        return format_html('<span class="string">"{}"</span>', _cut(value))
    if isinstance(value, bool):
        return format_html('<span class="boolean">{}</span>', "true" if value else "false")
    if value is None:
        return format_html('<span class="null">{}</span>', "null")
    return format_html("{}", "{}" if isinstance(value, Members) else "[]")


def _cut(text: str) -> str:
    """The text cut to VALUE_CHARS_MAX. Unpaired surrogates are escaped: UTF-8 lacks a code."""
    kept = text if len(text) <= VALUE_CHARS_MAX else f"{text[:VALUE_CHARS_MAX]}…"
    return kept.encode("utf-8", "backslashreplace").decode()
