"""The addresses that `make bench-console` measures: every page and every API resource that a GET
opens, from the URL configuration, and lists with other orders, filters and ranges.

Arguments are a topic, a group and objects that the API lists. A route whose argument has no
object there (a job, an alarm, an ACL user) is not measured.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

CLUSTER: Final = "clusters/local"
API: Final = f"api/v1/{CLUSTER}"
#: Of the big cluster: a number with lag and dead letters, whose group has a client.
NUMBER: Final = 30
TOPIC: Final = f"topic-{NUMBER:05d}"
GROUP: Final = f"group-{NUMBER:05d}"
#: Routes that are no list and no page.
LEFT_OUT: Final = frozenset(
    {"api-topic-tail", "accounts:logout", "set_language", "metrics", "varz"}
)
#: Pages whose first paint Chromium measures.
PAINTED: Final = (
    f"{CLUSTER}/",
    f"{CLUSTER}/?range=30d",
    f"{CLUSTER}/topics/",
    f"{CLUSTER}/topics/{TOPIC}/?range=30d",
    f"{CLUSTER}/groups/?ordering=-lag",
    f"{CLUSTER}/groups/{GROUP}/?range=30d",
    f"{CLUSTER}/topology/",
    f"{CLUSTER}/findings/",
    f"{CLUSTER}/dlq/",
)


#: Arguments that every big cluster has.
NAMES: Final = {
    "cluster": "local",
    "broker": "broker-a",
    "key": "fileReservedTime",
    "table": "topics",
    "form": "csv",
    "username": "admin",
    "role": "operator",
    "kind": "ingest",
}
#: Arguments that a running cluster names.
FOUND: Final = ("client", "offset_msg_id", "msg_id")


def pages(
    home: Path, ask: Callable[[str], Any], topic: str = TOPIC, group: str = GROUP
) -> list[str]:
    """Return the addresses, without the leading slash; `ask` returns the JSON of an API path."""
    clients = ask(f"{CLUSTER}/groups/{group}/clients")["clients"]
    messages = ask(f"{CLUSTER}/messages?topic={topic}")["items"]
    found = {
        "client": clients[0]["client_id"],
        "offset_msg_id": messages[0]["offset_msg_id"],
        "msg_id": messages[0]["msg_id"],
    }
    return _addresses(home, topic, group, found)


def chosen(addresses: Iterable[str], text: str) -> list[str]:
    """Return the addresses with a text; the text may begin with the slash of an address."""
    return [each for each in addresses if text in f"/{each}"]


def check_chosen(home: Path, text: str) -> None:
    """Raise ValueError with all addresses for a text that is in none of them."""
    known = _addresses(home, TOPIC, GROUP, {name: f"<{name}>" for name in FOUND})
    if not chosen(known, text):
        listed = "\n".join(f"  {each}" for each in known)
        raise ValueError(f"no address contains {text!r}; the addresses:\n{listed}")


def _addresses(home: Path, topic: str, group: str, found: Mapping[str, str]) -> list[str]:
    # Django reads its settings once, from the environment of this process.
    os.environ["GANTRY_HOME"] = str(home)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    import django

    django.setup()
    from tests.support.routes import Route, routes

    arguments = {**NAMES, **found, "topic": topic, "group": group}

    def is_measured(route: Route) -> bool:
        return (
            "get" in route.methods
            and not route.is_classic
            and route.name not in LEFT_OUT
            and route.arguments.keys() <= arguments.keys()
        )

    paths = [each.path(arguments).lstrip("/") for each in routes() if is_measured(each)]
    return list(dict.fromkeys([*paths, *variants(topic, group)]))


def variants(topic: str, group: str) -> tuple[str, ...]:
    """Lists and charts with other orders, filters and ranges."""
    return (
        f"{CLUSTER}/?range=30d",
        f"{CLUSTER}/brokers/broker-a/?range=30d",
        f"{CLUSTER}/topics/{topic}/?range=30d",
        f"{CLUSTER}/groups/{group}/?range=30d",
        f"{CLUSTER}/groups/{group}/?range=24h",
        f"{CLUSTER}/topics/?ordering=-stored",
        f"{CLUSTER}/topics/?ordering=-in_rate&page=40",
        f"{CLUSTER}/topics/?q=042&page=2",
        f"{CLUSTER}/topics/?q=label:team=team-7",
        f"{CLUSTER}/groups/?q=label:tier=gold",
        f"{CLUSTER}/groups/?ordering=-lag&page=3",
        f"{CLUSTER}/groups/?show=behind",
        f"{CLUSTER}/messages/?topic={topic}",
        f"{CLUSTER}/search/?q=00042",
        f"{API}/topics?ordering=-stored&limit=50",
        f"{API}/topics?limit=500",
        f"{API}/topics?label=team=team-7",
        f"{API}/groups?ordering=-lag&limit=50",
        f"{API}/groups?limit=500",
        f"{API}/clients?limit=50",
        f"{API}/messages?topic={topic}",
        f"{API}/search?q=00042",
        f"{API}/history?metric=lag&group={group}&range=30d",
        f"{API}/history?metric=produce_rate&topic={topic}&range=30d",
        f"{API}/history?metric=produce_rate&range=30d",
        f"{API}/history?metric=lag&group={group}&range=1h",
    )
