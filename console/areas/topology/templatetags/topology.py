"""Texts of nodes and edges in templates."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from django import template
from django.template import RequestContext
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from console.areas.topology import texts
from console.areas.topology.drawing import Box, Line
from console.gateway.topology.model import Edge, Node

register = template.Library()

LINE = (
    '<g class="edge line-{}{}" data-ends="{} {}" data-edge="{}">'
    '<path d="{}" stroke-width="{}"><title>{}</title></path></g>'
)
LABEL = '<text class="edge-label label-{}" data-ends="{} {}" x="{}" y="{}">{}</text>'


BOX = (
    '<g class="node kind-{kind} state-{state}{marks}"><a id="{id}" {link} data-node="{key}"'
    '{focus} data-x="{x}" data-y="{y}" aria-label="{label}: {facts}"><title>{title}</title>'
    '<rect x="{x}" y="{y}" width="210" height="42" rx="5"/><svg x="{x}" y="{y}" width="206" '
    'height="42"><text class="node-name" x="10" y="18">{name}</text><text class="node-facts" '
    'x="10" y="34">{facts}</text></svg></a></g>'
)

NO_LINK = SafeString('tabindex="0" role="img"')


@register.inclusion_tag("topology/object.html")
def topology_object(node: Node, links: Mapping[str, str]) -> dict[str, Any]:
    """Render the name of an object as link to its page."""
    return {"title": texts.title_of(node), "url": links.get(node.key, "")}


@register.simple_tag
def topology_lines(lines: Iterable[Mapping[str, Any]]) -> SafeString:
    """Render the lines of a drawing, then their labels: no line crosses a label.

    In Python: template variables cost 15 of 81 ms with 5,000 topics and groups.
    """
    known = list(lines)
    labels = (_label_parts(each["line"], each["label"]) for each in known if each["label"])
    return format_html_join("", LINE, map(_line_parts, known)) + format_html_join("", LABEL, labels)


@register.simple_tag(takes_context=True)
def topology_boxes(
    context: RequestContext, boxes: Iterable[Box], links: Mapping[str, str]
) -> SafeString:
    """Render the boxes of a drawing; in Python for the same reason as the lines."""
    focus = context["view"].focus
    others = context["request"].GET.copy()
    for name in ("focus", "page"):
        others.pop(name, None)
    query = others.urlencode()
    return format_html_join("", "{}", ((_box(box, links, focus, query),) for box in boxes))


def _box(box: Box, links: Mapping[str, str], focus: str, query: str) -> SafeString:
    node = box.node
    marks = {"is-behind": node.behind, "is-stale": node.stale, "is-focus": node.key == focus}
    url = links.get(node.key)
    link = format_html('href="{}"', url) if url else NO_LINK
    to_focus = f"?{query}{'&' if query else ''}{urlencode({'focus': node.key})}"
    return format_html(
        BOX,
        kind=node.kind,
        state=node.state,
        marks="".join(f" {name}" for name, has in marks.items() if has),
        id=box.id,
        link=link,
        key=node.key,
        focus="" if node.is_stack else format_html(' data-focus-url="{}"', to_focus),
        x=box.x,
        y=box.y,
        label=f"{texts.KIND[node.kind]} {box.label}",
        facts=texts.facts_of(node),
        title=texts.title_of(node),
        name=box.label,
    )


def _line_parts(each: Mapping[str, Any]) -> tuple[Any, ...]:
    line: Line = each["line"]
    return (
        line.tone,
        " line-stale" if line.edge.stale else "",
        line.left.id,
        line.right.id,
        line.edge.key,
        line.path,
        line.width,
        each["title"],
    )


def _label_parts(line: Line, label: str) -> tuple[Any, ...]:
    return (line.edge.kind, line.left.id, line.right.id, *line.label_at, label)


@register.filter
def kind_text(node: Node) -> str:
    return str(texts.KIND[node.kind])


@register.filter
def state_text(node: Node) -> str:
    return texts.state_of(node)


@register.filter
def edge_text(edge: Edge) -> str:
    return str(texts.EDGE[edge.kind])
