"""Pages of the area `clusters`."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from console.environment import ClusterMark
from console.frame.pages import ClusterPage, Crumb, Page
from console.gateway import Answer, Cluster, GatewayError, gateway
from console.gateway.brokers.listing import (
    BrokerDetail,
    broker_details,
    broker_rows,
    name_servers,
)
from console.gateway.dead_letters.causes import DeadLetterCause, newest_causes
from console.gateway.overview import DeadLetters, Overview, overview
from console.web.dependencies import redis_problem

#: Groups with dead letters that the overview names.
DYING_SHOWN = 5


CLUSTERS_AT_ONCE_MAX = 16


@dataclass(frozen=True, slots=True)
class ClusterCard:
    """A cluster on the home page: its overview, or why there is none."""

    cluster: Cluster
    answer: Answer[Overview] | None
    trouble: GatewayError | None
    mark: ClusterMark | None

    @property
    def state(self) -> str:
        """`up`, `partly` when a broker is silent, or `down`."""
        if self.answer is None or not self.answer.value.brokers:
            return "down"
        return "partly" if self.answer.value.silent else "up"


class HomePage(Page):
    """All clusters; with only one there is nothing to choose."""

    template = "clusters/home.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        clusters = gateway.clusters()
        if len(clusters) == 1:
            return redirect("clusters:overview", cluster=clusters[0].name)
        # Together, so that one that does not answer keeps nobody waiting for the others.
        with ThreadPoolExecutor(CLUSTERS_AT_ONCE_MAX) as pool:
            cards = list(pool.map(_card, clusters))
        return self.show(title=_("Clusters"), cards=cards)


def _card(cluster: Cluster) -> ClusterCard:
    mark = settings.CONSOLE_CLUSTER_MARKS.get(cluster.name)
    try:
        return ClusterCard(cluster, cluster.ask(overview), None, mark)
    except GatewayError as trouble:
        return ClusterCard(cluster, None, trouble, mark)


class OverviewPage(ClusterPage):
    """Rates, brokers and who is behind; `overview.js` makes it live."""

    template = "clusters/overview.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        answer = self.cluster.ask(overview)
        return self.show(
            title=_("Overview"),
            answer=answer,
            overview=answer.value,
            dying=dying(self.cluster, answer.value),
            redis_problem=redis_problem(),
        )


class BehindPart(ClusterPage):
    """The groups with the most messages before them; the overview fetches it again and again."""

    template = "clusters/highest_lag.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        found = self.cluster.ask(overview).value
        return self.show(
            title=_("Highest lag"), overview=found, dying=dying(self.cluster, found)
        )


def dying(cluster: Cluster, found: Overview) -> list[tuple[DeadLetters, DeadLetterCause | None]]:
    """The groups with the most dead letters, each with the reason of its newest one."""
    shown = (found.dead_letters or ())[:DYING_SHOWN]
    reasons = cluster.ask(newest_causes, tuple(each.group for each in shown)).value
    return [(each, reasons.get(each.group)) for each in shown]


class BrokersPage(ClusterPage):
    template = "clusters/brokers.html"
    part = "clusters/broker_rows.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        answer = self.cluster.ask(broker_rows)
        return self.show(title=_("Brokers"), answer=answer, brokers=answer.value)


class BrokerPage(ClusterPage):
    """One broker name: its processes, what they tell about themselves, how they are set."""

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


def _shown(processes: tuple[BrokerDetail, ...], wanted: str) -> BrokerDetail:
    """The process with the id that was asked for, else the first one."""
    return next((one for one in processes if str(one.row.ref.id) == wanted), processes[0])


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
