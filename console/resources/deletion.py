"""Deletion of resources with their labels; bulk deletion: preview and execution."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from rest_framework.request import Request

from console.audit.recording import audited
from console.gateway import Cluster, GatewayError
from console.gateway.changes import BrokerOutcome
from console.resources import bulk, labels
from console.resources.models import Kind
from console.resources.protection import NeedsName, Protected, check_deletable, protected
from console.resources.resource import Resource
from core_broker.message.topics import dlq_topic, retry_topic


def delete_one(
    cluster: Cluster, resource: Resource, name: str, **given: Any
) -> Sequence[BrokerOutcome]:
    """Delete a resource, and its labels unless a broker failed; `given` are keywords of the kind's
    command. The topics of a group go with the group, and so do the labels of the topics."""
    outcomes = cluster.do(resource.delete, name, **given)
    if all(each.error is None for each in outcomes):
        labels.forget(cluster.name, resource.kind, name)
        if resource.kind is Kind.GROUP:
            labels.forget(cluster.name, Kind.TOPIC, retry_topic(name))
            if given.get("dead_letters"):
                labels.forget(cluster.name, Kind.TOPIC, dlq_topic(name))
    return outcomes


def preview(cluster: Cluster, resource: Resource, names: Sequence[str]) -> list[bulk.ItemResult]:
    """The expected result per name; nothing is deleted."""
    protected_names = protected(cluster.name, resource.kind, names)
    return [
        _preview(cluster, resource, name, name in protected_names) for name in dict.fromkeys(names)
    ]


def _preview(
    cluster: Cluster, resource: Resource, name: str, is_protected: bool
) -> bulk.ItemResult:
    if is_protected:
        return bulk.ItemResult(name, "failed", str(_("protected")), Protected.kind)
    try:
        clients = _clients(cluster, resource, name)
    except GatewayError as trouble:
        return bulk.ItemResult(name, "failed", str(trouble.detail), trouble.kind)
    text = _("%d clients are connected") % clients if clients else None
    return bulk.ItemResult(name, "would", text, NeedsName.kind if clients else None)


def delete_all(
    request: HttpRequest | Request,
    cluster: Cluster,
    resource: Resource,
    names: Sequence[str],
    *,
    confirmed: bool,
) -> list[bulk.ItemResult]:
    """Delete all unprotected resources; resources with connected clients only if `confirmed`."""

    def delete(name: str) -> Sequence[BrokerOutcome]:
        check_deletable(cluster.name, resource.kind, name)
        if not confirmed and (clients := _clients(cluster, resource, name)):
            raise NeedsName(_("%d clients are connected.") % clients)
        return delete_one(cluster, resource, name)

    target = ", ".join(dict.fromkeys(names))
    action = resource.action("delete-many")
    with audited(request, action, cluster=cluster.name, target=target) as entry:
        results = bulk.apply_each(names, delete)
        entry.outcomes(results)
    return results


def _clients(cluster: Cluster, resource: Resource, name: str) -> int | None:
    clients: int | None = cluster.ask(resource.impact, name).value.clients
    return clients
