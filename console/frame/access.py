"""Access control of pages, REST resources and feeds. Nothing is open by default.

A request needs OPEN (no sign-in), SIGNED_IN, READ, WRITE or ADMIN. A view declares the need with
`@needs(...)`; by default, safe methods need READ and other methods WRITE. The need and the target
of the request (`targets.py`) are compared with permissions (`permissions.py`). Each account has one
role in the database: a viewer may read, an operator may also write, an administrator may do
everything. An API token has its own role and optionally a list of permissions; the rights of the
token's owner limit both.

When the role of a signed-in user does not allow a request, the signal `access_denied` is sent.
`console.audit` records an audit row for each signal.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit, urlunsplit

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db import models
from django.dispatch import Signal
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django.urls import get_script_prefix
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from console.frame.permissions import Action, Permission, Scope, Target, first_allowing
from console.frame.read_only import refusal_of, trouble_page
from console.frame.targets import owner_of, target_of

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

#: Sent for each request that a role does not allow, with `request`, `user`, `need` and `target`;
#: also for writes to a read-only cluster, with `reason`.
access_denied = Signal()

View = TypeVar("View", bound=Callable[..., Any])


class Need(Enum):
    OPEN = "open"
    #: Every account, whatever its role: the pages of the own account.
    SIGNED_IN = "signed-in"
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    #: See masked fields of messages.
    UNMASKED = "unmasked"


class Role(models.TextChoices):
    """Built-in role of an account or token. Each includes the rights of the roles before.

    An account may have further roles of this console (`console.accounts.custom_roles`).
    """

    NONE = "none", gettext_lazy("No built-in role")
    VIEWER = "viewer", gettext_lazy("Viewer")
    OPERATOR = "operator", gettext_lazy("Operator")
    ADMINISTRATOR = "administrator", gettext_lazy("Administrator")

    @property
    def rank(self) -> int:
        return list(Role).index(self)

    @property
    def meaning(self) -> str:
        return str(_MEANINGS[self])

    @property
    def permissions(self) -> tuple[Permission, ...]:
        return _PERMISSIONS[self]

    def within(self, other: "Role") -> "Role":
        """Return the role with fewer rights."""
        return min(self, other, key=lambda role: role.rank)


_MEANINGS = {
    Role.NONE: gettext_lazy("Nothing but the pages of the own account."),
    Role.VIEWER: gettext_lazy("Read-only access to everything."),
    Role.OPERATOR: gettext_lazy(
        "May also send messages, resend dead letters, reset offsets, run jobs, create and edit "
        "topics and groups."
    ),
    Role.ADMINISTRATOR: gettext_lazy(
        "May also delete topics and groups, change brokers, and manage users."
    ),
}
_LEAST = {
    Need.READ: Role.VIEWER,
    Need.WRITE: Role.OPERATOR,
    Need.ADMIN: Role.ADMINISTRATOR,
    Need.UNMASKED: Role.ADMINISTRATOR,
}
_PERMISSIONS: dict[Role, tuple[Permission, ...]] = {
    Role.NONE: (),
    Role.VIEWER: (Permission("*", Action.READ),),
    Role.OPERATOR: (Permission("*", Action.WRITE),),
    Role.ADMINISTRATOR: (Permission("*", Action.ALL),),
}


def role_of(user: AbstractBaseUser | AnonymousUser | None) -> "Role | None":
    """Return the effective role of a request; None for anonymous users and disabled accounts.

    An account without a profile is a viewer. The function reads the database; feeds call it in a
    thread.
    """
    if user is None or not user.is_authenticated or not user.is_active:
        return None
    profile = getattr(user, "profile", None)
    own = Role.VIEWER if profile is None else Role(profile.role)
    of_token: Role | None = getattr(user, "token_role", None)
    return own if of_token is None else own.within(of_token)


@dataclass(frozen=True, slots=True)
class Held:
    """A permission of an account, and the role that gives the permission."""

    role: str
    permission: Permission

    @property
    def title(self) -> str:
        """The role in the language of the reader; a role of this console has only its name."""
        return str(Role(self.role).label) if self.role in Role.values else self.role


def held_by(user: Any) -> tuple[Held, ...]:
    """Return the permissions of an account, those of the built-in role first."""
    profile = getattr(user, "profile", None)
    own = Role.VIEWER if profile is None else Role(profile.role)
    built_in = tuple(Held(own.value, each) for each in own.permissions)
    return (*built_in, *getattr(profile, "custom_permissions", ()))


def layers_of(user: AbstractBaseUser | AnonymousUser | None) -> list[Sequence[Permission]]:
    """Return the lists of permissions that must each allow a request; empty without an account.

    The account comes first; a token adds its role and its own permissions. A token without a
    built-in role has only its own permissions.
    """
    if role_of(user) is None:
        return []
    layers: list[Sequence[Permission]] = [tuple(each.permission for each in held_by(user))]
    token_role: Role | None = getattr(user, "token_role", None)
    of_token: Sequence[Permission] | None = getattr(user, "token_permissions", None)
    if token_role is not None and (token_role is not Role.NONE or of_token is None):
        layers.append(token_role.permissions)
    return layers if of_token is None else [*layers, of_token]


def may(user: AbstractBaseUser | AnonymousUser | None, need: Need, target: Target) -> bool:
    """Return True when every layer of the user's permissions allows the need. Only this function
    decides.
    """
    if need is Need.OPEN:
        return True
    layers = layers_of(user)
    if need is Need.SIGNED_IN:
        return bool(layers)
    action = Action(need.value)
    return bool(layers) and all(first_allowing(layer, action, target) for layer in layers)


def may_read_all(user: Any, resource: str, cluster: str) -> bool:
    """Return True when the user may read every object of a resource in a cluster."""
    return may(user, Need.READ, Target(resource, cluster))


def readable_names(user: Any, resource: str, cluster: str) -> Callable[[str], bool]:
    """Return a test whether the user may read the object of a name, for views that filter."""
    if may_read_all(user, resource, cluster):
        return lambda _name: True
    return lambda name: may(user, Need.READ, Target(resource, cluster, name))


def check_may(request: HttpRequest | Request, need: Need, target: Target) -> None:
    """Raise PermissionDenied for an object whose name the URL does not have.

    The view declares `access_names = Scope.SOME`.
    """
    if not may(request.user, need, target):
        plain = request._request if isinstance(request, Request) else request
        access_denied.send(check_may, **{**_facts(request, need, target), "request": plain})
        raise PermissionDenied(why_not(request.user, need, target))


def needs(need: Need) -> Callable[[View], View]:
    """Declare the need of a view, a view class or a method of a view class."""

    def declare(view: View) -> View:
        view.need = need  # type: ignore[attr-defined]
        return view

    return declare


def need_of(view: object, method: str | None) -> Need:
    """Return the declared need of `view`, else the default need of the HTTP method."""
    owner = owner_of(view)
    handler = getattr(owner, (method or "").lower(), None)
    for declared in (getattr(handler, "need", None), getattr(owner, "need", None)):
        if isinstance(declared, Need):
            return declared
    if isinstance(need := getattr(view, "need", None), Need):
        return need
    return Need.READ if method in SAFE_METHODS else Need.WRITE


class AccessMiddleware:
    """Applies `may` to every page; `ApiAccess` covers REST resources and answers in JSON."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        if hasattr(view, "cls"):  # a REST resource
            return None
        need, target = need_of(view, request.method), target_of(view, kwargs, request.GET)
        if may(request.user, need, target):
            return self.in_read_only(request, view, need, target)
        if request.user.is_authenticated and request.user.is_active:
            access_denied.send(AccessMiddleware, **_facts(request, need, target))
            reason = why_not(request.user, need, target)
            context = {"title": _("Not allowed"), "reason": reason}
            return render(request, "errors/forbidden.html", context, status=403)
        return to_sign_in(request)

    def in_read_only(
        self, request: HttpRequest, view: object, need: Need, target: Target
    ) -> HttpResponse | None:
        """Answer a write to a read-only cluster."""
        refusal = refusal_of(view, target) if is_write(request.method, need) else None
        if refusal is None:
            return None
        access_denied.send(
            AccessMiddleware, **_facts(request, need, target), reason=refusal.members["code"]
        )
        return trouble_page(request, refusal)


