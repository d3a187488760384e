"""Pages of connected clients. The running info of a consumer is a page of the area `groups`."""

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from console.areas.clients import listing
from console.frame.pages import ClusterPage, Crumb
from console.frame.tables import TableQuery
from console.gateway.clients import (
    ConnectedClient,
    all_clients,
    clients_with_id,
    producer_groups,
)
from console.gateway.inventory import offers
from core_broker.remoting.codes import RequestCode

#: Maximum number of group names in a row; further groups are counted.
GROUPS_SHOWN = 4


class ClientListPage(ClusterPage):
    """List of connected clients with groups and last heartbeat."""

    template = "clients/list.html"
    part = "clients/list_rows.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        answer = self.cluster.ask(all_clients)
        clients = answer.value.clients
        role = request.GET.get("role", "")
        query = TableQuery.of_page(request, listing.COLUMNS, table="clients", default="name")
        return self.show(
            title=_("Clients"),
            answer=answer,
            page=query.page(listing.passing(clients, role, query.search)),
            choice=query.choice,
            role=role if role in listing.ROLES else "",
            chips=listing.chips(clients),
            all_count=len(clients),
            groups_left_out=answer.value.left_out,
            groups_shown=GROUPS_SHOWN,
        )


class ConnectedPage(ClusterPage):
    """The connections and groups of a client id."""

    template = "clients/detail.html"

    def get(self, request: HttpRequest, cluster: str, client: str) -> HttpResponse:
        answer = self.cluster.ask(clients_with_id, client)
        return self.show(
            title=client,
            crumbs=[Crumb(_("Clients"), reverse("clients:list", args=[cluster])), Crumb(client)],
            answer=answer,
            found=answer.value,
            can_kick=self.can_kick(answer.value),
        )

    def can_kick(self, clients: tuple[ConnectedClient, ...]) -> bool:
        """Whether a broker of the client can close its connections; Apache's brokers cannot."""
        codes = self.cluster.ask(offers).value
        able = {ref.name for ref, known in codes.items() if RequestCode.KICK_CLIENT in known}
        return any(able & {*client.brokers} for client in clients)


class ProducerListPage(ClusterPage):
    """List of producer groups with connected producers."""

    template = "clients/producers.html"
    part = "clients/producer_rows.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        answer = self.cluster.ask(producer_groups)
        query = TableQuery.of_page(
            request, listing.PRODUCER_COLUMNS, table="producers", default="name"
        )
        page = query.page(query.matching(answer.value))
        return self.show(title=_("Producers"), answer=answer, page=page, choice=query.choice)
