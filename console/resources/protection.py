"""Deletion protection of topics and groups, and confirmation of deletions."""

from collections.abc import Iterable

from django.http import HttpRequest
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from rest_framework.request import Request

from console.audit.recording import audited
from console.gateway import NotAllowedNow
from console.resources.models import Kind, Protection


class Protected(NotAllowedNow):
    kind = "protected"
    title = _("Protected")


class NeedsName(NotAllowedNow):
    kind = "needs-name"
    title = _("Confirmation required")


def is_protected(cluster: str, kind: Kind, name: str) -> bool:
    return Protection.objects.filter(cluster=cluster, kind=kind, name=name).exists()


def protected(cluster: str, kind: Kind, names: Iterable[str]) -> set[str]:
    """The protected names, in one database query."""
    rows = Protection.objects.filter(cluster=cluster, kind=kind, name__in=list(names))
    return set(rows.values_list("name", flat=True))


def protect(cluster: str, kind: Kind, name: str, by: str) -> None:
    """Protect a resource; no effect on a protected resource."""
    Protection.objects.get_or_create(cluster=cluster, kind=kind, name=name, defaults={"by": by})


def unprotect(cluster: str, kind: Kind, name: str) -> None:
    """Remove the protection; also for deleted resources."""
    Protection.objects.filter(cluster=cluster, kind=kind, name=name).delete()


def check_deletable(cluster: str, kind: Kind, name: str) -> None:
    """Raise Protected for a protected resource."""
    if is_protected(cluster, kind, name):
        raise Protected(
            format_lazy(_("“{name}” is protected from deletion."), name=name),
            hint=_("An administrator can remove the protection on the resource page."),
        )


def check_confirmed(name: str, typed: str | None, clients: int | None) -> None:
    """Raise NeedsName when clients are connected and `typed` differs from the name."""
    if clients and typed != name:
        raise NeedsName(
            format_lazy(
                _("{clients} clients of “{name}” are connected."), clients=clients, name=name
            ),
            hint=_("Repeat the name in the parameter “confirm” to delete anyway."),
        )


def set_protection(
    request: HttpRequest | Request, cluster: str, kind: Kind, name: str, *, on: bool
) -> None:
    """Switch the protection of a resource, with an audit entry."""
    before = {"protected": is_protected(cluster, kind, name)}
    action = f"{kind.value}.{'protect' if on else 'unprotect'}"
    with audited(request, action, cluster=cluster, target=name, before=before) as entry:
        if on:
            protect(cluster, kind, name, request.user.get_username())
        else:
            unprotect(cluster, kind, name)
        entry.after = {"protected": on}
