"""The parser: builds the nodes of an expression from tokens.

    or          and (OR and)*
    and         equality (AND equality)*
    equality    comparison (= comparison | <> comparison | IS [NOT] NULL)*
    comparison  unary (> unary | >= unary | < unary | <= unary
                      | [NOT] BETWEEN unary AND unary | [NOT] IN '(' string (',' string)* ')')*
    unary       (+ | - | NOT)* primary
    primary     string | integer | decimal | TRUE | FALSE | NULL | name | '(' or ')'

The parser refuses comparisons of incomparable operands. Compatible with RocketMQ 4.9.8's
SelectorParser.jj and the create methods of ComparisonExpression; NOT binds more tightly than a
comparison: NOT a = 1 is (NOT a) = 1.
"""

import math

from core_broker.errors import FilterSyntaxError
from core_broker.filter.sql92.lexer import DECIMAL, END, INTEGER, NAME, STRING, Token, tokens
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
)
from core_broker.filter.sql92.values import INT_MAX, LONG_MAX

#: Maximum nesting, levels: parentheses, signs, and comparisons of comparisons.
NESTING_MAX = 64
#: Maximum size of an expression, nodes: properties, constants, comparisons, AND and OR chains; the
#: strings of IN lists do not count.
NODES_MAX = 4_000

_LONG_DIGITS = 19
_SHOWN_CHARS_MAX = 40
_CONSTANTS = {
    "TRUE": (Kind.BOOLEAN, True),
    "FALSE": (Kind.BOOLEAN, False),
    "NULL": (Kind.NULL, None),
}
_NAMES = {END: "the end", STRING: "a string in quotes", INTEGER: "a number", NAME: "a name"}


def parse(expression: str) -> Node:
    """Parse an expression to a condition; raises FilterSyntaxError."""
    return _Parser(expression).parse()


