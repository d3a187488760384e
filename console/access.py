"""Who may do what. Pages, REST resources and feeds all ask here, and nothing is open by default.

Every request needs something: OPEN (nobody has to be signed in), READ or WRITE. A view says so
with `@needs(...)`; without it, a safe method needs READ and any other needs WRITE. A signed-in
user may read; staff may write.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django.utils.translation import gettext as _
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

View = TypeVar("View", bound=Callable[..., Any])


class Need(Enum):
    OPEN = "open"
    READ = "read"
    WRITE = "write"


def may(user: AbstractBaseUser | AnonymousUser | None, need: Need) -> bool:
    """Decide. This is the only place that looks at a user's rights."""
    if need is Need.OPEN:
        return True
    if user is None or not user.is_authenticated or not user.is_active:
        return False
    return need is Need.READ or bool(getattr(user, "is_staff", False))


def needs(need: Need) -> Callable[[View], View]:
    """Declare on a view, or a view class, what its requests need."""

    def declare(view: View) -> View:
        view.need = need  # type: ignore[attr-defined]
        return view

    return declare


def need_of(view: object, method: str | None) -> Need:
    """What a request to `view` needs: what it declares, else what the method implies."""
    declared = getattr(view, "need", None) or getattr(
        getattr(view, "view_class", None), "need", None
    )
    if isinstance(declared, Need):
        return declared
    return Need.READ if method in SAFE_METHODS else Need.WRITE


class AccessMiddleware:
    """Holds every page to `may`; REST resources are held by `ApiAccess`, which answers in JSON."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        if hasattr(view, "cls"):  # a REST resource
            return None
        need = need_of(view, request.method)
        if may(request.user, need):
            return None
        if request.user.is_authenticated:
            context = {
                "title": _("Not allowed"),
                "reason": _("Your account may look at everything here, but not change it."),
            }
            return render(request, "errors/forbidden.html", context, status=403)
        return to_sign_in(request)


def to_sign_in(request: HttpRequest) -> HttpResponse:
    """Send the person to sign in and then back to the page they were on."""
    login = resolve_url(settings.LOGIN_URL)
    htmx = getattr(request, "htmx", None)
    if htmx:
        # The part that was asked for is not a page: come back to the page that asked for it.
        query = urlencode({"next": htmx.current_url_abs_path or "/"})
        return HttpResponse(status=401, headers={"HX-Redirect": f"{login}?{query}"})
    target = request.get_full_path() if request.method in SAFE_METHODS else "/"
    return HttpResponseRedirect(f"{login}?{urlencode({'next': target})}")


class ApiAccess(BasePermission):
    """The same decision for REST resources."""

    def has_permission(self, request: Request, view: object) -> bool:
        return may(request.user, need_of(view, request.method))
