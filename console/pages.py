"""What every page shares: its base classes, the frame's context, and how trouble is shown.

A page is a class:

    class TopicListPage(ClusterPage):
        template = "topics/list.html"     # the whole page, extends "page.html"
        part = "topics/list_rows.html"    # what htmx swaps; optional

        def get(self, request, cluster):
            answer = self.cluster.ask(topic_rows)
            return self.show(title=_("Topics"), answer=answer)

Whatever the gateway raises on the way becomes a page with the right status, the cause and a hint.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import get_script_prefix
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django.views import View

from console.access import Need, may, role_of
from console.api.problems import CONTENT_TYPE as PROBLEM_TYPE
from console.api.problems import problem
from console.areas import areas
from console.gateway import Cluster, GatewayError, gateway, now_ms

API_PREFIX = "/api/"
THEME_COOKIE = "gantry_theme"
THEMES = ("auto", "light", "dark")


@dataclass(frozen=True, slots=True)
class Crumb:
    """One step of the breadcrumbs; the page itself has no address."""

    label: str
    url: str | None = None


class Page(View):
    """A page that is complete without JavaScript, and whose parts htmx may ask for alone."""

    template: ClassVar[str]
    part: ClassVar[str] = ""

    def show(
        self, *, title: str, crumbs: Sequence[Crumb] | None = None, status: int = 200, **more: Any
    ) -> HttpResponse:
        """The page, or its part for htmx; without `crumbs` the title is the last of them."""
        partial = bool(self.part) and bool(getattr(self.request, "htmx", False))
        template = self.part if partial else self.template
        shown_crumbs = [Crumb(title)] if crumbs is None else crumbs
        context = {**self.shared_context(), "title": title, "crumbs": shown_crumbs, **more}
        response = render(self.request, template, context, status=status)
        patch_vary_headers(response, ["HX-Request"])
        return response

    def shared_context(self) -> dict[str, Any]:
        return {}


class ClusterPage(Page):
    """A page about one cluster: `self.cluster` answers its questions."""

    cluster: Cluster

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        self.cluster = gateway.cluster(kwargs["cluster"])

    def shared_context(self) -> dict[str, Any]:
        return {"cluster": self.cluster}


def page_context(request: HttpRequest) -> dict[str, Any]:
    """Context processor: what the frame around every page needs."""
    match = request.resolver_match
    cluster = _cluster_of(request)
    here = match.app_names[0] if match and match.app_names else ""
    user = getattr(request, "user", None)
    return {
        "nav_areas": [
            {
                "title": area.title,
                "icon": area.icon,
                "url": area.start_url(cluster),
                "active": area.label == here,
            }
            for area in areas()
            if area.in_navigation and may(user, Need(area.need))
        ],
        "nav_cluster": cluster,
        "feeds": f"{get_script_prefix()}ws/",
        "cluster_names": list(settings.CONSOLE_CLUSTERS),
        "cluster_mark": settings.CONSOLE_CLUSTER_MARKS.get(cluster or ""),
        "role": role_of(user),
        "may_write": may(user, Need.WRITE),
        "may_administer": may(user, Need.ADMIN),
        "now_ms": now_ms(),
        "theme": theme_of(request),
        "themes": THEMES,
        "languages": settings.LANGUAGES,
    }


def _cluster_of(request: HttpRequest) -> str | None:
    """The cluster in the address; elsewhere the first one, so that the navigation leads on."""
    match = request.resolver_match
    named = match.kwargs.get("cluster") if match else None
    if named in settings.CONSOLE_CLUSTERS:
        return str(named)
    return next(iter(settings.CONSOLE_CLUSTERS), None)


def theme_of(request: HttpRequest) -> str:
    chosen = request.COOKIES.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else THEMES[0]


class ClusterTroubleMiddleware:
    """Turns what the gateway raises into a page that names the cause and what to do."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, GatewayError):
            return None
        partial = bool(getattr(request, "htmx", False))
        template = "errors/trouble_part.html" if partial else "errors/trouble.html"
        context = {"trouble": error, "title": error.title, "crumbs": [Crumb(error.title)]}
        return render(request, template, context, status=error.status)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form came without its token: an old page, or another site."""
    return forbidden(
        request,
        _(
            "The form was opened before you signed in, or came from another address. Reload the "
            "page and try again. Behind a proxy, list the public address in "
            "CONSOLE_TRUSTED_ORIGINS."
        ),
    )


def forbidden(request: HttpRequest, reason: str) -> HttpResponse:
    context = {"title": _("Not allowed"), "reason": reason}
    return render(request, "errors/forbidden.html", context, status=403)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.path_info.startswith(API_PREFIX):
        return api_problem(request, "not-found", 404, _("Nothing is at this address."))
    return render(request, "errors/not_found.html", {"title": _("No such page")}, status=404)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    reason = _("The request cannot be used: %(problem)s") % {"problem": exception}
    if request.path_info.startswith(API_PREFIX):
        return api_problem(request, "bad-request", 400, reason)
    return render(
        request, "errors/forbidden.html", {"title": _("Bad request"), "reason": reason}, status=400
    )


def page_failed(request: HttpRequest) -> HttpResponse:
    if request.path_info.startswith(API_PREFIX):
        return api_problem(request, "fault", 500, _("The console failed; its log has the details."))
    return render(request, "errors/failed.html", {"title": _("The console failed")}, status=500)


def api_problem(request: HttpRequest, kind: str, status: int, detail: str) -> HttpResponse:
    """An error that arose outside of any resource, in the API's shape."""
    body = problem(kind, HTTPStatus(status).phrase, status, detail)
    return JsonResponse(
        {**body, "instance": request.path}, status=status, content_type=PROBLEM_TYPE
    )
