"""Marks on topics and groups that may not be deleted, and what else a deletion must have."""

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
    title = _("The name is needed")


def is_protected(cluster: str, kind: Kind, name: str) -> bool:
    return Protection.objects.filter(cluster=cluster, kind=kind, name=name).exists()


def protected(cluster: str, kind: Kind, names: Iterable[str]) -> set[str]:
    """Which of these are protected; one query."""
    found = Protection.objects.filter(cluster=cluster, kind=kind, name__in=list(names))
    return set(found.values_list("name", flat=True))


def protect(cluster: str, kind: Kind, name: str, by: str) -> None:
    """Put the mark on; nothing happens when it is there already."""
    Protection.objects.get_or_create(cluster=cluster, kind=kind, name=name, defaults={"by": by})


def unprotect(cluster: str, kind: Kind, name: str) -> None:
    """Take the mark away, also from what is gone."""
    Protection.objects.filter(cluster=cluster, kind=kind, name=name).delete()


def check_deletable(cluster: str, kind: Kind, name: str) -> None:
    """Raise Protected when the mark is on."""
    if is_protected(cluster, kind, name):
        raise Protected(
            format_lazy(_("“{name}” is protected from deletion."), name=name),
            hint=_("An administrator can take the protection away on its page."),
        )


def check_confirmed(name: str, typed: str | None, clients: int) -> None:
    """Raise NeedsName when clients are connected and the name was not given."""
    if clients and typed != name:
        raise NeedsName(
            format_lazy(
                _("{clients} clients of “{name}” are connected now."), clients=clients, name=name
            ),
            hint=_("Repeat its name in the parameter “confirm” to delete it all the same."),
        )


def set_protection(
    request: HttpRequest | Request, cluster: str, kind: Kind, name: str, *, on: bool
) -> None:
    """Switch the protection of one resource on or off, with a row in the audit list."""
    before = {"protected": is_protected(cluster, kind, name)}
    action = f"{kind.value}.{'protect' if on else 'unprotect'}"
    with audited(request, action, cluster=cluster, target=name, before=before) as entry:
        if on:
            protect(cluster, kind, name, request.user.get_username())
        else:
            unprotect(cluster, kind, name)
        entry.after = {"protected": on}
