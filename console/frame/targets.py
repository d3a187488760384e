"""The target of a request: resource, cluster and name, from the view and the URL.

The resource is the area of the view's module. The name is the URL argument that the area declares
(`AreaConfig.name_arguments`). A route without such an argument touches every name, and a route
without a cluster touches every cluster, unless the view filters by permission itself and says so.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from django.conf import settings

from console.frame.areas import AreaConfig, areas
from console.frame.permissions import Scope, Target


def owner_of(view: object) -> Any:
    """Return the view class of a view function, else the function."""
    return getattr(view, "view_class", None) or getattr(view, "cls", None) or view


def target_of(view: object, arguments: Mapping[str, Any], query: Mapping[str, Any]) -> Target:
    """Return the target of a request to `view` with URL arguments and query parameters.

    A view overrides parts by attributes: `access_resource`; `access_query`, the query parameter
    with the name; `access_clusters` and `access_names`, Scope.SOME where the view filters.
    """
    owner = owner_of(view)
    area = area_of(owner)
    named = [arguments[part] for part in area.name_arguments if part in arguments] if area else []
    asked = getattr(owner, "access_query", "")
    # `?=orders` is a parameter with an empty name: it must not name what a view touches.
    parameter = query.get(asked) if asked else None
    names = getattr(owner, "access_names", Scope.EVERY)
    return Target(
        getattr(owner, "access_resource", "") or (area.resource if area else ""),
        _cluster(owner, arguments, query),
        str(named[0]) if named else str(parameter) if parameter else names,
    )


def _cluster(owner: Any, arguments: Mapping[str, Any], query: Mapping[str, Any]) -> str | Scope:
    if "cluster" in arguments:
        return str(arguments["cluster"])
    if getattr(owner, "cluster_in_query", False):
        first = next(iter(settings.CONSOLE_CLUSTERS), "")
        return str(query.get("cluster") or first)
    scope: Scope = getattr(owner, "access_clusters", Scope.EVERY)
    return scope


@cache
def area_of(owner: Any) -> AreaConfig | None:
    """Return the area of a view: of its `resource` (generic views), else of its module."""
    kind = getattr(owner, "resource", None)
    label = str(getattr(kind, "namespace", "")).partition(":")[0]
    module = getattr(owner, "__module__", "")
    inside = [
        area
        for area in areas()
        if area.label == label or module == area.name or module.startswith(f"{area.name}.")
    ]
    return max(inside, key=lambda area: (area.label == label, len(area.name)), default=None)


def resources() -> tuple[str, ...]:
    """Return the known resources, in the order of the navigation."""
    return tuple(dict.fromkeys(area.resource for area in areas()))
