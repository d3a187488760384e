"""Columns of the tables of objects and of connections, and links of objects."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import urlencode

from django.urls import get_script_prefix, reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.areas.topology import texts
from console.areas.topology.selection import Selection
from console.frame.tables import Column, Columns
from console.gateway.topology.model import NODE_KINDS, Edge, Node, NodeKind

#: Maximum number of kept URLs, of all clusters.
LINKS_MAX: Final = 4_096


@dataclass(frozen=True, slots=True)
class ObjectLine:
    """A node with the number of shown connections."""

    node: Node
    connections: int

    @property
    def name(self) -> str:
        return texts.title_of(self.node)


@dataclass(frozen=True, slots=True)
class ConnectionLine:
    """An edge between two nodes."""

    edge: Edge
    source: Node
    target: Node

    @property
    def name(self) -> str:
        return self.edge.key


OBJECTS: Columns[ObjectLine] = Columns(
    Column("name", _("Name"), lambda line: line.name),
    Column("kind", _("Kind"), lambda line: NODE_KINDS.index(line.node.kind)),
    Column("state", _("State"), lambda line: line.node.state),
    Column(
        "in_rate",
        _("Produce rate"),
        lambda line: line.node.in_rate,
        numeric=True,
        hint=_("Messages per second, average of the last minute"),
    ),
    Column(
        "out_rate",
        _("Consume rate"),
        lambda line: line.node.out_rate,
        numeric=True,
        hint=_("Messages per second, average of the last minute"),
    ),
    Column(
        "lag",
        _("Lag"),
        lambda line: line.node.lag,
        numeric=True,
        hint=_("Unconsumed messages; of a topic: lag of the group with the highest lag"),
    ),
    Column("dead_letters", _("Dead letters"), lambda line: line.node.dead_letters, numeric=True),
    Column("clients", _("Clients"), lambda line: line.node.clients, numeric=True),
    Column("connections", _("Connections"), lambda line: line.connections, numeric=True),
)
CONNECTIONS: Columns[ConnectionLine] = Columns(
    Column("source", _("From"), lambda line: line.edge.source),
    Column("target", _("To"), lambda line: line.edge.target),
    Column("kind", pgettext_lazy("topology", "Connection"), lambda line: line.edge.kind),
    Column(
        "rate",
        _("Rate"),
        lambda line: line.edge.rate,
        numeric=True,
        hint=_("Messages per second, average of the last minute"),
    ),
    Column("lag", _("Lag"), lambda line: line.edge.lag, numeric=True),
    Column("clients", _("Clients"), lambda line: line.edge.clients, numeric=True),
)


def object_lines(selection: Selection) -> list[ObjectLine]:
    degrees = selection.degrees
    return [ObjectLine(node, degrees.get(node.key, 0)) for node in selection.nodes]


def connection_lines(selection: Selection) -> list[ConnectionLine]:
    nodes = {node.key: node for node in selection.nodes}
    return [
        ConnectionLine(edge, nodes[edge.source], nodes[edge.target]) for edge in selection.edges
    ]


def links(cluster: str, nodes: Iterable[Node]) -> dict[str, str]:
    """URLs of the pages of objects, by key; without objects that have no page."""
    return {node.key: url for node in nodes if (url := link(cluster, node))}


def link(cluster: str, node: Node) -> str:
    """The URL of an object's page; empty for stacks and for objects that no broker has."""
    if node.is_stack or not node.has_page:
        return ""
    return _page_of(get_script_prefix(), cluster, node.kind, node.name)


# A drawing has 300 objects, whose URLs take 6 ms, and the next drawing has nearly the same objects.
@lru_cache(maxsize=LINKS_MAX)
def _page_of(_script_prefix: str, cluster: str, kind: NodeKind, name: str) -> str:
    if kind == "namesrv":
        return reverse("clusters:name-servers", args=[cluster])
    if kind == "broker":
        return reverse("clusters:broker", args=[cluster, name])
    if kind == "producer":
        return f"{reverse('clients:producers', args=[cluster])}?{urlencode({'q': name})}"
    page = "topics:detail" if kind == "topic" else "groups:detail"
    return reverse(page, args=[cluster, name])
