"""Error pages of Django's handlers and of gateway errors; problem+json below /api/."""

import sys
from collections.abc import Callable
from http import HTTPStatus

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.http.request import split_domain_port
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from console.api.problems import CONTENT_TYPE as PROBLEM_TYPE
from console.api.problems import problem
from console.frame.access import page_before
from console.frame.own_disks import refusals
from console.frame.pages import theme_of
from console.frame.read_only import trouble_page
from console.gateway import GatewayError

API_PREFIX = "/api/"
HOST_CHARS_MAX = 255


class ClusterTroubleMiddleware:
    """Renders a gateway error as a page with cause and remedy."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, GatewayError):
            return None
        return trouble_page(request, error)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Render the page for a form without valid CSRF token: an old page, or another site."""
    context = {"title": _("Not allowed"), "back": page_before(request)}
    return render(request, "errors/old_form.html", context, status=403)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.path_info.startswith(API_PREFIX):
        return api_problem(request, "not-found", 404, _("This page does not exist."))
    return render(request, "errors/not_found.html", {"title": _("No such page")}, status=404)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    is_host = isinstance(exception, DisallowedHost)
    reason = _("Invalid request: %(problem)s") % {"problem": exception}
    if is_host:
        reason = _("The console has no host name “%(host)s” (setting CONSOLE_ALLOWED_HOSTS).") % {
            "host": _name_of(request.META.get("HTTP_HOST", ""))[:HOST_CHARS_MAX]
        }
    if request.path_info.startswith(API_PREFIX):
        return api_problem(request, "bad-request", 400, reason)
    if is_host:
        context = {"title": _("Unknown host name"), "reason": reason}
        return render(request, "errors/unknown_host.html", context, status=400)
    return render(
        request, "errors/forbidden.html", {"title": _("Bad request"), "reason": reason}, status=400
    )


def _name_of(host: str) -> str:
    """Return a Host header without the port; an unusable header unchanged."""
    return split_domain_port(host)[0] or host


def page_failed(request: HttpRequest) -> HttpResponse:
    if refusals.note(sys.exc_info()[1]):
        return disk_full(request)
    if request.path_info.startswith(API_PREFIX):
        return api_problem(request, "fault", 500, _("The console failed; its log has the details."))
    return render(request, "errors/failed.html", {"title": _("The console failed")}, status=500)


def disk_full(request: HttpRequest) -> HttpResponse:
    """Answer that a disk of the console has no space; the page needs no database itself."""
    reason = _("A disk of the console is full: the console could not save the request.")
    status = HTTPStatus.INSUFFICIENT_STORAGE
    if request.path_info.startswith(API_PREFIX):
        return api_problem(request, "disk-full", status, reason)
    context = {
        "title": _("A disk of the console is full"),
        "reason": reason,
        "theme": theme_of(request),
    }
    return HttpResponse(render_to_string("errors/disk_full.html", context), status=status)


def api_problem(request: HttpRequest, kind: str, status: int, detail: str) -> HttpResponse:
    """Return a problem+json response for an error outside of REST resources."""
    body = problem(kind, HTTPStatus(status).phrase, status, detail)
    return JsonResponse(
        {**body, "instance": request.path}, status=status, content_type=PROBLEM_TYPE
    )
