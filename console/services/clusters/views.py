"""Pages of the area `clusters`."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.environment import ClusterMark
from console.frame.access import Need, needs
from console.frame.areas import areas
from console.frame.column_choice import read_choice
from console.frame.pages import ClusterPage, Crumb, Page, may_enter, readable_clusters
from console.frame.tables import Column, Columns
from console.gateway import Answer, Cluster, GatewayError
from console.gateway.brokers.listing import (
    BrokerDetail,
    broker_details,
    broker_rows,
    name_servers,
)
from console.gateway.dead_letters.causes import DeadLetterCause, newest_causes, newest_ms
from console.gateway.overview import DeadLetters, Overview, overview
from console.services.clusters.hosts import are_shared, by_host
from console.web.dependencies import redis_problem

#: Maximum number of groups with dead letters on the overview.
DEAD_LETTER_GROUPS_SHOWN = 5
#: Maximum number of clusters queried in parallel for the home page.
PARALLEL_CLUSTERS_MAX = 16


@dataclass(frozen=True, slots=True)
class ClusterCard:
    """A cluster on the home page: the overview, or the error of the request."""

    cluster: Cluster
    answer: Answer[Overview] | None
    trouble: GatewayError | None
    mark: ClusterMark | None

    @property
    def state(self) -> str:
        """`up`, `partly` when a broker or name server failed, or `down`."""
        if self.answer is None or not self.answer.value.up:
            return "down"
        return "partly" if self.answer.failures else "up"


@needs(Need.SIGNED_IN)
class HomePage(Page):
    """The readable clusters; with a single one, redirects to the overview of the cluster.

    Without a readable cluster, redirects to the first page that the user may open.
    """

    template = "clusters/home.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        clusters = readable_clusters(request.user)
        if not clusters and (first := _first_page(request)):
            return redirect(first)
        if len(clusters) == 1:
            return redirect("clusters:overview", cluster=clusters[0].name)
        # In parallel: the page waits for the slowest cluster, not for the sum of all timeouts.
        with ThreadPoolExecutor(PARALLEL_CLUSTERS_MAX) as pool:
            cards = list(pool.map(_card, clusters))
        return self.show(title=_("Clusters"), cards=cards)


def _first_page(request: HttpRequest) -> str | None:
    pages = (
        area.start_url(name)
        for name in settings.CONSOLE_CLUSTERS
        for area in areas()
        if area.in_navigation and not area.parent and may_enter(request.user, area, name)
    )
    return next((page for page in pages if page), None)


def _card(cluster: Cluster) -> ClusterCard:
    mark = settings.CONSOLE_CLUSTER_MARKS.get(cluster.name)
    try:
        return ClusterCard(cluster, cluster.ask(overview), None, mark)
    except GatewayError as trouble:
        return ClusterCard(cluster, None, trouble, mark)
    finally:
        connection.close()  # of this thread: the known brokers are in the database


class OverviewPage(ClusterPage):
    """Rates, brokers and groups with the highest lag; `overview.js` updates the page live."""

    template = "clusters/overview.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        answer = self.cluster.ask(overview)
        return self.show(
            title=_("Overview"),
            answer=answer,
            overview=answer.value,
            failures=answer.failures,
            dead_letter_groups=dead_letter_groups(self.cluster, answer.value),
            redis_problem=redis_problem(),
        )


class HighestLagPart(ClusterPage):
    """The groups with the highest lag; the overview page polls this part."""

    template = "clusters/highest_lag.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        answer = self.cluster.ask(overview)
        return self.show(
            title=_("Highest lag"),
            overview=answer.value,
            failures=answer.failures,
            dead_letter_groups=dead_letter_groups(self.cluster, answer.value),
        )


def dead_letter_groups(
    cluster: Cluster, overview: Overview
) -> list[tuple[DeadLetters, DeadLetterCause | None]]:
    """The groups with the most dead letters, with the cause of the newest dead letter."""
    shown = (overview.dead_letters or ())[:DEAD_LETTER_GROUPS_SHOWN]
    read = tuple((row.group, row.newest_ms) for row in shown)
    causes = cluster.ask(newest_causes, read).value
    known = [(row, causes.get(row.group)) for row in shown]
    return [(replace(row, newest_ms=newest_ms(row.newest_ms, why)), why) for row, why in known]


BROKER_COLUMNS: Columns[Any] = Columns(
    Column("broker", gettext_lazy("Broker")),
    Column("role", gettext_lazy("Role")),
    Column("version", gettext_lazy("Version")),
    Column("in_rate", gettext_lazy("Produce rate"), numeric=True),
    Column("out_rate", gettext_lazy("Consume rate"), numeric=True),
    Column("stored", gettext_lazy("Stored"), numeric=True),
    Column("disk", gettext_lazy("Disk"), numeric=True),
    Column("oldest", gettext_lazy("Oldest message")),
    Column("started", gettext_lazy("Started")),
)


class BrokersPage(ClusterPage):
    template = "clusters/brokers.html"
    part = "clusters/broker_rows.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        answer = self.cluster.ask(broker_rows)
        choice = read_choice(request, "brokers", BROKER_COLUMNS)
        hosts = by_host(answer.value)
        return self.show(
            title=_("Brokers"),
            answer=answer,
            hosts=hosts,
            shows_hosts=are_shared(hosts),
            refs=[row.ref for row in answer.value],
            choice=choice,
            shows=choice.shown,
            columns=[each for each in BROKER_COLUMNS if choice.shown[each.name]],
        )


class BrokerPage(ClusterPage):
    """One broker name: processes with runtime metrics and settings."""

    template = "clusters/broker.html"

    def get(self, request: HttpRequest, cluster: str, broker: str) -> HttpResponse:
        answer = self.cluster.ask(broker_details, broker)
        shown = _shown(answer.value, request.GET.get("id", ""))
        search = request.GET.get("q", "").strip()
        return self.show(
            title=broker,
            crumbs=[
                Crumb(_("Brokers"), reverse("clusters:brokers", kwargs={"cluster": cluster})),
                Crumb(broker),
            ],
            answer=answer,
            processes=answer.value,
            shown=shown,
            search=search,
            settings_shown=_settings(shown, search),
        )


def _shown(processes: tuple[BrokerDetail, ...], broker_id: str) -> BrokerDetail:
    """The process with the broker id, else the first process."""
    return next(
        (process for process in processes if str(process.row.ref.id) == broker_id), processes[0]
    )


def _settings(detail: BrokerDetail, search: str) -> list[tuple[str, Any]]:
    words = search.lower().split()
    return [
        (key, value)
        for key, value in detail.settings.items()
        if all(word in f"{key} {value}".lower() for word in words)
    ]


class NameServersPage(ClusterPage):
    template = "clusters/name_servers.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        answer = self.cluster.ask(name_servers)
        return self.show(title=_("Name servers"), answer=answer, servers=answer.value)
