"""Texts of nodes and edges in templates."""

from collections.abc import Mapping
from typing import Any

from django import template

from console.areas.topology import texts
from console.gateway.topology.model import Edge, Node

register = template.Library()


@register.inclusion_tag("topology/object.html")
def topology_object(node: Node, links: Mapping[str, str]) -> dict[str, Any]:
    """Render the name of an object as link to its page."""
    return {"title": texts.title_of(node), "url": links.get(node.key, "")}


@register.filter
def kind_text(node: Node) -> str:
    return str(texts.KIND[node.kind])


@register.filter
def state_text(node: Node) -> str:
    return texts.state_of(node)


@register.filter
def edge_text(edge: Edge) -> str:
    return str(texts.EDGE[edge.kind])
