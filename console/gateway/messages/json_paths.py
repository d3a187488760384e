"""Paths in JSON documents: `$.order.items[*].card`, `$["a name"][0]`, `$..card`. Pure.

`[*]` and `.*` are all children. `..name` finds members of the name at any depth. A document for
changes keeps what JSON has and Python's dict loses: digits of numbers, order of members, repeated
names.
"""

import json
import re
from enum import Enum
from typing import Any, Final

PATH_STEPS_MAX: Final = 32
#: Maximum depth of a document for changes.
DEPTH_MAX: Final = 100
_STEP = re.compile(
    r"""(?P<all>\[\*\]|\.\*(?![^\s.\[\]=!<>~"']))|(?P<deep>\.)?\.(?P<name>[^\s.\[\]=!<>~"']+)|\[(?P<index>[0-9]{1,9})\]"""
    r"""|\["(?P<quoted>[^"]*)"\]|\['(?P<single>[^']*)'\]"""
)


class Every(Enum):
    """The step `[*]` or `.*`: all elements of an array, all members of an object."""

    CHILD = "*"


class Deep(str):
    """The step `..name`: members of the name at any depth."""

    __slots__ = ()


class Number(str):
    """The literal text of a number."""

    __slots__ = ()


class Members(list[list[Any]]):
    """The members of an object, each as [name, value]."""

    __slots__ = ()


Step = str | int | Every | Deep


def read_path(text: str) -> tuple[tuple[Step, ...], str]:
    """Return the steps of a path that begins the text, and the rest of the text.

    Raises ValueError for a text without `$`, and for a path of more than PATH_STEPS_MAX steps.
    """
    if not text.startswith("$"):
        raise ValueError("no path")
    at, steps = 1, list[Step]()
    while step := _STEP.match(text, at):
        names = (step["name"], step["quoted"], step["single"])
        name = next((each for each in names if each is not None), "")
        index = step["index"]
        if step["all"]:
            steps.append(Every.CHILD)
        elif index is not None:
            steps.append(int(index))
        else:
            steps.append(Deep(name) if step["deep"] else name)
        at = step.end()
    if len(steps) > PATH_STEPS_MAX:
        raise ValueError("too many steps")
    return tuple(steps), text[at:]


def found(document: Any, steps: tuple[Step, ...]) -> list[Any]:
    """Return the values at a path of a document of plain dicts and lists."""
    values = [document]
    for step in steps:
        following: list[Any] = []
        for value in values:
            if isinstance(step, Every):
                following += value if isinstance(value, list) else ()
                following += value.values() if isinstance(value, dict) else ()
            elif isinstance(step, Deep):
                following += _named_below(value, step)
            elif isinstance(step, int):
                following += value[step : step + 1] if isinstance(value, list) else ()
            elif isinstance(value, dict) and step in value:
                following.append(value[step])
        values = following
    return values


def _named_below(value: Any, name: str) -> list[Any]:
    named, level = [], [value]
    while level:
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                named += [each[name]] if name in each else []
                below += each.values()
            elif isinstance(each, list):
                below += each
        level = below
    return named


def parse(text: str) -> Any:
    """Parse a document for changes; raises ValueError for invalid JSON and beyond DEPTH_MAX."""
    try:
        document = json.loads(
            text,
            object_pairs_hook=lambda pairs: Members([name, value] for name, value in pairs),
            parse_float=Number,
            parse_int=Number,
            parse_constant=_refuse,
        )
        _check_depth(document)
    except RecursionError as fault:
        raise ValueError("nested too deep") from fault
    return document


def written(document: Any) -> str:
    """Return the compact text of a document for changes; unpaired surrogates are escaped."""
    if isinstance(document, Members):
        inner = (f"{_quoted(name)}:{written(value)}" for name, value in document)
        return "{" + ",".join(inner) + "}"
    if isinstance(document, list):
        return "[" + ",".join(map(written, document)) + "]"
    if isinstance(document, Number):
        return str(document)
    return _quoted(document)


def replaced(document: Any, steps: tuple[Step, ...], text: str) -> tuple[Any, int]:
    """Replace the values at a path by a text, in place; return the document and the count."""
    if not steps:
        return text, 1
    step, rest = steps[0], steps[1:]
    count = 0
    for holder, key, name in _children(document):
        if isinstance(step, Deep) and name != step:
            holder[key], changed = replaced(holder[key], steps, text)
        elif isinstance(step, Deep) or _leads_to(step, name):
            holder[key], changed = replaced(holder[key], rest, text)
            if isinstance(step, Deep) and rest:
                holder[key], deeper = replaced(holder[key], steps, text)
                changed += deeper
        else:
            continue
        count += changed
    return document, count


def _children(node: Any) -> list[tuple[Any, int, str | int]]:
    """Return the places of the children of a node: holder, index in the holder, name or index."""
    if isinstance(node, Members):
        return [(pair, 1, pair[0]) for pair in node]
    if isinstance(node, list):
        return [(node, at, at) for at in range(len(node))]
    return []


def _leads_to(step: Step, name: str | int) -> bool:
    return isinstance(step, Every) or (type(step) is type(name) and step == name)


def _quoted(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode()


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _check_depth(document: Any) -> None:
    level, depth = [document], 0
    while level:
        depth += 1
        if depth > DEPTH_MAX:
            raise ValueError("nested too deep")
        level = [holder[key] for node in level for holder, key, _name in _children(node)]
