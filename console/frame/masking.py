"""What readers see: fields of messages, and names of topics and groups.

The rules of masked fields come from `console.services.masking`. The action `unmasked` of the
resource `messages` shows the fields of the permitted topics. Views ask clusters through
`cluster_for`, so that questions return masked messages; jobs store what their user sees (`seen_by`)
and apply the rules of the time of their work (`mask_of_job`).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from django.http import HttpRequest
from rest_framework.request import Request

from console.frame.access import Need, layers_of, may, readable_names
from console.frame.permissions import Action, Scope, Target
from console.gateway import Cluster, gateway
from console.gateway.messages.masks import HIDDEN, Mask, MaskRule
from console.gateway.names_seen import NamesSeen

RESOURCE = "messages"
#: Resource of brokers and name servers: its permission includes no name of a topic or group.
CLUSTERS = "clusters"
#: Parameters with text of messages.
VALUE_PARAMETERS = frozenset({"body", "body_base64", "key", "keys", "properties", "sql", "text"})


def rules_of(cluster: str) -> tuple[MaskRule, ...]:
    """Return the enabled rules of a cluster. Reads the database."""
    return gateway.mask_rules(cluster) if gateway.mask_rules is not None else ()


def seen_by(user: Any, cluster: str) -> tuple[tuple[str, ...], ...]:
    """Return the topic patterns that a user sees unmasked, per layer of permissions."""
    target = Target(RESOURCE, cluster, Scope.SOME)
    return tuple(
        tuple(each.names for each in layer if each.allows(Action.UNMASKED, target))
        for layer in layers_of(user)
    )


def mask_of(user: Any, cluster: str) -> Mask:
    """Return the mask of a user in a cluster. Reads the database."""
    return Mask(rules_of(cluster), seen_by(user, cluster))


def mask_of_job(cluster: str, seen: Sequence[Sequence[str]]) -> Mask:
    """Return the mask of stored patterns, with the present rules."""
    return Mask(rules_of(cluster), tuple(map(tuple, seen)))


def mask_of_everybody(cluster: str) -> Mask:
    """Return the mask of readers without any permission, for the audit list."""
    return Mask(rules_of(cluster))


def without_values(cluster: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return request parameters for the audit list. In a cluster with rules, texts that a user
    searched for or wrote into a message are replaced: they may be values of masked fields."""
    if not rules_of(cluster):
        return dict(parameters)
    return {
        name: without_values(cluster, value)
        if isinstance(value, Mapping)
        else HIDDEN
        if value and name in VALUE_PARAMETERS
        else value
        for name, value in parameters.items()
    }


def cluster_for(request: HttpRequest | Request, name: str, resource: str) -> Cluster:
    """Return a cluster whose answers show what the user of the request may see: masked messages,
    and names of topics and groups that a permission includes. `resource` is that of the page."""
    cluster = gateway.cluster(name)
    cluster.mask = cache(lambda: mask_of(request.user, cluster.name))
    cluster.names = names_seen(request.user, cluster.name, resource)
    return cluster


def names_seen(user: Any, cluster: str, resource: str) -> NamesSeen | None:
    """Return the names that a user sees on pages of a resource; None: all of them.

    A permission for the name's own resource or for the page's resource includes a name: with
    `groups:read:pay-*`, a page of a group shows the topics `pay-…`, and with `topics:read` all.
    The pages of a cluster, such as the overview, need a permission for the name's own resource.
    """
    tests: dict[str, Callable[[str], bool]] = {}
    for own in ("topics", "groups"):
        named = {own} if resource == CLUSTERS else {own, resource}
        if not any(may(user, Need.READ, Target(each, cluster)) for each in named):
            tests[own] = _any_of([readable_names(user, each, cluster) for each in named])
    if not tests:
        return None
    return NamesSeen(tests.get("topics", _every), tests.get("groups", _every))


def _any_of(tests: Sequence[Callable[[str], bool]]) -> Callable[[str], bool]:
    return cache(lambda name: any(test(name) for test in tests))


def _every(_name: str) -> bool:
    return True
