"""The addresses that `make bench-console` measures: every page and every API resource that a GET
opens, from the URL configuration, and lists with other orders, filters and ranges.

Arguments are a topic, a group and objects that the API lists (`console_objects.py`); resources that
need parameters get them (QUERIES). Not measured are routes whose argument has no object in the
cluster, and the routes of LEFT_OUT, each for a reason.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from benchmarks.big_cluster import FULL_GROUP
from benchmarks.console_objects import CLUSTER, SOURCES, Ask, find_objects

API: Final = f"api/v1/{CLUSTER}"
#: Of the big cluster: a number with lag and dead letters, whose group has a client.
NUMBER: Final = FULL_GROUP
TOPIC: Final = f"topic-{NUMBER:05d}"
GROUP: Final = f"group-{NUMBER:05d}"
POSTED: Final = "the address of a form: a GET redirects, and changes nothing"
#: Routes that are not measured, with the reason.
LEFT_OUT: Final[Mapping[str, str]] = {
    "api-topic-tail": "a stream without an end",
    "metrics": "for programs, not below the console's pages",
    "varz": "for programs, not below the console's pages",
    "set_language": POSTED,
    "documentation": "redirects to the first page of the documentation",
    "documentation-file": "a file of the documentation, served as it is",
    "home": "redirects to the overview of the first cluster",
    "accounts:logout": "ends the session",
    "accounts:code": "redirects unless a password was right and a code is missing",
    "accounts:enrol": "redirects unless a password was right and a second factor is missing",
    "accounts:oidc": "redirects to the provider, and needs one",
    "accounts:oidc-callback": "redirects; the provider calls it",
    "accounts:theme": POSTED,
    "message:deliver": POSTED,
    "offsets:undo": POSTED,
    "deadletters:resend": POSTED,
    "deadletters:discard": POSTED,
    "deadletters:try": POSTED,
    "deadletters:edit": POSTED,
    "pending:check": POSTED,
    "jobs:start": POSTED,
    "jobs:cancel": POSTED,
    "jobs:pause": POSTED,
    "jobs:resume": POSTED,
    "jobs:continue": POSTED,
    "replicas:kill": "needs a cluster that the demo started, whose replicas it may kill",
    "replicas:elect": "needs controllers",
}
#: Pages of people who are not signed in; others are redirected.
SIGNED_OUT: Final = ("accounts/login/",)
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
    f"{CLUSTER}/dlq/{GROUP}/",
    f"{CLUSTER}/alarms/",
    f"{CLUSTER}/jobs/",
    f"{CLUSTER}/acl-users/",
    f"{CLUSTER}/acl-accounts/",
    f"{CLUSTER}/messages/?topic={TOPIC}",
    "audit/",
    "accounts/users/",
)


#: Arguments that every big cluster has.
NAMES: Final = {
    "cluster": "local",
    "broker": "broker-a",
    "key": "fileReservedTime",
    "table": "topics",
    "form": "csv",
    "username": "admin",
    "kind": "ingest",
    "user": "1",
}
#: The object of an argument that stands for different kinds, by the beginning of the route's name;
#: the first one counts.
OBJECTS: Final = (
    ("deadletters:replay_outcomes", "number", "replay"),
    ("deadletters:", "offset_msg_id", "letter"),
    ("api-dlq-replay", "number", "replay"),
    ("api-offset-reset", "number", "reset"),
    ("offsets:", "number", "reset"),
    ("api-topic-", "name", "topic"),
    ("api-group-", "name", "group"),
    ("api-acl_user-", "name", "acl_user"),
    ("api-acl_account-", "name", "acl_account"),
    ("api-job-file", "number", "file_job"),
    ("api-job-file", "name", "file"),
    ("jobs:file", "number", "file_job"),
    ("jobs:file", "name", "file"),
    ("api-job", "number", "job"),
    ("jobs:", "number", "job"),
    ("api-alarm-rule", "number", "alarm_rule"),
    ("api-alarm-receiver", "number", "receiver"),
    ("api-alarm", "number", "alarm"),
    ("alarms:rule", "number", "alarm_rule"),
    ("alarms:receiver", "number", "receiver"),
    ("alarms:", "number", "alarm"),
    ("api-masking-rule", "number", "masking_rule"),
    ("masking:", "number", "masking_rule"),
    ("api-body-rule", "number", "body_rule"),
    ("schemas:rule", "number", "body_rule"),
    ("accounts:user", "number", "user"),
    ("api-audit-row", "number", "audit_row"),
    ("audit:row", "number", "audit_row"),
    ("accounts:role", "role", "custom_role"),
    ("api-role", "role", "custom_role"),
)
#: Parameters of routes that need some.
QUERIES: Final = {
    "api-access-check": "account={acl_user}&action=consume&topic={topic}&group={group}"
    "&address=10.0.0.1",
    "acl_users:check": "account={acl_user}&action=consume&topic={topic}&group={group}"
    "&address=10.0.0.1",
    "api-who-may": "resource=topics&action=write&name={topic}&cluster=local",
    "api-messages": "topic={topic}",
    "api-messages-find": "q={msg_id}&topic={topic}",
    "api-history": "metric=lag&group={group}",
    "api-offsets": "topic={topic}",
    "message:export": "topic={topic}",
}


def pages(home: Path, ask: Ask, topic: str = TOPIC, group: str = GROUP) -> list[str]:
    """Return the addresses, without the leading slash; `ask` returns the JSON of an API path."""
    return _addresses(home, find_objects(ask, topic, group))


def chosen(addresses: Iterable[str], text: str) -> list[str]:
    """Return the addresses with a text; the text may begin with the slash of an address."""
    return [each for each in addresses if text in f"/{each}"]


def check_chosen(home: Path, text: str) -> None:
    """Raise ValueError with all addresses for a text that is in none of them."""
    found = {name: f"<{name}>" for name in SOURCES} | {"topic": TOPIC, "group": GROUP}
    known = _addresses(home, found)
    if not chosen(known, text):
        listed = "\n".join(f"  {each}" for each in known)
        raise ValueError(f"no address contains {text!r}; the addresses:\n{listed}")


def arguments_of(route: str, names: Iterable[str], found: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments of a route; without those whose object does not exist."""
    arguments = {}
    for name in names:
        kinds = (
            kind
            for begin, argument, kind in OBJECTS
            if argument == name and route.startswith(begin)
        )
        kind = next(kinds, name)
        known = found.get(kind, NAMES.get(kind))
        if known is not None:
            arguments[name] = known
    return arguments


