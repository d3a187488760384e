"""Every URL of the console, from the URL configuration, with example arguments."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

#: Arguments naming objects of every test cluster.
PRESENT = {
    "cluster": "local",
    "broker": "broker-a",
    "topic": "TBW102",
    "group": "TOOLS_CONSUMER",
    "client": "nobody",
    "acl_user": "nobody",
    "acl_account": "nobody",
    "number": "1",
    "form": "csv",
}
#: Arguments naming no object: an allowed request must not change the cluster.
ABSENT = {
    **dict.fromkeys(
        ("broker", "topic", "group", "client", "acl_user", "acl_account", "form"), "no-such-thing"
    ),
    "cluster": "local",
    "number": "987654",
}
METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Route:
    """A URL pattern with name and view."""

    name: str
    pattern: str
    view: Any

    @property
    def is_api(self) -> bool:
        return self.pattern.startswith("/api/")

    @property
    def is_classic(self) -> bool:
        return self.name.startswith("classic:")

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods with a handler in the view; GET for a plain function."""
        owner = getattr(self.view, "view_class", None) or getattr(self.view, "cls", None)
        if owner is None:
            return ("get",)
        allowed = owner.http_method_names
        return tuple(it for it in METHODS if it in allowed and hasattr(owner, it))

    @property
    def arguments(self) -> dict[str, str]:
        """Example arguments of the URL."""
        declared = (part.split(">")[0] for part in self.pattern.split("<")[1:])
        names = (each.rpartition(":")[2] for each in declared)
        return {name: PRESENT.get(name, "0") for name in names}

    def path(self, arguments: Mapping[str, str] = PRESENT) -> str:
        path = self.pattern
        for part in path.split("<")[1:]:
            declared = part.split(">")[0]
            name = declared.rpartition(":")[2]
            path = path.replace(f"<{declared}>", arguments.get(name, "0"))
        return path


def routes() -> list[Route]:
    return list(_walk(get_resolver().url_patterns, "/", ""))


def _walk(patterns: list[URLPattern | URLResolver], path: str, space: str) -> Iterator[Route]:
    for pattern in patterns:
        full_path = path + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            inner = f"{pattern.namespace}:" if pattern.namespace else space
            yield from _walk(pattern.url_patterns, full_path, inner)
        else:
            yield Route(f"{space}{pattern.name}", full_path, pattern.callback)
