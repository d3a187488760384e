"""Base classes of all pages, and the shared context of templates.

A page is a class:

    class TopicListPage(ClusterPage):
        template = "topics/list.html"     # the complete page, extends "page.html"
        part = "topics/list_rows.html"    # the fragment that htmx swaps; optional

        def get(self, request, cluster):
            answer = self.cluster.ask(topic_rows)
            return self.show(title=_("Topics"), answer=answer)

A gateway error becomes a page with the error's status, cause and hint
(`console/web/error_pages.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, ParamSpec, TypeVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import get_script_prefix
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django.views import View
from rest_framework.request import Request

from console.frame.access import Need, may, readable_names, role_of
from console.frame.areas import AreaConfig, areas
from console.frame.column_choice import ColumnChoice
from console.frame.masking import cluster_for
from console.frame.own_disks import own_disks
from console.frame.permissions import Scope, Target
from console.frame.targets import target_of
from console.gateway import Answer, BrokerFailure, Cluster, ClusterUnreachable, gateway, now_ms
from console.gateway.engine.questions import Question
from console.project_files import COMMAND

P = ParamSpec("P")
T = TypeVar("T")

THEME_COOKIE = "gantry_theme"
THEMES = ("auto", "light", "dark")


@dataclass(frozen=True, slots=True)
class Crumb:
    """One step of the breadcrumbs; the step of the current page has no URL."""

    label: str
    url: str | None = None


class Page(View):
    """A page that is complete without JavaScript. htmx may request the fragment `part` alone."""

    template: ClassVar[str]
    part: ClassVar[str] = ""
    #: Label of the area in the navigation, for a page in the frame of another area.
    area: ClassVar[str] = ""

    def show(
        self, *, title: str, crumbs: Sequence[Crumb] | None = None, status: int = 200, **more: Any
    ) -> HttpResponse:
        """Render the page, or `part` for htmx; `crumbs` defaults to the title.

        A `ColumnChoice` as `choice` has the columns of the page's list; a choice in the address is
        remembered.
        """
        partial = bool(self.part) and bool(getattr(self.request, "htmx", False))
        template = self.part if partial else self.template
        shown_crumbs = [Crumb(title)] if crumbs is None else crumbs
        context = {**self.shared_context(), "title": title, "crumbs": shown_crumbs, **more}
        response = render(self.request, template, context, status=status)
        choice = more.get("choice")
        if isinstance(choice, ColumnChoice):
            choice.remember(response)
        patch_vary_headers(response, ["HX-Request"])
        return response

    def shared_context(self) -> dict[str, Any]:
        return {}


class ClusterPage(Page):
    """A page of one cluster; `self.cluster` is the gateway to the cluster."""

    cluster: Cluster

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        resource = target_of(type(self), kwargs, request.GET).resource
        self.cluster = cluster_for(request, kwargs["cluster"], resource)

    def shared_context(self) -> dict[str, Any]:
        return {"cluster": self.cluster}

    def ask_if_up(
        self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> tuple[T | None, tuple[BrokerFailure, ...]]:
        """Return the answer and its failures; None while no broker answers.

        For the parts of a page that has other values to show during an outage.
        """
        try:
            answer = self.cluster.ask(question, *args, **kwargs)
        except ClusterUnreachable as trouble:
            return None, trouble.failures
        return answer.value, answer.failures


def page_context(request: HttpRequest) -> dict[str, Any]:
    """Context processor: context of the layout around every page."""
    match = request.resolver_match
    cluster = _cluster_of(request)
    here = match.app_names[0] if match and match.app_names else ""
    here = getattr(getattr(match and match.func, "view_class", None), "area", "") or here
    user = getattr(request, "user", None)
    visible = [area for area in areas() if may_enter(user, area, cluster)]
    target = target_of(match.func, match.kwargs, request.GET) if match else Target("")
    entry = next((area.entry for area in visible if area.label == here), here)
    may_write, read_only = may(user, Need.WRITE, target), _read_only(cluster)
    return {
        "nav_areas": [
            {
                "title": area.title,
                "icon": area.icon,
                "url": area.start_url(cluster),
                "active": area.label == entry,
            }
            for area in visible
            if area.in_navigation and not area.parent
        ],
        "area_tabs": [
            {"title": area.tab, "url": area.start_url(cluster), "current": area.label == here}
            for area in visible
            if area.tab and area.entry == entry
        ],
        "nav_cluster": cluster,
        "command": COMMAND,
        "feeds": f"{get_script_prefix()}ws/",
        "cluster_names": list(settings.CONSOLE_CLUSTERS),
        "cluster_mark": settings.CONSOLE_CLUSTER_MARKS.get(cluster or ""),
        "role": role_of(user),
        "read_only": read_only,
        "own_disk_full": own_disks().is_full,
        "may_export": may_write,
        "may_write": may_write and not read_only,
        "may_administer": may(user, Need.ADMIN, target),
        "now_ms": now_ms(),
        "theme": theme_of(request),
        "themes": THEMES,
        "languages": settings.LANGUAGES,
    }


def only_readable(
    request: HttpRequest | Request,
    resource: str,
    cluster: Cluster,
    answer: Answer[tuple[T, ...]],
    attribute: str = "name",
) -> Answer[tuple[T, ...]]:
    """Return the rows of a list that the user may read."""
    test = readable_names(request.user, resource, cluster.name)
    return replace(answer, value=tuple(e for e in answer.value if test(getattr(e, attribute))))


def may_enter(user: Any, area: AreaConfig, cluster: str | None) -> bool:
    """True when the user may open some page of the area, in the cluster or without cluster."""
    place = Scope.EVERY if area.scope == "console" else cluster or Scope.SOME
    return may(user, Need(area.need), Target(area.resource, place, Scope.SOME))


def readable_clusters(user: Any) -> list[Cluster]:
    """Return the clusters whose overview the user may read."""
    return [
        cluster
        for cluster in gateway.clusters()
        if may(user, Need.READ, Target("clusters", cluster.name, Scope.SOME))
    ]


def _cluster_of(request: HttpRequest) -> str | None:
    """Return the cluster in the URL, else the first cluster: navigation links need a cluster."""
    match = request.resolver_match
    named = match.kwargs.get("cluster") if match else None
    if named in settings.CONSOLE_CLUSTERS:
        return str(named)
    return next(iter(settings.CONSOLE_CLUSTERS), None)


def _read_only(cluster: str | None) -> bool:
    return cluster in settings.CONSOLE_CLUSTERS and gateway.cluster(str(cluster)).is_read_only


def theme_of(request: HttpRequest) -> str:
    chosen = request.COOKIES.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else THEMES[0]


def forbidden(request: HttpRequest, reason: str) -> HttpResponse:
    """Render the page of a denied request, with status 403."""
    context = {"title": _("Not allowed"), "reason": reason}
    return render(request, "errors/forbidden.html", context, status=403)