class _Parser:
    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._tokens = tokens(expression)
        self._index = 0
        self._nesting = 0
        self._nodes = 0

    def parse(self) -> Node:
        condition = self._condition(self._or())
        self._expect(END)
        return condition

    # -- the grammar --

    def _or(self) -> Node:
        parts = [self._and()]
        while self._take("OR"):
            parts.append(self._and())
        if len(parts) == 1:
            return parts[0]
        return self._checked(AnyOf(parts[0].at, tuple(map(self._condition, parts))))

    def _and(self) -> Node:
        parts = [self._equality()]
        while self._take("AND"):
            parts.append(self._equality())
        if len(parts) == 1:
            return parts[0]
        return self._checked(AllOf(parts[0].at, tuple(map(self._condition, parts))))

    def _equality(self) -> Node:
        left = self._comparison()
        while True:
            if self._take("="):
                left = self._equal(left, self._comparison())
            elif self._take("<>"):
                left = self._not(self._equal(left, self._comparison()))
            elif self._take("IS"):
                is_not = self._take("NOT") is not None
                self._expect("NULL")
                left = self._checked(IsNull(left.at, left))
                left = self._not(left) if is_not else left
            else:
                return left

    def _comparison(self) -> Node:
        left = self._unary()
        while True:
            token = self._tokens[self._index]
            if token.kind in {"<", "<=", ">", ">="}:
                self._index += 1
                left = self._order(token.kind, left, self._unary())
            elif token.kind == "NOT":
                self._index += 1
                left = self._between_or_in(left, is_not=True)
            elif token.kind in {"BETWEEN", "IN"}:
                left = self._between_or_in(left, is_not=False)
            else:
                return left

    def _between_or_in(self, left: Node, *, is_not: bool) -> Node:
        if self._take("BETWEEN"):
            low = self._unary()
            self._expect("AND")
            return self._between(left, low, self._unary(), is_not=is_not)
        if not self._take("IN"):
            raise self._unexpected("BETWEEN or IN" if is_not else "IN")
        self._expect("(")
        values = {_unquoted(self._expect(STRING))}
        while self._take(","):
            values.add(_unquoted(self._expect(STRING)))
        self._expect(")")
        if not isinstance(left, Property):
            raise self._error("Only a property can be IN a list", left.at)
        membership = self._checked(Membership(left.at, left, frozenset(values)))
        return self._not(membership) if is_not else membership

    def _unary(self) -> Node:
        token = self._tokens[self._index]
        if token.kind not in {"+", "-", "NOT"}:
            return self._primary(token)
        self._index += 1
        self._enter(token)
        operand = self._unary()
        self._nesting -= 1
        if token.kind == "-":
            return self._checked(Negation(token.at, operand))
        return self._not(self._condition(operand)) if token.kind == "NOT" else operand

    def _primary(self, token: Token) -> Node:
        self._count(token.at)
        self._index += 1
        if token.kind == "(":
            self._enter(token)
            inside = self._or()
            self._nesting -= 1
            self._expect(")")
            return inside
        if token.kind == NAME:
            return Property(token.at, token.text)
        if token.kind == STRING:
            return Literal(token.at, Kind.STRING, _unquoted(token), token.text)
        if token.kind == INTEGER:
            return self._integer(token)
        if token.kind == DECIMAL:
            return self._decimal(token)
        if token.kind in _CONSTANTS:
            return Literal(token.at, *_CONSTANTS[token.kind], token.kind)
        self._index -= 1
        raise self._unexpected("a value")

    # -- literals --

    def _integer(self, token: Token) -> Literal:
        digits = token.text.rstrip("lL")
        value = int(digits) if len(digits) <= _LONG_DIGITS else LONG_MAX + 1
        if value > LONG_MAX:
            raise self._error(f"{_short(token.text)} is greater than {LONG_MAX}", token.at)
        kind = Kind.INT if value <= INT_MAX else Kind.LONG
        return Literal(token.at, kind, value, token.text)

    def _decimal(self, token: Token) -> Literal:
        value = float(token.text)
        if math.isinf(value):
            raise self._error(
                f"{_short(token.text)} is greater than 1.7976931348623157E308", token.at
            )
        if value == 0:
            # RocketMQ compares with Double.MIN_VALUE as the smallest double, and so refuses 0.0.
            raise self._error(f"{_short(token.text)} is less than 4.9E-324", token.at)
        return Literal(token.at, Kind.DOUBLE, value, token.text)

    # -- the checks --

    def _condition(self, node: Node) -> Node:
        """Convert a node in the position of a condition; raises FilterSyntaxError."""
        if isinstance(node, Property):
            return self._checked(Truth(node.at, node))
        if isinstance(node, Condition) or _is_literal(node, Kind.BOOLEAN, Kind.NULL):
            return node
        raise self._error("Expression will not result in a boolean value", node.at)

    def _equal(self, left: Node, right: Node) -> Node:
        for operand in (left, right):
            if _is_literal(operand, Kind.NULL):
                raise self._error("NULL cannot be compared; write IS NULL", operand.at)
        if (
            _is_literal(left, Kind.BOOLEAN)
            and isinstance(right, Literal)
            and right.kind is not Kind.BOOLEAN
        ):
            raise self._error(
                f"A truth value cannot be compared with {_short(right.text)}", right.at
            )
        return self._checked(Equality(left.at, left, right))

    def _order(self, symbol: str, left: Node, right: Node) -> Node:
        for operand in (left, right):
            if isinstance(operand, Literal):
                if not operand.is_number:
                    raise self._error(
                        f"{_short(operand.text)} cannot be compared by order", operand.at
                    )
            elif isinstance(operand, Condition):
                raise self._error("A condition cannot be compared by order", operand.at)
        return self._checked(Order(left.at, symbol, left, right))

    def _between(self, value: Node, low: Node, high: Node, *, is_not: bool) -> Node:
        if is_not:
            outside = (self._order("<", value, low), self._order(">", value, high))
            return self._checked(AnyOf(value.at, outside))
        inside = (self._order(">=", value, low), self._order("<=", value, high))
        if isinstance(low, Literal) and isinstance(high, Literal) and _number(high) < _number(low):
            raise self._error(
                f"BETWEEN needs the smaller value first: {_short(low.text)} is greater than "
                f"{_short(high.text)}",
                low.at,
            )
        return self._checked(AllOf(value.at, inside))

    def _not(self, operand: Node) -> Node:
        return self._checked(Not(operand.at, operand))

    def _count(self, at: int) -> None:
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise self._error(f"More than {NODES_MAX} parts", at)

    def _checked(self, node: Node) -> Node:
        self._count(node.at)
        if node.depth > NESTING_MAX:
            raise self._error(f"More than {NESTING_MAX} levels of nesting", node.at)
        return node

    # -- words --

    def _enter(self, token: Token) -> None:
        self._nesting += 1
        if self._nesting > NESTING_MAX:
            raise self._error(f"More than {NESTING_MAX} levels of nesting", token.at)

    def _take(self, kind: str) -> Token | None:
        token = self._tokens[self._index]
        if token.kind != kind:
            return None
        self._index += 1
        return token

    def _expect(self, kind: str) -> Token:
        token = self._take(kind)
        if token is None:
            raise self._unexpected(_NAMES.get(kind, kind))
        return token

    def _unexpected(self, expected: str) -> FilterSyntaxError:
        token = self._tokens[self._index]
        return self._error(
            f'Encountered "{_short(token.text)}" where {expected} is expected', token.at
        )

    def _error(self, message: str, at: int) -> FilterSyntaxError:
        return FilterSyntaxError(message, self._expression, at)


def _is_literal(node: Node, *kinds: Kind) -> bool:
    return isinstance(node, Literal) and node.kind in kinds


def _number(literal: Literal) -> float:
    assert isinstance(literal.value, int | float)
    return literal.value


def _unquoted(token: Token) -> str:
    return token.text[1:-1].replace("''", "'")


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"
