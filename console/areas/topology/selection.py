"""The shown part of a topology: filter, focus, stacks and bounds. Pure.

Order of the steps: hide system objects, and retry and DLQ topics; keep the focused node with its
neighbours; keep nodes that match the search, with their neighbours; replace the nodes of stacked
kinds by one node per kind; keep at most `nodes_max` nodes and EDGES_MAX edges. The nodes that
remain are the ends of the edges with trouble and with the most traffic. Traffic counts by order of
magnitude, so that a drawing does not change with every refresh.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from msgspec import structs

from console.gateway.metrics import sum_known
from console.gateway.topology.model import (
    NODE_KINDS,
    STACK,
    Edge,
    Node,
    NodeKind,
    Topology,
    key_of,
)

#: Maximum number of nodes of a drawing.
NODES_MAX: Final = 300
#: Maximum number of edges of a drawing.
EDGES_MAX: Final = 1_200
#: Maximum distance of neighbours from the focused node.
STEPS_MAX: Final = 2
#: Kinds with paths to nearly everything: a path through them connects nothing.
HUBS: Final = frozenset[NodeKind]({"namesrv", "broker"})

#: Rank of an object with trouble, above all orders of magnitude of traffic.
TROUBLE: Final = 100


@dataclass(frozen=True, slots=True)
class View:
    """What to show. `focus` is the key of a node; `steps` the distance of shown neighbours."""

    search: str = ""
    focus: str = ""
    steps: int = 1
    stacked: frozenset[NodeKind] = frozenset()
    with_system: bool = False
    with_retry: bool = False
    nodes_max: int = NODES_MAX


@dataclass(frozen=True, slots=True)
class Selection:
    """The shown nodes and edges, in the order of the topology, and counts of the others."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    #: The focused node; None without focus, or when the cluster has no such node.
    focus: Node | None
    #: Number of hidden system objects, and of retry and DLQ topics.
    system_hidden: int
    retry_hidden: int
    #: Number of objects by kind before the bound; stacked objects count.
    counts: Mapping[NodeKind, int]
    nodes_left_out: int
    edges_left_out: int

    @property
    def degrees(self) -> Mapping[str, int]:
        """Number of shown edges by node."""
        return Counter(end for edge in self.edges for end in edge.ends)


def select(topology: Topology, view: View) -> Selection:
    """Return the part of the topology that `view` shows."""
    nodes = {node.key: node for node in topology.nodes}
    focus = nodes.get(view.focus)
    system_hidden = retry_hidden = 0
    for node in topology.nodes:
        if node is focus:
            continue
        if node.system and not view.with_system:
            system_hidden += 1
            del nodes[node.key]
        elif node.is_retry and not view.with_retry:
            retry_hidden += 1
            del nodes[node.key]
    edges = _between(topology.edges, nodes)
    if focus is not None:
        nodes = _around(focus, nodes, edges, view.steps)
        edges = _between(edges, nodes)
    words = view.search.lower().split()
    if words:
        matching = {
            key: node
            for key, node in nodes.items()
            if all(word in node.name.lower() for word in words)
        }
        near = {end for edge in edges for end in edge.ends if _touches(edge, matching)}
        nodes = {key: node for key, node in nodes.items() if key in matching or key in near}
        edges = [edge for edge in edges if _touches(edge, matching)]
    counts = Counter(node.kind for node in nodes.values())
    nodes, edges = _stacked(nodes, edges, view.stacked)
    kept = _bounded(nodes, edges, view.nodes_max, focus)
    shown = _between(edges, kept)
    ranks = {key: _rank(node) for key, node in kept.items()}
    shown_edges = sorted(shown, key=lambda edge: _order(edge, ranks))[:EDGES_MAX]
    drawn = {edge.key for edge in shown_edges}
    order = {kind: number for number, kind in enumerate(NODE_KINDS)}
    return Selection(
        tuple(sorted(kept.values(), key=lambda node: (order[node.kind], node.name))),
        tuple(edge for edge in shown if edge.key in drawn),
        focus,
        system_hidden,
        retry_hidden,
        {kind: counts[kind] for kind in NODE_KINDS if counts[kind]},
        len(nodes) - len(kept),
        len(edges) - len(shown_edges),
    )


def with_rates(selection: Selection, rates: Mapping[tuple[str, str], float | None]) -> Selection:
    """Return the selection with consume rates, by keys of topic and group."""
    return replace(
        selection,
        edges=tuple(
            structs.replace(edge, rate=rates[edge.ends])
            if edge.kind == "consumption" and edge.ends in rates and not edge.stale
            else edge
            for edge in selection.edges
        ),
    )


def _between(edges: Iterable[Edge], nodes: Mapping[str, Node]) -> list[Edge]:
    return [edge for edge in edges if edge.source in nodes and edge.target in nodes]


def _touches(edge: Edge, nodes: Mapping[str, Node]) -> bool:
    return edge.source in nodes or edge.target in nodes


