"""Compilation of nodes to a function of a message's properties.

Each node becomes one closure, chosen by the static types of the operands, so filtering needs no
type checks. No part of the text is evaluated as Python.

    equal       both sides unknown: true; only the left side: unknown; only the right side: false
    by order    either side unknown: unknown; two strings are compared as numbers
    AND, OR     from left to right, with short-circuit evaluation
    failure     a text where a number is needed: the message is not delivered

The rules are RocketMQ's, including oddities: clients may rely on any rule.
"""

import operator
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from core_broker.filter.sql92.parser import parse
from core_broker.filter.sql92.syntax import (
    AllOf,
    AnyOf,
    Condition,
    Equality,
    IsNull,
    Kind,
    Literal,
    Membership,
    Negation,
    Node,
    Not,
    Order,
    Property,
    Truth,
    children,
)
from core_broker.filter.sql92.values import (
    Incomparable,
    boolean_of,
    double_of,
    int_of,
    long_of,
    rank,
)

Properties = Mapping[str, str]
#: The value of a node for one message; None is unknown.
Evaluate = Callable[[Properties], Any]
Convert = Callable[[Any], Any]

_TESTS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class _Type(Enum):
    """The type of a closure's results other than None."""

    TEXT = "text"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    #: Always None.
    NOTHING = "nothing"


_TYPES = {
    Kind.STRING: _Type.TEXT,
    Kind.INT: _Type.INT,
    Kind.LONG: _Type.LONG,
    Kind.DOUBLE: _Type.DOUBLE,
    Kind.BOOLEAN: _Type.BOOLEAN,
    Kind.NULL: _Type.NOTHING,
}
_WHOLE: dict[_Type, Convert] = {_Type.INT: int_of, _Type.LONG: long_of}
_NUMBERS = {_Type.INT, _Type.LONG, _Type.DOUBLE}


class _Value(NamedTuple):
    type: _Type
    evaluate: Evaluate


class Sql92Filter:
    """A compiled expression."""

    __slots__ = ("_evaluate", "expression", "steps")

    def __init__(self, expression: str, evaluate: Evaluate, steps: int) -> None:
        self.expression = expression
        #: Maximum cost of one message, nodes.
        self.steps = steps
        self._evaluate = evaluate

    def matches(self, properties: Properties) -> bool | None:
        """Evaluate the expression: True delivers the message; None is unknown or a failure."""
        try:
            result: bool | None = self._evaluate(properties)
        except Incomparable:
            return None
        return result


def compile_sql92(expression: str) -> Sql92Filter:
    """Compile an expression; raises FilterSyntaxError with the position of the error."""
    root = parse(expression)
    return Sql92Filter(expression, _value(root).evaluate, _count(root))


def _count(root: Node) -> int:
    pending, count = [root], 0
    while pending:
        pending += children(pending.pop())
        count += 1
    return count


def _value(node: Node) -> _Value:
    match node:
        case Literal(kind=kind, value=constant):
            return _Value(_TYPES[kind], lambda _: constant)
        case Property(name=name):
            return _Value(_Type.TEXT, lambda properties: properties.get(name))
        case Negation(operand=operand):
            return _negated(_value(operand))
    assert isinstance(node, Condition)
    return _Value(_Type.BOOLEAN, _condition(node))


def _condition(node: Condition) -> Evaluate:
    match node:
        case AllOf(parts=parts):
            return _all_of([_value(part).evaluate for part in parts])
        case AnyOf(parts=parts):
            return _any_of([_value(part).evaluate for part in parts])
        case Not(operand=operand):
            return _not(_value(operand).evaluate)
        case Equality(left=left, right=right):
            return _equality(_value(left), _value(right))
        case Order(symbol=symbol, left=left, right=right):
            return _order(_TESTS[symbol], _value(left), _value(right))
        case IsNull(operand=operand):
            return _is_null(_value(operand).evaluate)
        case Membership(operand=operand, values=values):
            return _membership(operand.name, values)
        case Truth(operand=operand):
            return _truth(operand.name)
    raise AssertionError(node)


# -- conditions --


