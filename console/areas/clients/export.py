"""Exports of the client list and of the producer group list."""

from django.utils.translation import gettext_lazy as _

from console.areas.clients import listing
from console.areas.clients.api import ConnectedSerializer, ProducerGroupSerializer
from console.frame.tables import TableQuery
from console.gateway import Cluster
from console.gateway.clients import all_clients, producer_groups
from console.services.exports.tables import PART_ROWS, Asked, Found, Part, Table, batched


def list_clients(cluster: Cluster, request: Asked) -> Found:
    answer = cluster.ask(all_clients)
    query = TableQuery(listing.COLUMNS, request.search, request.ordering, 1)
    rows = query.ordered(listing.passing(answer.value.clients, request.chosen, request.search))
    parts = (
        Part(list(ConnectedSerializer(part, many=True).data)) for part in batched(rows, PART_ROWS)
    )
    return Found(len(rows), parts, answer.failures, answer.value.left_out)


def list_producers(cluster: Cluster, request: Asked) -> Found:
    answer = cluster.ask(producer_groups)
    query = TableQuery(listing.PRODUCER_COLUMNS, request.search, request.ordering, 1)
    rows = query.ordered(query.matching(answer.value))
    parts = (
        Part(list(ProducerGroupSerializer(part, many=True).data))
        for part in batched(rows, PART_ROWS)
    )
    return Found(len(rows), parts, answer.failures)


TABLES = (
    Table(
        name="clients",
        title=_("Clients"),
        page="clients:list",
        columns=tuple(ConnectedSerializer().fields),
        found=list_clients,
        listing=listing.COLUMNS,
        choice="role",
        choices=listing.ROLES,
    ),
    Table(
        name="producers",
        title=_("Producers"),
        page="clients:producers",
        columns=tuple(ProducerGroupSerializer().fields),
        found=list_producers,
        listing=listing.PRODUCER_COLUMNS,
    ),
)
