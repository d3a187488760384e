"""Columns and filters of the client and producer group lists, shared by page, API and export."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.frame.tables import Column, Columns
from console.gateway.clients import ConnectedClient, ProducerGroup

ROLES: dict[str, Any] = {
    "consumer": pgettext_lazy("clients", "consumers"),
    "producer": pgettext_lazy("clients", "producers"),
}

COLUMNS: Columns[ConnectedClient] = Columns(
    Column("name", _("Client"), lambda client: client.name),
    Column(
        "accounts",
        _("Account"),
        lambda client: client.accounts,
        hint=_("User or access key that signs the requests of the client"),
        optional=True,
    ),
    Column("protocol", _("Protocol"), lambda client: client.protocol, optional=True),
    Column("language", _("Language"), lambda client: client.language),
    Column("version", _("Version"), lambda client: client.version),
    Column(
        "groups",
        _("Consumer groups"),
        lambda client: len(client.groups),
        hint=_("Consumer groups of the client"),
    ),
    Column(
        "producer_groups",
        _("Producer groups"),
        lambda client: len(client.producer_groups),
        hint=_("Producer groups of the client"),
    ),
    Column("brokers", _("Brokers"), lambda client: len(client.brokers)),
    Column(
        "heartbeat_ms",
        _("Last heartbeat"),
        lambda client: client.heartbeat_ms,
        hint=_(
            "Clients send a heartbeat every 30 seconds; brokers close a connection after "
            "120 seconds without a heartbeat"
        ),
    ),
)
PRODUCER_COLUMNS: Columns[ProducerGroup] = Columns(
    Column("name", _("Producer group"), lambda group: group.name),
    Column("clients", _("Clients"), lambda group: group.clients, numeric=True),
    Column("languages", _("Languages"), lambda group: group.languages),
    Column("versions", _("Versions"), lambda group: group.versions),
    Column("brokers", _("Brokers"), lambda group: len(group.brokers)),
    Column("heartbeat_ms", _("Last heartbeat"), lambda group: group.heartbeat_ms),
)


@dataclass(frozen=True, slots=True)
class RoleChip:
    """A filter chip: role and number of clients."""

    role: str
    label: Any
    count: int


def chips(clients: Iterable[ConnectedClient]) -> list[RoleChip]:
    all_clients = list(clients)
    return [
        RoleChip(role, label, sum(role in client.roles for client in all_clients))
        for role, label in ROLES.items()
    ]


def passing(clients: Iterable[ConnectedClient], role: str, search: str) -> list[ConnectedClient]:
    """Clients of a role that match every search word by id, address, account, language, group or
    topic."""
    words = search.lower().split()
    return [
        client
        for client in clients
        if (role not in ROLES or role in client.roles) and (not words or _holds(client, words))
    ]


def _holds(client: ConnectedClient, words: list[str]) -> bool:
    parts = (
        *(client.client_id, client.addr, client.language, client.version, client.protocol),
        *client.accounts,
        *client.groups,
        *client.producer_groups,
        *client.topics,
    )
    text = " ".join(parts).lower()
    return all(word in text for word in words)