def _all_of(parts: list[Evaluate]) -> Evaluate:
    def evaluate(properties: Properties) -> bool | None:
        result: bool | None = True
        for part in parts:
            value = part(properties)
            if value is None:
                result = None
            elif not value:
                return False
        return result

    return evaluate


def _any_of(parts: list[Evaluate]) -> Evaluate:
    def evaluate(properties: Properties) -> bool | None:
        result: bool | None = False
        for part in parts:
            value = part(properties)
            if value is None:
                result = None
            elif value:
                return True
        return result

    return evaluate


def _not(operand: Evaluate) -> Evaluate:
    def evaluate(properties: Properties) -> bool | None:
        value = operand(properties)
        return None if value is None else not value

    return evaluate


def _is_null(operand: Evaluate) -> Evaluate:
    return lambda properties: operand(properties) is None


def _membership(name: str, values: frozenset[str]) -> Evaluate:
    def evaluate(properties: Properties) -> bool | None:
        value = properties.get(name)
        return None if value is None else value in values

    return evaluate


def _truth(name: str) -> Evaluate:
    return lambda properties: False if name in properties else None


def _negated(operand: _Value) -> _Value:
    evaluate = operand.evaluate
    if operand.type in _NUMBERS:
        # Only literals are numbers, so the value is constant. The literal's text decides between
        # int and long.
        constant = -evaluate({})
        return _Value(operand.type, lambda _: constant)

    def nothing(properties: Properties) -> None:
        # A failure of the operand fails the expression.
        evaluate(properties)

    return _Value(_Type.NOTHING, nothing)


# -- comparisons --


def _equality(left: _Value, right: _Value) -> Evaluate:
    left_of, right_of = left.evaluate, right.evaluate
    to_left, to_right = _converters(left.type, right.type)

    def evaluate(properties: Properties) -> bool | None:
        left_value, right_value = left_of(properties), right_of(properties)
        if left_value is None:
            return True if right_value is None else None
        if right_value is None:
            return False
        return bool(to_left(left_value) == to_right(right_value))

    return evaluate


def _order(test: Callable[[Any, Any], bool], left: _Value, right: _Value) -> Evaluate:
    left_of, right_of = left.evaluate, right.evaluate
    if left.type is right.type is _Type.TEXT:
        converters: tuple[Convert, Convert] = (_text_rank, _text_rank)
    else:
        converters = _converters(left.type, right.type)
    to_left, to_right = converters

    def evaluate(properties: Properties) -> bool | None:
        left_value = left_of(properties)
        if left_value is None:
            return None
        right_value = right_of(properties)
        if right_value is None:
            return None
        return test(to_left(left_value), to_right(right_value))

    return evaluate


def _converters(left: _Type, right: _Type) -> tuple[Convert, Convert]:
    """Converters to comparable values; for operands never equal, converters to unequal values."""
    types = {left, right}
    if left is right or _Type.NOTHING in types:
        return (rank, rank) if left is right is _Type.DOUBLE else (_same, _same)
    if left is _Type.BOOLEAN and right is _Type.TEXT:
        # Java casts the wrong operand and fails.
        return _fail, _fail
    if left is _Type.TEXT and right is _Type.BOOLEAN:
        return boolean_of, _same
    if _Type.BOOLEAN in types:
        return _one, _other
    if _Type.DOUBLE in types:
        return _to_double(left), _to_double(right)
    # A string and a whole number, or two whole numbers.
    return (
        _WHOLE.get(right, _same) if left is _Type.TEXT else _same,
        _WHOLE.get(left, _same) if right is _Type.TEXT else _same,
    )


def _to_double(kind: _Type) -> Convert:
    return _text_rank if kind is _Type.TEXT else _number_rank


def _text_rank(text: str) -> int:
    return rank(double_of(text))


def _number_rank(number: int | float) -> int:
    return rank(float(number))


def _same(value: Any) -> Any:
    return value


def _one(_value: Any) -> int:
    return 1


def _other(_value: Any) -> int:
    return 2


def _fail(value: Any) -> Any:
    raise Incomparable(value)
