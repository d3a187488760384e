"""Read-only clusters: writes of pages and REST resources are refused before the view runs.

`Cluster.do` refuses commands as well, also those of jobs. A view whose writes stay in the console
(exports, jobs, the switch itself) sets `writes_cluster = False`.
"""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console.frame.permissions import Target
from console.frame.targets import owner_of
from console.gateway import GatewayError, ReadOnly, UnknownCluster, gateway


def refusal_of(view: object, target: Target) -> ReadOnly | None:
    """Return the refusal of a write to a read-only cluster, else None."""
    if not isinstance(target.cluster, str) or not getattr(owner_of(view), "writes_cluster", True):
        return None
    try:
        cluster = gateway.cluster(target.cluster)
    except UnknownCluster:
        return None  # the view answers 404
    return ReadOnly(cluster.name) if cluster.is_read_only else None


def trouble_page(request: HttpRequest, error: GatewayError) -> HttpResponse:
    """Render the page of an error of the gateway, or the part for htmx."""
    partial = bool(getattr(request, "htmx", False))
    template = "errors/trouble_part.html" if partial else "errors/trouble.html"
    crumbs: list[dict[str, Any]] = [{"label": error.title, "url": None}]
    context = {"trouble": error, "title": error.title, "crumbs": crumbs}
    response = render(request, template, context, status=error.status)
    if error.retry_after_s:
        response.headers["Retry-After"] = str(error.retry_after_s)
    return response