def to_sign_in(request: HttpRequest) -> HttpResponse:
    """Redirect to the sign-in page, and after sign-in back to the requested page, or to the page
    with the form of the request."""
    login = resolve_url(settings.LOGIN_URL)
    htmx = getattr(request, "htmx", None)
    if htmx:
        # htmx requested a fragment: return to the page that contains the fragment.
        query = urlencode({"next": htmx.current_url_abs_path or get_script_prefix()})
        return HttpResponse(status=401, headers={"HX-Redirect": f"{login}?{query}"})
    is_page = request.method in SAFE_METHODS
    target = request.get_full_path() if is_page else page_before(request) or get_script_prefix()
    return HttpResponseRedirect(f"{login}?{urlencode({'next': target})}")


def page_before(request: HttpRequest) -> str:
    """Return path and query of the console's page with the form of a request; "" if unknown."""
    referer = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(referer, {request.get_host()}, request.is_secure()):
        return ""
    parts = urlsplit(referer)
    # A path of two slashes would be the address of another host.
    return "" if parts.path.startswith("//") else urlunsplit(("", "", *parts[2:4], ""))


def why_not(user: AbstractBaseUser | AnonymousUser, need: Need, target: Target) -> str:
    """Return one sentence with the required and the present rights."""
    role = role_of(user) or Role.NONE
    name = "*" if isinstance(target.name, Scope) else target.name
    wanted = Permission(target.resource or "*", Action(need.value), name)
    if getattr(user, "token_permissions", None) is not None:
        return _("The API token does not have the permission %(permission)s.") % {
            "permission": wanted,
        }
    return _(
        "Required role: %(least)s, or the permission %(permission)s; your role: %(role)s. An "
        "administrator can change roles."
    ) % {"least": _LEAST[need].label, "permission": wanted, "role": role.label}


def is_write(method: str | None, need: Need) -> bool:
    return method not in SAFE_METHODS and need in (Need.WRITE, Need.ADMIN)


def _facts(request: HttpRequest | Request, need: Need, target: Target) -> dict[str, Any]:
    return {"request": request, "user": request.user, "need": need, "target": target}


class ApiAccess(BasePermission):
    """Applies `may` to REST resources."""

    message = ""

    def has_permission(self, request: Request, view: object) -> bool:
        need = need_of(view, request.method)
        arguments: dict[str, Any] = getattr(view, "kwargs", {})
        target = target_of(type(view), arguments, request.query_params)
        denied = {**_facts(request, need, target), "request": request._request}
        if may(request.user, need, target):
            refusal = refusal_of(type(view), target) if is_write(request.method, need) else None
            if refusal is not None:
                access_denied.send(ApiAccess, **denied, reason=refusal.members["code"])
                raise refusal
            return True
        if request.user.is_authenticated:
            access_denied.send(ApiAccess, **denied)
            self.message = why_not(request.user, need, target)
        return False
