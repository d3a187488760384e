"""One router for the feeds of all areas; an unknown URL gets close code 4404, not an exception."""

from importlib import import_module
from typing import Any

from channels.routing import URLRouter
from django.urls import path

from console.frame.areas import areas
from console.web.live.feed import NoSuchFeed


def feed_router() -> Any:
    """Return the router of `/ws/clusters/<cluster>/…` and `/ws/…`, from each area's `ws_urls`."""
    return URLRouter(
        [
            path("ws/clusters/<str:cluster>/", URLRouter(_routes("cluster"))),
            path("ws/", URLRouter(_routes("console"))),
            path("<path:rest>", NoSuchFeed.as_asgi()),
        ]
    )


def _routes(scope: str) -> list[Any]:
    routes = []
    for area in areas():
        module = area.submodule("ws_urls")
        if module and area.scope == scope:
            routes += import_module(module).urlpatterns
    return routes