def _addresses(home: Path, found: Mapping[str, str]) -> list[str]:
    # Django reads its settings once, from the environment of this process.
    os.environ["GANTRY_HOME"] = str(home)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    import django

    django.setup()
    from tests.support.routes import Route, routes

    def address(route: Route) -> str:
        """The address of a route; empty for a route that is not measured."""
        if "get" not in route.methods or route.is_classic or route.name in LEFT_OUT:
            return ""
        arguments = arguments_of(route.name, route.arguments, found)
        if arguments.keys() != route.arguments.keys():
            return ""
        query = QUERIES.get(route.name, "")
        try:
            query = query.format_map(found)
        except KeyError:
            return ""
        return route.path(arguments).lstrip("/") + (f"?{query}" if query else "")

    paths = [path for path in map(address, routes()) if path]
    return list(dict.fromkeys([*paths, *variants(found["topic"], found["group"])]))


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
        f"{CLUSTER}/acl-users/?q=user-042&page=2",
        f"{CLUSTER}/acl-accounts/?page=40",
        f"{CLUSTER}/jobs/?page=10",
        f"{CLUSTER}/dlq/{group}/?text=order",
        f"{API}/acl-users?limit=500",
        f"{API}/acl-accounts?limit=500",
        f"{API}/jobs?limit=500",
        f"{API}/alarms?limit=500",
        f"{API}/dlq/{group}/messages?limit=100",
        "audit/?user=person-042",
        "api/v1/audit?limit=500",
        "accounts/users/?page=10",
    )
