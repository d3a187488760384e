"""filter/sql92: random expressions over random messages, against a plain evaluator.

The evaluator walks the expression as a tree of tuples and checks types at evaluation, like
RocketMQ; the evaluator shares no code with the compiler.
"""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.errors import FilterSyntaxError
from core_broker.filter.sql92 import compile_sql92

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1

#: ("literal", value, type) | ("property", name) | (operator, operands…)
Tree = tuple[Any, ...]

NAMES = st.sampled_from(["a", "b", "TAGS", "$c_1"])
NUMBERS = st.integers(0, 3) | st.sampled_from([INT_MAX, INT_MAX + 1, LONG_MAX])
TEXTS = st.sampled_from(["", "1", "2.5", "x", "it's", "true", "- 1"])
VALUES = TEXTS | st.sampled_from(["-1", "+2", "1e1", "TRUE", "99999999999", " 3 ", "NaN", "-0"])
MESSAGES = st.dictionaries(NAMES, VALUES)


def _number(number: int) -> Tree:
    return ("literal", number, "int" if number <= INT_MAX else "long")


PROPERTIES = NAMES.map(lambda name: ("property", name))
NUMERIC = NUMBERS.map(_number) | st.sampled_from([0.5, 2.0, 1e1]).map(
    lambda value: ("literal", value, "double")
)
STRINGS = TEXTS.map(lambda text: ("literal", text, "text"))
TRUTHS = st.booleans().map(lambda value: ("literal", value, "boolean"))


