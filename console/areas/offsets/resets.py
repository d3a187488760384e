"""Resetting, checking and undoing: what the page and the REST resource share."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.http import HttpRequest
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from rest_framework.request import Request

from console.areas.offsets.models import RESETS_KEPT, OffsetReset
from console.audit.recording import audited
from console.gateway import Answer, Cluster, NotAllowedNow, NotFound
from console.gateway.changes import BrokerOutcome
from console.gateway.offsets.plan import Key, Plan, ResetRequest, ResetTarget
from console.gateway.offsets.positions import client_offsets, positions
from console.gateway.offsets.reset import reset

RESET_ACTION = "offsets.reset"
UNDO_ACTION = "offsets.undo"


@dataclass(frozen=True, slots=True)
class Check:
    """One queue after a reset: where the group is now by its broker, and by the consumer that holds
    it. `moved` is whether it was seen to have gone where it was to go."""

    broker: str
    queue_id: int
    old: int | None
    new: int
    committed: int | None
    client: str | None
    client_offset: int | None
    moved: bool


def carry_out(
    request: HttpRequest | Request,
    cluster: Cluster,
    group: str,
    wish: ResetRequest,
    *,
    expected_etag: str | None = None,
    undoes: OffsetReset | None = None,
) -> tuple[OffsetReset, Plan, tuple[BrokerOutcome, ...]]:
    """Reset, with rows of it in the audit list and in the history."""
    action = RESET_ACTION if undoes is None else UNDO_ACTION
    with audited(request, action, cluster=cluster.name, target=group) as entry:
        planned, outcomes = cluster.do(reset, group, wish, expected_etag)
        queues = [
            {
                "broker": each.position.broker.name,
                "queue_id": each.position.queue_id,
                "old": each.position.offset,
                "new": each.new,
                "moved": False,
            }
            for each in planned.changes
        ]
        row = OffsetReset.objects.create(
            cluster=cluster.name,
            group=group,
            topic=wish.topic,
            goal=wish.goal,
            online=bool(planned.online),
            queues=queues,
            errors=[f"{each.broker}: {each.error}" for each in outcomes if each.error],
            undoes=undoes,
            by=_user(request.user),
        )
        entry.after = {"topic": wish.topic, "goal": wish.goal.value, "queues": queues}
        entry.outcomes(outcomes)
    _forget_oldest(cluster.name, group)
    return row, planned, outcomes


def undo_wish(row: OffsetReset) -> ResetRequest:
    """Back to the offsets before; raises NotAllowedNow where there are none to go back to."""
    if not row.may_undo:
        raise NotAllowedNow(
            _("There is nothing to undo: it was undone, or the group had no offset before.")
        )
    each = tuple(((e["broker"], e["queue_id"]), e["old"]) for e in row.places_before())
    return ResetRequest(row.topic, ResetTarget.EACH, each=each)


def checked(cluster: Cluster, row: OffsetReset) -> Answer[list[Check]]:
    """Where the group is now, queue by queue; what was seen to have moved is remembered."""
    answer = cluster.ask(positions, row.group, row.topic)
    committed = {each.key: each.offset for each in answer.value}
    own = cluster.ask(client_offsets, row.group, row.topic).value
    checks = [_check(each, committed, own) for each in row.queues]
    queues = [{**each, "moved": now.moved} for each, now in zip(row.queues, checks, strict=True)]
    if queues != row.queues:
        row.queues = queues
        row.save(update_fields=["queues"])
    return Answer(checks, answer.failures, answer.asked_at_ms)


def reset_of(cluster: str, group: str, number: int) -> OffsetReset:
    """One reset of a group; NotFound when it is not kept (any more)."""
    found = OffsetReset.objects.filter(cluster=cluster, group=group, pk=number).first()
    if found is None:
        raise NotFound(
            format_lazy(_("There is no reset {number} of this group."), number=number),
            hint=_("Only the newest resets are kept."),
        )
    return found


def _check(
    queue: dict[str, Any], committed: dict[Key, int | None], own: dict[Key, tuple[str, int]]
) -> Check:
    key = (queue["broker"], queue["queue_id"])
    now = committed.get(key)
    client, client_offset = own.get(key, (None, None))
    old, new = queue["old"], queue["new"]
    seen = (now,) if client_offset is None else (now, client_offset)
    moved = queue["moved"] or all(_has_moved(old, new, each) for each in seen)
    return Check(*key, old, new, now, client, client_offset, moved)


def _has_moved(old: int | None, new: int, now: int | None) -> bool:
    """Whether the group is where it was to go, or has gone on from there. A group that was sent
    back and has passed its old place again looks as if it had never moved."""
    if now is None or now < new:
        return False
    return old is None or new >= old or now < old


def _user(user: AbstractBaseUser | AnonymousUser | None) -> User | None:
    return user if isinstance(user, User) else None


def _forget_oldest(cluster: str, group: str) -> None:
    rows = OffsetReset.objects.filter(cluster=cluster, group=group)
    keys = list(rows.values_list("pk", flat=True)[RESETS_KEPT : RESETS_KEPT * 2])
    OffsetReset.objects.filter(pk__in=keys).delete()
