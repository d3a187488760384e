"""filter/sql92: the language case by case, and recorded results of a Java broker's filter."""

import json
from pathlib import Path
from typing import Any

import pytest

from core_broker.errors import FilterSyntaxError
from core_broker.filter.sql92 import EXPRESSION_CHARS_MAX, NESTING_MAX, compile_sql92

#: Expressions with the result for several messages, recorded from RocketMQ 4.9.7's SelectorParser.
#: SYNTAX: refused; ERROR: an exception while filtering, so the message is not delivered.
JAVA = [
    json.loads(line)
    for line in (Path(__file__).parent / "golden" / "sql92.jsonl").read_text().splitlines()
]


def outcome(expression: str, **properties: str) -> bool | None:
    return compile_sql92(expression).matches(properties)


@pytest.mark.parametrize(("expression", "expected"), JAVA, ids=[row[0] for row in JAVA])
def test_what_java_answers(expression: str, expected: Any) -> None:
    if expected == "SYNTAX":
        with pytest.raises(FilterSyntaxError):
            compile_sql92(expression)
        return
    compiled = compile_sql92(expression)
    for properties, java in expected:
        answered = None if java == "ERROR" else java
        assert compiled.matches(properties) is answered, properties


@pytest.mark.parametrize(
    ("expression", "properties", "expected"),
    [
        ("a=3 and b<>4 And c>5 AND d<=4", {"a": "3", "b": "5", "c": "6", "d": "1"}, True),
        ("a=3 and b<>4 And c>5 AND d<=4", {"a": "4", "b": "5", "c": "6", "d": "1"}, False),
        ("a=3 or b<>4 Or c>5 OR d<=4", {"a": "4", "b": "4", "c": "3", "d": "2"}, True),
        ("a=3 or b<>4 Or c>5 OR d<=4", {"a": "4", "b": "4", "c": "3", "d": "10"}, False),
        ("(a not in ('6', '4', '5')) or (b in ('3', '4', '5'))", {"a": "4", "b": "3"}, True),
        ("a not between 2 and 10", {"a": "11"}, True),
        ("a not between 2 and 10", {"a": "3"}, False),
        ("a is not null and a='hello'", {"a": "hello"}, True),
        ("a is not null and a='hello'", {}, False),
        ("a=TRUE OR b=FALSE", {"a": "true", "b": "false"}, True),
        ("a=TRUE OR b=FALSE", {"a": "false", "b": "true"}, False),
        ("TAGS is not null and TAGS='''''tag'''''", {"TAGS": "''tag''"}, True),
        ("a > 3.1E10", {"a": "3.1415E10"}, True),
        ("a > b", {"a": "9", "b": "10"}, False),
        ("a between up and low", {"a": "3.14", "up": "up", "low": "low"}, None),
        ("key is not null and key between 0 and 100", {"key": "con"}, None),
        ("a = 'x' /* of any\nlength */ AND -- and more\n b = 1", {"a": "x", "b": "1"}, True),
        ("a = 1 -- at the end", {"a": "1"}, True),
        ("größe IS NULL", {}, FilterSyntaxError),
        ("a = 'größe'", {"a": "größe"}, True),
        ("A = 1", {"a": "1"}, None),
        ("a > 5", {"a": "3000000000"}, None),
        ("a > 5L", {"a": "3000000000"}, None),
        ("a > 2147483648", {"a": "3000000000"}, True),
        ("a = 1 OR b = 1", {"a": "no number", "b": "1"}, None),
        ("b = 1 OR a = 1", {"a": "no number", "b": "1"}, True),
    ],
)
def test_cases(expression: str, properties: dict[str, str], expected: bool | type | None) -> None:
    if expected is FilterSyntaxError:
        with pytest.raises(FilterSyntaxError):
            compile_sql92(expression)
    else:
        assert outcome(expression, **properties) is expected


@pytest.mark.parametrize(
    ("expression", "position"),
    [
        ("", 0),
        ("   ", 3),
        ("a and between 2 and 10", 6),
        ("a >", 3),
        ("a > 'x'", 4),
        ("a BETWEEN 10 AND 0", 10),
        ("a > 100000000000000000000000", 4),
        ("a > 1" + "1" * 400 + ".5", 4),
        ("a = 1 AND (b = 2", 16),
        ("a = 1)", 5),
        ("a LIKE 'x%'", 2),
        ("a = 1 b = 2", 6),
        ('a = "x"', 4),
        ("a = 'x", 4),
        ("a /* = 1", 2),
        ("a.b = 1", 1),
        ("a = 1\nAND\n b ! 2", 13),
        ("a\0= 1", 1),
        ("a = NULL", 4),
        ("1 IN ('1')", 0),
        ("a IN (1)", 6),
        ("a AND 'x'", 6),
        ("TRUE = 1", 7),
    ],
)
def test_syntax_errors_have_a_position(expression: str, position: int) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        compile_sql92(expression)
    assert caught.value.position == position
    before = expression[:position].split("\n")
    assert str(caught.value).endswith(f" at line {len(before)}, column {len(before[-1]) + 1}.")


def test_an_expression_may_be_long() -> None:
    names = [f"'name-{number}'" for number in range(2_000)]
    expression = f"a IN ({','.join(names)})"
    assert len(expression) < EXPRESSION_CHARS_MAX
    assert outcome(expression, a="name-1999") is True
    chain = " OR ".join(f"a={number}" for number in range(1_300))
    assert outcome(chain, a="1299") is True
    assert compile_sql92(chain).steps == 3_901


@pytest.mark.parametrize(
    "expression",
    [
        "a = 1" + " " * EXPRESSION_CHARS_MAX,
        "(" * 32_000,
        "(" * 10_000 + "a" + ")" * 10_000,
        "NOT " * 8_000 + "a",
        "- " * 15_000 + "1 = 1",
        "+" * 32_000,
        "a" + " = a" * 8_000,
        "a" + " IS NULL" * 4_000,
        "(a" + " IS NULL) IS NULL" * NESTING_MAX,
        " OR ".join(["a = 1"] * 3_000),
        " OR ".join(["NOT a"] * 3_000),
        "a" + " AND a" * 5_000,
        "'" * 32_767,
        "/*" * 16_000,
        "9" * 32_000 + " = a",
        "a = 1e" + "9" * 32_000,
        "\0" * 32_000,
        "é" * 32_000,
        "\ud800 = 1",
    ],
)
def test_bombs_are_refused(expression: str) -> None:
    with pytest.raises(FilterSyntaxError):
        compile_sql92(expression)


def test_nesting_up_to_the_limit() -> None:
    depth = NESTING_MAX - 2
    assert outcome("(" * depth + "a = 1" + ")" * depth, a="1") is True
    with pytest.raises(FilterSyntaxError, match="nesting"):
        compile_sql92("(" * (NESTING_MAX + 1) + "a = 1" + ")" * (NESTING_MAX + 1))


@pytest.mark.parametrize("value", ["", "9" * 32_000, "1_000", "1\0", "٣", "0x", "1e", "nan", "inf"])
def test_odd_texts_of_properties(value: str) -> None:
    for expression in ("a > 1", "a = 1.5", "a = TRUE", "a > b", "a = 2147483648"):
        assert outcome(expression, a=value, b="1") in {True, False, None}