def _comparisons(conditions: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    ordered = PROPERTIES | NUMERIC | NUMERIC.map(lambda operand: ("-", operand))
    equal = st.sampled_from(["=", "<>"])
    return st.one_of(
        st.tuples(equal, PROPERTIES, st.one_of(PROPERTIES, NUMERIC, STRINGS, TRUTHS, conditions)),
        st.tuples(equal, st.one_of(NUMERIC, STRINGS, conditions), PROPERTIES),
        st.tuples(equal, conditions, conditions),
        st.tuples(equal, st.tuples(st.just("not"), conditions), NUMERIC),
        st.tuples(st.sampled_from(["<", "<=", ">", ">="]), ordered, ordered),
        st.tuples(st.just("not between"), ordered, ordered, ordered),
        st.tuples(st.sampled_from(["in", "not in"]), PROPERTIES, st.lists(TEXTS, min_size=1)),
        st.tuples(st.sampled_from(["null", "not null"]), PROPERTIES | NUMERIC | conditions),
    )


def _joined(conditions: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.one_of(
        _comparisons(conditions),
        st.tuples(st.just("not"), conditions),
        st.tuples(st.sampled_from(["and", "or"]), conditions, conditions),
    )


CONDITIONS = st.recursive(TRUTHS | _comparisons(TRUTHS), _joined, max_leaves=8)


def text_of(tree: Tree) -> str:
    match tree:
        case ("literal", value, kind):
            if kind == "text":
                return "'" + str(value).replace("'", "''") + "'"
            return str(value).upper()
        case ("property", name):
            return str(name)
        case ("not", operand):
            return f"NOT ({text_of(operand)})"
        case ("-", operand):
            return f"- {text_of(operand)}"
        case ("null" | "not null", operand):
            return f"({text_of(operand)}) IS {tree[0]}"
        case ("in" | "not in", operand, values):
            values_text = ", ".join(text_of(("literal", value, "text")) for value in values)
            return f"{text_of(operand)} {tree[0]} ({values_text})"
        case ("not between", value, low, high):
            return f"{text_of(value)} NOT BETWEEN {text_of(low)} AND {text_of(high)}"
    return f"({text_of(tree[1])}) {tree[0]} ({text_of(tree[2])})"


class Failure(Exception):
    """The evaluation failed: the message is not delivered."""


def value_of(tree: Tree, message: dict[str, str]) -> Any:
    """A typed value: (type, value), or None for unknown."""
    match tree:
        case ("literal", value, kind):
            return (kind, value)
        case ("property", name):
            return ("text", message[name]) if name in message else None
        case ("-", operand):
            kind, value = value_of(operand, message)
            return (kind, -value)
    answer = evaluate(tree, message)
    return None if answer is None else ("boolean", answer)


def evaluate(tree: Tree, message: dict[str, str]) -> bool | None:
    match tree:
        case ("literal", value, _):
            return bool(value)
        case ("and", left, right):
            return _and(left, right, message)
        case ("or", left, right):
            neither = _and(("not", left), ("not", right), message)
            return None if neither is None else not neither
        case ("not", operand):
            answer = evaluate(operand, message)
            return None if answer is None else not answer
        case ("null", operand):
            return value_of(operand, message) is None
        case ("in", operand, values):
            result = value_of(operand, message)
            return None if result is None else result[1] in values
        case ("=", left, right):
            return _equal(value_of(left, message), value_of(right, message))
        case ("not between", value, low, high):
            return evaluate(("or", ("<", value, low), (">", value, high)), message)
        case ("<>" | "not null" | "not in", *operands):
            straight = {"<>": "=", "not null": "null", "not in": "in"}[str(tree[0])]
            return evaluate(("not", (straight, *operands)), message)
    return _ordered(str(tree[0]), value_of(tree[1], message), value_of(tree[2], message))


def _and(left: Tree, right: Tree, message: dict[str, str]) -> bool | None:
    first = evaluate(left, message)
    if first is False:
        return False
    second = evaluate(right, message)
    if second is False:
        return False
    return None if first is None or second is None else True


def _equal(left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None if left is None and right is not None else left is None
    kinds = {left[0], right[0]}
    if left[0] == "boolean" and right[0] == "text":
        raise Failure
    if kinds == {"boolean", "text"}:
        return bool((str(left[1]).upper() == "TRUE") == right[1])
    if "boolean" in kinds and len(kinds) == 2:
        return False
    return bool(left == right) if kinds == {"text"} else _compare(left, right) == 0


def _ordered(symbol: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    sign = _compare(left, right)
    return {"<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0}[symbol]


def _compare(left: Any, right: Any) -> int:
    kinds = {left[0], right[0]}
    if kinds == {"boolean"}:
        return int(left[1]) - int(right[1])
    number = "double" if kinds <= {"text"} or "double" in kinds else min(kinds - {"text"})
    one, other = (
        _read(value, number) if kind == "text" else value for kind, value in (left, right)
    )
    if one != one or other != other:  # NaN is above everything, and equal to itself
        return int(one != one) - int(other != other)
    if one == other == 0 and number == "double":
        return (0 if str(one).startswith("-") else 1) - (0 if str(other).startswith("-") else 1)
    return int(one > other) - int(one < other)


def _read(text: str, kind: str) -> float:
    if kind == "double":
        if re.fullmatch(r"[+-]?(\d+(\.\d+)?(e\d+)?|NaN)", text.strip()) is None:
            raise Failure
        return float(text)
    if re.fullmatch(r"[+-]?\d+", text) is None or abs(int(text)) > (
        INT_MAX if kind == "int" else LONG_MAX
    ):
        raise Failure
    return int(text)


@given(CONDITIONS, st.lists(MESSAGES, min_size=1, max_size=5))
def test_the_compiled_filter_says_what_the_evaluator_says(
    tree: Tree, messages: list[dict[str, str]]
) -> None:
    compiled = compile_sql92(text_of(tree))
    for message in messages:
        try:
            expected = evaluate(tree, message)
        except Failure:
            expected = None
        assert compiled.matches(message) is expected, (compiled.expression, message)


@given(CONDITIONS, st.data())
def test_a_broken_expression_is_refused_with_a_place(tree: Tree, data: st.DataObject) -> None:
    whole = text_of(tree)
    places = [at for at in range(len(whole) + 1) if whole[:at].count("'") % 2 == 0]
    at = data.draw(st.sampled_from(places))
    broken = whole[:at] + data.draw(st.sampled_from([" ; ", " ! ", ' " ', " . "])) + whole[at:]
    with pytest.raises(FilterSyntaxError, match=r" at line \d+, column \d+\.$") as caught:
        compile_sql92(broken)
    assert 0 <= caught.value.position <= len(broken)


@given(st.text(max_size=60) | st.text("ab01.'()=<>-+,/* \nNOTINSULBEWAR", max_size=60))
def test_any_text_compiles_or_is_refused(text: str) -> None:
    try:
        compiled = compile_sql92(text)
    except FilterSyntaxError:
        return
    assert compiled.matches({"a": "1", "N": "x"}) in {True, False, None}
