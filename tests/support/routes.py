"""Every address of the console, from its URL configuration, with its arguments filled in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

#: Things that every cluster of the tests has.
PRESENT = {
    "cluster": "local",
    "broker": "broker-a",
    "topic": "TBW102",
    "group": "TOOLS_CONSUMER",
    "client": "nobody",
    "number": "1",
    "form": "csv",
}
#: Names of nothing, so that a call that is allowed changes nothing.
ABSENT = {
    **dict.fromkeys(("broker", "topic", "group", "client", "form"), "no-such-thing"),
    "cluster": "local",
    "number": "987654",
}
METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Route:
    """An address, the view behind it, and what to write for the parts that change."""

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
        """What its view has a handler for; a plain function says nothing, so GET."""
        owner = getattr(self.view, "view_class", None) or getattr(self.view, "cls", None)
        if owner is None:
            return ("get",)
        offered = owner.http_method_names
        return tuple(each for each in METHODS if each in offered and hasattr(owner, each))

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
        here = path + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            inner = f"{pattern.namespace}:" if pattern.namespace else space
            yield from _walk(pattern.url_patterns, here, inner)
        else:
            yield Route(f"{space}{pattern.name}", here, pattern.callback)