def _around(
    focus: Node, nodes: Mapping[str, Node], edges: Iterable[Edge], steps: int
) -> dict[str, Node]:
    """The nodes within `steps` of the focus, without paths through HUBS."""
    neighbours: dict[str, set[str]] = {}
    for edge in edges:
        neighbours.setdefault(edge.source, set()).add(edge.target)
        neighbours.setdefault(edge.target, set()).add(edge.source)
    found = edge_of_search = {focus.key}
    for _step in range(steps):
        passable = {
            key for key in edge_of_search if key == focus.key or nodes[key].kind not in HUBS
        }
        reached = {other for key in passable for other in neighbours.get(key, ())}
        edge_of_search = reached - found
        found = found | reached
    return {key: node for key, node in nodes.items() if key in found}


def _stacked(
    nodes: Mapping[str, Node], edges: Iterable[Edge], kinds: frozenset[NodeKind]
) -> tuple[dict[str, Node], list[Edge]]:
    """Replace the nodes of the kinds, two or more, by one node; merge parallel edges."""
    members = {
        kind: [node for node in nodes.values() if node.kind == kind] for kind in sorted(kinds)
    }
    stacks = {kind: _stack(kind, held) for kind, held in members.items() if len(held) > 1}
    if not stacks:
        return dict(nodes), list(edges)
    place = {
        key: stacks[node.kind].key if node.kind in stacks else key for key, node in nodes.items()
    }
    result = {place[key]: stacks.get(node.kind, node) for key, node in nodes.items()}
    parallel: dict[tuple[str, str, str], list[Edge]] = {}
    for edge in edges:
        ends = place[edge.source], place[edge.target]
        parallel.setdefault((*ends, edge.kind), []).append(edge)
    return result, [
        held[0]
        if len(held) == 1 and held[0].ends == (source, target)
        else _merged(held, source, target)
        for (source, target, _kind), held in parallel.items()
    ]


def _stack(kind: NodeKind, held: list[Node]) -> Node:
    """The node in place of several nodes. A sum skips unknown values."""
    return Node(
        kind,
        STACK,
        "partly" if any(node.troubled for node in held) else "up",
        in_rate=sum_known(node.in_rate for node in held),
        out_rate=sum_known(node.out_rate for node in held),
        lag=None if kind == "topic" else sum_known(node.lag for node in held),
        behind=any(node.behind for node in held),
        dead_letters=sum_known(node.dead_letters for node in held),
        stale=any(node.stale for node in held),
        count=len(held),
    )


def _merged(held: list[Edge], source: str, target: str) -> Edge:
    """One edge in place of parallel edges. A sum skips unknown values."""
    return Edge(
        held[0].kind,
        source,
        target,
        rate=sum_known(edge.rate for edge in held),
        lag=sum_known(edge.lag for edge in held),
        # A client has connections to several brokers: the sum would be too high.
        clients=held[0].clients if len(held) == 1 else None,
        count=sum_known(edge.count for edge in held),
        behind=any(edge.behind for edge in held),
        down=any(edge.down for edge in held),
        stale=any(edge.stale for edge in held),
        is_single=False,
    )


def _bounded(
    nodes: Mapping[str, Node], edges: Iterable[Edge], most: int, focus: Node | None
) -> dict[str, Node]:
    """At most `most` nodes: the focus, name servers and brokers, then ends of weighty edges."""
    if len(nodes) <= most:
        return dict(nodes)
    first = [focus.key] if focus is not None and focus.key in nodes else []
    first += [key for key, node in nodes.items() if node.kind in HUBS]
    kept = dict.fromkeys(first[:most])
    flows = [edge for edge in edges if nodes[edge.source].kind not in HUBS]
    ranks = {key: _rank(node) for key, node in nodes.items()}
    flows.sort(key=lambda edge: _order(edge, ranks))
    for edge in flows:
        if len(kept) == most:
            break
        missing = [end for end in edge.ends if end not in kept]
        if len(kept) + len(missing) <= most:
            kept.update(dict.fromkeys(missing))
    rest = sorted((key for key in nodes if key not in kept), key=lambda key: (-ranks[key], key))
    kept.update(dict.fromkeys(rest[: most - len(kept)]))
    return {key: node for key, node in nodes.items() if key in kept}


def _order(edge: Edge, ranks: Mapping[str, int]) -> tuple[int, tuple[str, str]]:
    """Sort key: edges with trouble first, then by traffic, then by name."""
    rank = max(ranks[edge.source], ranks[edge.target], magnitude(edge.lag))
    return -rank - TROUBLE * (edge.behind or edge.down), edge.ends


def _rank(node: Node) -> int:
    traffic = max(magnitude(node.in_rate), magnitude(node.out_rate), magnitude(node.lag))
    return traffic + TROUBLE * node.troubled


def magnitude(value: float | None) -> int:
    """Number of digits before the decimal point; 0 for less than 1 and for unknown values."""
    return len(str(int(value))) if value is not None and value >= 1 else 0


def stack_key(kind: NodeKind) -> str:
    return key_of(kind, STACK)
