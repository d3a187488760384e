"""Texts of nodes and edges, shared by drawing and table."""

from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext, pgettext_lazy

from console.frame import formats
from console.gateway.topology.model import Edge, EdgeKind, Node, NodeKind, State

#: Names of the kinds, of one object and of all objects.
KIND: Final[dict[NodeKind, Any]] = {
    "namesrv": gettext_lazy("Name server"),
    "broker": gettext_lazy("Broker"),
    "producer": gettext_lazy("Producer group"),
    "topic": gettext_lazy("Topic"),
    "group": gettext_lazy("Consumer group"),
}
KINDS: Final[dict[NodeKind, Any]] = {
    "namesrv": gettext_lazy("Name servers"),
    "broker": gettext_lazy("Brokers"),
    "producer": gettext_lazy("Producer groups"),
    "topic": gettext_lazy("Topics"),
    "group": gettext_lazy("Consumer groups"),
}
STATE: Final[dict[State, Any]] = {
    "up": pgettext_lazy("topology", "up"),
    "partly": pgettext_lazy("topology", "partly down"),
    "down": pgettext_lazy("topology", "down"),
    "offline": pgettext_lazy("topology", "offline"),
    "missing": pgettext_lazy("topology", "missing"),
    "unknown": pgettext_lazy("topology", "unknown"),
}
EDGE: Final[dict[EdgeKind, Any]] = {
    "registration": pgettext_lazy("topology", "registration"),
    "connection": pgettext_lazy("topology", "connection"),
    "storage": pgettext_lazy("topology", "storage"),
    "consumption": pgettext_lazy("topology", "consumption"),
    "dead_letters": pgettext_lazy("topology", "dead letters"),
}


def title_of(node: Node) -> str:
    """The name of an object, or the number of objects of a stack."""
    if not node.is_stack:
        return node.name
    return f"{formats.number(node.count)} {KINDS[node.kind]}"


def state_of(node: Node) -> str:
    """The state of an object, with a mark for last known values."""
    state = str(STATE[node.state])
    return f"{state} · {_stale()}" if node.stale and node.state != "down" else state


def facts_of(node: Node) -> str:
    """State and metrics of a node in one line."""
    parts = [] if node.state == "up" else [str(STATE[node.state])]
    if node.kind == "broker" and node.state != "down":
        parts += [_in(node.in_rate), _out(node.out_rate)]
    elif node.kind == "topic" and node.state != "missing":
        parts += [_in(node.in_rate)]
    elif node.kind == "group" and node.state != "missing":
        parts += [per_second(node.out_rate), _lag(node.lag)]
    elif node.kind == "producer":
        parts += [_clients(node.clients)]
    if node.stale and node.state != "down":
        parts.append(_stale())
    return " · ".join(parts) or str(STATE[node.state])


def label_of(edge: Edge) -> str:
    """The metrics of an edge; empty for kinds without metrics."""
    parts: list[str] = []
    if edge.kind == "connection":
        parts = [_clients(edge.clients)]
    elif edge.kind == "storage":
        parts = [per_second(edge.rate)]
    elif edge.kind == "consumption":
        parts = [per_second(edge.rate), _lag(edge.lag)]
    elif edge.kind == "dead_letters":
        parts = [f"{formats.number(edge.count)} {EDGE[edge.kind]}"]
    if edge.stale:
        parts.append(_stale())
    return " · ".join(parts)


def per_second(rate: float | None) -> str:
    """`12.5/s`, or a dash for an unknown rate."""
    return formats.UNKNOWN if rate is None else f"{formats.rate(rate)}/s"


def _in(rate: float | None) -> str:
    return _("in %(rate)s") % {"rate": per_second(rate)}


def _out(rate: float | None) -> str:
    return _("out %(rate)s") % {"rate": per_second(rate)}


def _lag(lag: int | None) -> str:
    return _("lag %(count)s") % {"count": formats.compact(lag)}


def _clients(count: int | None) -> str:
    if count is None:
        return _("clients %(count)s") % {"count": formats.UNKNOWN}
    return ngettext("%(count)s client", "%(count)s clients", count) % {
        "count": formats.number(count)
    }


def _stale() -> str:
    return pgettext("topology", "stale")
