"""The page of the live topology: a drawing, and the same objects and connections as table."""

from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import pgettext

from console.areas.topology import listing, texts
from console.areas.topology.asking import ask_early_selection
from console.areas.topology.drawing import draw
from console.areas.topology.reading import read_view
from console.areas.topology.selection import NODES_MAX, STEPS_MAX, Selection, View
from console.frame.pages import ClusterPage
from console.frame.tables import TablePage, TableQuery
from console.gateway.topology.model import NODE_KINDS

#: Maximum wait of a new page for the topology, seconds; None: no limit. After the wait, the browser
#: requests the drawing alone.
FIRST_WAIT_S: float | None = 0.25
#: Maximum wait for consume rates of edges, seconds; later rates come with the next refresh.
RATES_WAIT_S = 0.25
#: Value of the parameter `table` for the table of connections.
CONNECTIONS = "connections"
#: Parameters that a new search keeps.
KEPT = ("focus", "steps", "collapse", "system", "retry", "table", "ordering")


@dataclass(frozen=True, slots=True)
class KindChip:
    """A chip that collapses or expands a kind. `value`: the parameter `collapse` after a click."""

    label: Any
    count: int
    collapsed: bool
    value: str | None


class TopologyPage(ClusterPage):
    """The topology; the page replaces drawing and table every few seconds.

    While a large cluster is asked for the first time, the page has a frame without drawing, whose
    browser requests the drawing. The parameter `wait` is for browsers without scripts.
    """

    template = "topology/live.html"
    part = "topology/live_part.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        # The page has one size of drawing: `limit` is for programs.
        view = replace(read_view(request.GET).view, nodes_max=NODES_MAX)
        kept = [(name, request.GET[name]) for name in KEPT if name in request.GET]
        is_first = not getattr(request, "htmx", False) and "wait" not in request.GET
        found = ask_early_selection(
            self.cluster, view, FIRST_WAIT_S if is_first else None, RATES_WAIT_S
        )
        if found is None:
            title = pgettext("cluster", "Topology")
            return self.show(title=title, view=view, kept=kept, pending=True)
        answer, selection = found
        tab = CONNECTIONS if request.GET.get("table") == CONNECTIONS else ""
        drawing = draw(selection)
        urls = listing.links(cluster, selection.nodes)
        return self.show(
            title=pgettext("cluster", "Topology"),
            answer=answer,
            failures=answer.failures,
            topology=answer.value,
            view=view,
            selection=selection,
            drawing=drawing,
            headings=[(heading, texts.KINDS[heading.kind]) for heading in drawing.headings],
            tab=tab,
            page=_table(request, selection, tab),
            links=urls,
            chips=collapse_chips(selection, view),
            focus_url=urls.get(view.focus, ""),
            steps=range(1, STEPS_MAX + 1),
            kept=kept,
        )


def collapse_chips(selection: Selection, view: View) -> list[KindChip]:
    """A chip for each kind with several shown objects."""
    chips = []
    for kind in NODE_KINDS:
        collapsed = kind in view.stacked
        if selection.counts.get(kind, 0) > 1:
            others = view.stacked - {kind} if collapsed else view.stacked | {kind}
            value = ",".join(each for each in NODE_KINDS if each in others) or None
            chips.append(KindChip(texts.KINDS[kind], selection.counts[kind], collapsed, value))
    return chips


def _table(request: HttpRequest, selection: Selection, tab: str) -> TablePage[Any]:
    # `q` is the filter of the selection, also of the neighbours of matching objects.
    if tab == CONNECTIONS:
        edges = TableQuery.read(request.GET, listing.CONNECTIONS, default="source")
        return edges.page(listing.connection_lines(selection))
    objects = TableQuery.read(request.GET, listing.OBJECTS, default="kind")
    return objects.page(listing.object_lines(selection))
