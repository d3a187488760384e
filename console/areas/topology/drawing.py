"""Layout of the topology as boxes and lines, in four columns. Pure.

    name servers   brokers   topics   consumer groups
    producers

Boxes have a name and a line of metrics. `console.frame.layered` orders the boxes of a column by
their neighbours, so equal nodes and edges give the same drawing, whatever their rates are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from console.areas.topology import texts
from console.areas.topology.selection import Selection, magnitude
from console.frame.layered import ordered_columns
from console.gateway.topology.model import NODE_KINDS, Edge, Node, NodeKind

#: Coordinates and lengths of the drawing, SVG units.
COLUMN_OF: Final[Mapping[NodeKind, int]] = {
    "namesrv": 0,
    "producer": 0,
    "broker": 1,
    "topic": 2,
    "group": 3,
}
NODE_WIDTH: Final = 210
NODE_HEIGHT: Final = 42
ROW_HEIGHT: Final = 54
#: Space right of a column, for lines and labels.
GAPS: Final = (80, 90, 190, 0)
#: Height of a heading above the boxes of a kind.
HEADING_HEIGHT: Final = 26
MARGIN: Final = 8
LABEL_CHARS_MAX: Final = 23
#: Maximum number of edges with permanent labels; with more, edges of the current box have labels.
LABELS_MAX: Final = 40
LINE_WIDTH_MIN: Final = 1.5
LINE_WIDTH_STEP: Final = 0.7
#: Places of labels along a line, in thousandths, for successive lines of a box.
LABEL_PLACES: Final = (500, 680, 320, 590, 410)


@dataclass(frozen=True, slots=True)
class Box:
    """A node and the upper left corner of its box.

    `id` is the identifier in the page, equal for equal nodes: the browser keeps the focus.
    """

    node: Node
    x: int
    y: int
    id: str

    @property
    def label(self) -> str:
        """The name, with the middle left out: names often differ at the end."""
        name = texts.title_of(self.node)
        if len(name) <= LABEL_CHARS_MAX:
            return name
        half = (LABEL_CHARS_MAX - 1) // 2
        return f"{name[:half]}…{name[-half:]}"

    @property
    def middle_y(self) -> int:
        return self.y + NODE_HEIGHT // 2


@dataclass(frozen=True, slots=True)
class Line:
    """The line of an edge between two boxes, `left` in the lower column."""

    edge: Edge
    left: Box
    right: Box
    label_place: int

    @property
    def path(self) -> str:
        """The curve as an SVG path."""
        from_x, from_y, to_x, to_y = self._ends
        bend = (from_x + to_x) // 2
        return f"M{from_x} {from_y}C{bend} {from_y} {bend} {to_y} {to_x} {to_y}"

    @property
    def label_at(self) -> tuple[int, int]:
        """A point of the curve, at `label_place` thousandths of the curve's parameter."""
        from_x, from_y, to_x, to_y = self._ends
        t = self.label_place / 1000
        bend = (from_x + to_x) / 2
        near, far = 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2
        x = (1 - t) ** 3 * from_x + (near + far) * bend + t**3 * to_x
        y = ((1 - t) ** 3 + near) * from_y + (far + t**3) * to_y
        return round(x), round(y) - 4

    @property
    def width(self) -> float:
        """Width by order of magnitude of the rate."""
        return round(LINE_WIDTH_MIN + LINE_WIDTH_STEP * magnitude(self.edge.rate), 1)

    @property
    def tone(self) -> str:
        """Health and traffic: bad, warn, link (no traffic by kind), unknown, idle or good."""
        if self.edge.down:
            return "bad"
        if self.edge.behind or self.edge.count:
            return "warn"
        if self.edge.kind not in {"storage", "consumption"}:
            return "link"
        if self.edge.rate is None:
            return "unknown"
        return "good" if self.edge.rate else "idle"

    @property
    def _ends(self) -> tuple[int, int, int, int]:
        left, right = self.left, self.right
        return left.x + NODE_WIDTH, left.middle_y, right.x, right.middle_y


@dataclass(frozen=True, slots=True)
class Heading:
    """Heading above the boxes of a kind."""

    kind: NodeKind
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """Boxes in reading order: column by column, from top to bottom."""

    boxes: list[Box]
    lines: list[Line]
    headings: list[Heading]
    width: int
    height: int

    @property
    def is_labeled(self) -> bool:
        """True for a drawing with permanent labels of edges."""
        return len(self.lines) <= LABELS_MAX


def draw(selection: Selection) -> Drawing:
    """Lay out the selection."""
    nodes = {node.key: node for node in selection.nodes}
    kinds = [kind for kind in NODE_KINDS if any(node.kind == kind for node in selection.nodes)]
    # A kind is a column for the order; name servers and producers share a place in the drawing.
    columns = [[key for key, node in nodes.items() if node.kind == kind] for kind in kinds]
    ordered = ordered_columns(columns, (edge.ends for edge in selection.edges), str)
    places = sorted({COLUMN_OF[kind] for kind in kinds})
    heights = dict.fromkeys(places, 0)
    for kind, column in zip(kinds, ordered, strict=True):
        heights[COLUMN_OF[kind]] += HEADING_HEIGHT + ROW_HEIGHT * len(column)
    tallest = max(heights.values(), default=0)
    # A short column is beside the middle of a tall column.
    top = {place: MARGIN + (tallest - height) // 2 for place, height in heights.items()}
    left, x = {}, MARGIN
    for place in places:
        left[place] = x
        x += NODE_WIDTH + GAPS[place]
    boxes: dict[str, Box] = {}
    headings = []
    for kind, column in _in_reading_order(kinds, ordered):
        place = COLUMN_OF[kind]
        headings.append(Heading(kind, left[place], top[place] + HEADING_HEIGHT - 10))
        top[place] += HEADING_HEIGHT
        for key in column:
            digest = blake2b(key.encode(), digest_size=8).hexdigest()
            boxes[key] = Box(nodes[key], left[place], top[place], f"node-{digest}")
            top[place] += ROW_HEIGHT
    return Drawing(
        list(boxes.values()),
        _lines(selection.edges, boxes),
        headings,
        max(left.values(), default=0) + NODE_WIDTH + MARGIN,
        tallest + 2 * MARGIN,
    )


def _in_reading_order(
    kinds: Sequence[NodeKind], ordered: Sequence[list[str]]
) -> list[tuple[NodeKind, list[str]]]:
    return sorted(zip(kinds, ordered, strict=True), key=lambda pair: COLUMN_OF[pair[0]])


def _lines(edges: Sequence[Edge], boxes: Mapping[str, Box]) -> list[Line]:
    lines = []
    labels: dict[str, int] = {}
    for edge in edges:
        left, right = sorted((boxes[edge.source], boxes[edge.target]), key=lambda box: box.x)
        number = labels.setdefault(right.node.key, 0)
        labels[right.node.key] += 1
        lines.append(Line(edge, left, right, LABEL_PLACES[number % len(LABEL_PLACES)]))
    return lines
