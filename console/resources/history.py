"""What was changed from here, for people to look at and to undo.

A save is kept with the lines that its brokers took. Undoing gives the brokers the values from
before; that is refused when somebody has changed one of them since, because it would be lost.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway import NotAllowedNow, NotFound
from console.gateway.changes import BrokerOutcome, FieldChange
from console.resources.models import Change, Kind

SHOWN_MAX = 20
KEPT_PER_OBJECT_MAX = 100

User = AbstractBaseUser | AnonymousUser


def keep(
    user: User,
    cluster: str,
    kind: Kind,
    name: str,
    lines: Sequence[FieldChange],
    outcomes: Iterable[BrokerOutcome],
) -> Change | None:
    """Keep what the brokers took; None when that was nothing. The oldest make room."""
    refused = {outcome.broker for outcome in outcomes if outcome.error is not None}
    taken = [asdict(line) for line in lines if line.broker not in refused]
    if not taken:
        return None
    change = Change.objects.create(
        cluster=cluster,
        kind=kind,
        name=name,
        lines=taken,
        by=user.get_username(),
    )
    older = _of(cluster, kind, name).values_list("pk", flat=True)[KEPT_PER_OBJECT_MAX:]
    Change.objects.filter(pk__in=list(older)).delete()
    return change


def recent(cluster: str, kind: Kind, name: str) -> list[Change]:
    """The last changes, newest first."""
    return list(_of(cluster, kind, name)[:SHOWN_MAX])


def lines_of(change: Change) -> list[FieldChange]:
    return [FieldChange(**line) for line in change.lines]


def undoable(cluster: str, kind: Kind, name: str, number: int) -> Change:
    """The change of that number; NotFound without it, NotAllowedNow when it was undone already."""
    change = _of(cluster, kind, name).filter(pk=number).first()
    if change is None:
        raise NotFound(_("There is no such change."))
    if change.undone_by:
        raise NotAllowedNow(
            format_lazy(_("{user} has undone this change already."), user=change.undone_by)
        )
    return change


def check_still_there(change: Change, now: dict[tuple[str, str], Any]) -> None:
    """Raise NotAllowedNow unless every value is still what the change made of it."""
    for line in lines_of(change):
        present = now.get((line.broker, line.field))
        if present != line.after:
            raise NotAllowedNow(
                format_lazy(
                    _("“{field}” of {broker} is {present} by now, not {after}."),
                    field=line.field,
                    broker=line.broker,
                    present=present,
                    after=line.after,
                ),
                hint=_("Somebody changed it since. Set it to what you want instead."),
            )


def mark_undone(change: Change, user: User) -> None:
    Change.objects.filter(pk=change.pk).update(undone_by=user.get_username())


def _of(cluster: str, kind: Kind, name: str) -> Any:
    return Change.objects.filter(cluster=cluster, kind=kind, name=name)
