"""Layout of the topology graph: producer groups, topics, consumer groups in columns. Pure.

`console.frame.layered` orders the nodes of a column. Only the busiest nodes are drawn; the table
below the drawing is longer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from console.frame.layered import ordered_columns
from console.services.analytics.aggregates import Edge

#: Maximum number of drawn nodes.
NODES_MAX: Final = 50
#: Coordinates and lengths of the drawing, SVG units.
COLUMN_X: Final = (0, 380, 760)
NODE_WIDTH: Final = 220
NODE_HEIGHT: Final = 26
ROW_HEIGHT: Final = 36
TOP: Final = 28
LINE_WIDTH_MAX: Final = 8.0
LABEL_CHARS_MAX: Final = 28
#: Failure rates from which an edge is drawn as a warning or as bad, 0 to 1.
WARN_RATE: Final = 0.01
BAD_RATE: Final = 0.1

#: Column and name; the name is None for records without a name.
Key = tuple[int, str | None]


@dataclass(slots=True)
class Node:
    """A box: producer group, topic or consumer group."""

    column: int
    name: str | None
    weight: int = 0
    y: int = 0

    @property
    def x(self) -> int:
        return COLUMN_X[self.column]

    @property
    def kind(self) -> str:
        return ("producer", "topic", "group")[self.column]

    @property
    def label(self) -> str:
        name = self.name or ""
        return name if len(name) <= LABEL_CHARS_MAX else f"{name[: LABEL_CHARS_MAX - 1]}…"

    @property
    def middle_y(self) -> int:
        return self.y + NODE_HEIGHT // 2


@dataclass(frozen=True, slots=True)
class Line:
    """The line of an edge between two boxes."""

    edge: Edge
    source: Node
    target: Node
    width: float

    @property
    def path(self) -> str:
        """The curve as an SVG path."""
        begin, end = self.source.x + NODE_WIDTH, self.target.x
        bend = (begin + end) // 2
        from_y, to_y = self.source.middle_y, self.target.middle_y
        return f"M{begin} {from_y} C{bend} {from_y} {bend} {to_y} {end} {to_y}"

    @property
    def tone(self) -> str:
        """Health of the edge: good, warn or bad; dim without attempts."""
        rate = self.edge.failure_rate
        if self.edge.dead_letters or (rate is not None and rate >= BAD_RATE):
            return "bad"
        if self.edge.never_consumed or (rate is not None and rate >= WARN_RATE):
            return "warn"
        return "dim" if rate is None else "good"


@dataclass(frozen=True, slots=True)
class Graph:
    """The drawing, and the number of omitted nodes."""

    nodes: list[Node]
    lines: list[Line]
    left_out: int
    width: int = COLUMN_X[2] + NODE_WIDTH
    height: int = 0


def graph_of(edges: Iterable[Edge]) -> Graph:
    """Lay out the busiest nodes and the edges between these nodes."""
    all_edges = list(edges)
    nodes: dict[Key, Node] = {}
    for edge in all_edges:
        for key in ends_of(edge):
            node = nodes.setdefault(key, Node(*key))
            node.weight += edge.messages
    drawn = _busiest(all_edges, nodes)
    kept = {key: node for key, node in nodes.items() if key in drawn}
    between = [edge for edge in all_edges if all(key in kept for key in ends_of(edge))]
    columns = _layout(kept, between)
    most = max((edge.messages for edge in between), default=1) or 1
    lines = [
        Line(edge, kept[source], kept[target], _width(edge.messages, most))
        for edge in sorted(between, key=lambda edge: edge.messages)
        for source, target in [ends_of(edge)]
    ]
    rows = max(map(len, columns), default=0)
    return Graph(
        [node for column in columns for node in column],
        lines,
        len(nodes) - len(kept),
        height=TOP + rows * ROW_HEIGHT,
    )


def ends_of(edge: Edge) -> tuple[Key, Key]:
    topic: Key = (1, edge.topic)
    if edge.is_consuming:
        return topic, (2, edge.consumer_group)
    return (0, edge.producer_group), topic


def _busiest(edges: Sequence[Edge], nodes: dict[Key, Node]) -> set[Key]:
    """At most NODES_MAX nodes: the ends of the busiest edges, so every node has an edge."""
    drawn: set[Key] = set()
    for edge in sorted(edges, key=lambda edge: -edge.messages):
        fresh = drawn | set(ends_of(edge))
        if len(fresh) <= NODES_MAX:
            drawn = fresh
    return drawn & set(nodes)


def _layout(nodes: dict[Key, Node], edges: Sequence[Edge]) -> list[list[Node]]:
    """The columns with ordered nodes; sets the height of every node."""
    columns = [
        sorted(
            (key for key in nodes if key[0] == column),
            key=lambda key: (-nodes[key].weight, key[1] or ""),
        )
        for column in range(len(COLUMN_X))
    ]
    ordered = ordered_columns(columns, map(ends_of, edges), lambda key: key[1] or "")
    for column in ordered:
        for row, key in enumerate(column):
            nodes[key].y = TOP + row * ROW_HEIGHT
    return [[nodes[key] for key in column] for column in ordered]


def _width(messages: int, most: int) -> float:
    return round(max(1.0, LINE_WIDTH_MAX * (messages / most) ** 0.5), 1)
