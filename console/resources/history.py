"""Change history of configured resources, for display and undo.

A change is recorded with the settings accepted by brokers. Undo restores the previous values, and
is refused when a setting was changed since: the later change would be lost.
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
    """Record the settings accepted by brokers; None without such settings. Deletes the oldest
    records beyond KEPT_PER_OBJECT_MAX."""
    refused = {outcome.broker for outcome in outcomes if outcome.error is not None}
    accepted = [asdict(line) for line in lines if line.broker not in refused]
    if not accepted:
        return None
    change = Change.objects.create(
        cluster=cluster,
        kind=kind,
        name=name,
        lines=accepted,
        by=user.get_username(),
    )
    older = _of(cluster, kind, name).values_list("pk", flat=True)[KEPT_PER_OBJECT_MAX:]
    Change.objects.filter(pk__in=list(older)).delete()
    return change


def recent(cluster: str, kind: Kind, name: str) -> list[Change]:
    """The latest changes, newest first."""
    return list(_of(cluster, kind, name)[:SHOWN_MAX])


def lines_of(change: Change) -> list[FieldChange]:
    return [FieldChange(**line) for line in change.lines]


def undoable(cluster: str, kind: Kind, name: str, number: int) -> Change:
    """The change with a number. Raises NotFound for an unknown number, NotAllowedNow for an undone
    change."""
    change = _of(cluster, kind, name).filter(pk=number).first()
    if change is None:
        raise NotFound(_("No such change."))
    if change.undone_by:
        raise NotAllowedNow(
            format_lazy(_("This change was already undone by {user}."), user=change.undone_by)
        )
    return change


def check_still_there(change: Change, now: dict[tuple[str, str], Any]) -> None:
    """Raise NotAllowedNow unless every setting still has the value set by the change."""
    for line in lines_of(change):
        present = now.get((line.broker, line.field))
        if present != line.after:
            raise NotAllowedNow(
                format_lazy(
                    _("“{field}” of {broker} is now {present}, not {after}."),
                    field=line.field,
                    broker=line.broker,
                    present=present,
                    after=line.after,
                ),
                hint=_("The setting was changed since. Edit the setting instead."),
            )


def mark_undone(change: Change, user: User) -> None:
    Change.objects.filter(pk=change.pk).update(undone_by=user.get_username())


def _of(cluster: str, kind: Kind, name: str) -> Any:
    return Change.objects.filter(cluster=cluster, kind=kind, name=name)
