"""Who may do what. Pages, REST resources and feeds all ask here, and nothing is open by default.

Every request needs something: OPEN (nobody has to be signed in), READ, WRITE or ADMIN. A view says
so with `@needs(...)`; without it, a safe method needs READ and any other needs WRITE. Each account
has one role, kept in the database: a viewer may read, an operator may write too, an administrator
may do everything. An API token has a role of its own, which never counts for more than its owner's.

A request that the role of a signed-in user does not allow sends the signal `access_denied`, from
which `console.audit` keeps a row.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from django.dispatch import Signal
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django.urls import get_script_prefix
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

#: Sent for each request that a role does not allow, with `request`, `user` and `need` (a Need).
access_denied = Signal()

View = TypeVar("View", bound=Callable[..., Any])


class Need(Enum):
    OPEN = "open"
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class Role(models.TextChoices):
    """What an account, or a token, may do. Each role may do all that those before it may."""

    VIEWER = "viewer", gettext_lazy("Viewer")
    OPERATOR = "operator", gettext_lazy("Operator")
    ADMINISTRATOR = "administrator", gettext_lazy("Administrator")

    @property
    def rank(self) -> int:
        return list(Role).index(self)

    @property
    def meaning(self) -> str:
        return str(_MEANINGS[self])

    def within(self, other: "Role") -> "Role":
        """The lesser of the two."""
        return min(self, other, key=lambda role: role.rank)


_MEANINGS = {
    Role.VIEWER: gettext_lazy("May look at everything, and change nothing."),
    Role.OPERATOR: gettext_lazy(
        "May also send messages, resend dead letters, reset offsets, run jobs, create and edit "
        "topics and groups."
    ),
    Role.ADMINISTRATOR: gettext_lazy(
        "May also delete topics and groups, change brokers, and manage users."
    ),
}
_LEAST = {Need.READ: Role.VIEWER, Need.WRITE: Role.OPERATOR, Need.ADMIN: Role.ADMINISTRATOR}


def role_of(user: AbstractBaseUser | AnonymousUser | None) -> "Role | None":
    """The role that counts for this request; None for nobody, or an account that is off.

    An account without a profile is a viewer. It reads the database, so a feed asks in a thread.
    """
    if user is None or not user.is_authenticated or not user.is_active:
        return None
    profile = getattr(user, "profile", None)
    own = Role.VIEWER if profile is None else Role(profile.role)
    of_token: Role | None = getattr(user, "token_role", None)
    return own if of_token is None else own.within(of_token)


def may(user: AbstractBaseUser | AnonymousUser | None, need: Need) -> bool:
    """Decide. This is the only place that compares a role with what is needed."""
    if need is Need.OPEN:
        return True
    role = role_of(user)
    return role is not None and role.rank >= _LEAST[need].rank


def needs(need: Need) -> Callable[[View], View]:
    """Declare on a view, a view class, or one of its methods, what its requests need."""

    def declare(view: View) -> View:
        view.need = need  # type: ignore[attr-defined]
        return view

    return declare


def need_of(view: object, method: str | None) -> Need:
    """What a request to `view` needs: what it declares, else what the method implies."""
    owner = getattr(view, "view_class", None) or getattr(view, "cls", None) or view
    handler = getattr(owner, (method or "").lower(), None)
    for declared in (getattr(handler, "need", None), getattr(owner, "need", None)):
        if isinstance(declared, Need):
            return declared
    if isinstance(need := getattr(view, "need", None), Need):
        return need
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
        if request.user.is_authenticated and request.user.is_active:
            access_denied.send(AccessMiddleware, request=request, user=request.user, need=need)
            context = {"title": _("Not allowed"), "reason": why_not(request.user, need)}
            return render(request, "errors/forbidden.html", context, status=403)
        return to_sign_in(request)


def to_sign_in(request: HttpRequest) -> HttpResponse:
    """Send the person to sign in and then back to the page they were on."""
    login = resolve_url(settings.LOGIN_URL)
    htmx = getattr(request, "htmx", None)
    if htmx:
        # The part that was asked for is not a page: come back to the page that asked for it.
        query = urlencode({"next": htmx.current_url_abs_path or get_script_prefix()})
        return HttpResponse(status=401, headers={"HX-Redirect": f"{login}?{query}"})
    target = request.get_full_path() if request.method in SAFE_METHODS else get_script_prefix()
    return HttpResponseRedirect(f"{login}?{urlencode({'next': target})}")


def why_not(user: AbstractBaseUser | AnonymousUser, need: Need) -> str:
    """One sentence for whoever was refused: which role they have, and which one it takes."""
    role = role_of(user) or Role.VIEWER
    return _(
        "This takes the role %(least)s; yours is %(role)s. An administrator can change it."
    ) % {
        "least": _LEAST[need].label,
        "role": role.label,
    }


class ApiAccess(BasePermission):
    """The same decision for REST resources."""

    message = ""

    def has_permission(self, request: Request, view: object) -> bool:
        need = need_of(view, request.method)
        if may(request.user, need):
            return True
        if request.user.is_authenticated:
            access_denied.send(ApiAccess, request=request._request, user=request.user, need=need)
            self.message = why_not(request.user, need)
        return False
