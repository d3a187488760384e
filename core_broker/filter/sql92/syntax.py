"""The nodes of a parsed filter expression.

Every node has its position in the text, for error messages, and the depth of its subtree. A chain
of ANDs or ORs is one node.
"""

from dataclasses import dataclass, field
from enum import Enum


class Kind(Enum):
    """The type of a literal in RocketMQ; numbers have Java's types."""

    STRING = "string"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    NULL = "null"


NUMBERS = frozenset({Kind.INT, Kind.LONG, Kind.DOUBLE})


@dataclass(frozen=True, slots=True)
class Node:
    """Any part of an expression."""

    at: int
    #: Depth of the subtree, nodes, including the node.
    depth: int = field(init=False, default=1, kw_only=True)

    def __post_init__(self) -> None:
        depth = 1 + max((child.depth for child in children(self)), default=0)
        object.__setattr__(self, "depth", depth)


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant, with its text for error messages."""

    kind: Kind
    value: str | int | float | bool | None
    text: str

    @property
    def is_number(self) -> bool:
        """True for the three kinds of numbers."""
        return self.kind in NUMBERS


@dataclass(frozen=True, slots=True)
class Property(Node):
    """The value of a message's property, a string; unknown for a missing property."""

    name: str


@dataclass(frozen=True, slots=True)
class Negation(Node):
    """A minus sign; unknown for operands other than numbers."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Condition(Node):
    """A part that is true, false or unknown."""


@dataclass(frozen=True, slots=True)
class Truth(Condition):
    """A property in the position of a condition: false for an existing property, else unknown."""

    operand: Property


@dataclass(frozen=True, slots=True)
class Not(Condition):
    """The negated operand; unknown stays unknown."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Equality(Condition):
    """left = right."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Order(Condition):
    """left < right, or one of <=, > and >=."""

    symbol: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class IsNull(Condition):
    """operand IS NULL."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Membership(Condition):
    """A property IN a list of strings; unknown without the property."""

    operand: Property
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class AllOf(Condition):
    """Conditions joined by AND."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AnyOf(Condition):
    """Conditions joined by OR."""

    parts: tuple[Node, ...]


def children(node: Node) -> tuple[Node, ...]:
    """The direct children of a node."""
    match node:
        case Equality(left=left, right=right) | Order(left=left, right=right):
            return (left, right)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return parts
        case Negation(operand=operand) | Not(operand=operand) | IsNull(operand=operand):
            return (operand,)
        case Truth(operand=operand) | Membership(operand=operand):
            return (operand,)
    return ()
