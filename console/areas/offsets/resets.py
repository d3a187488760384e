"""Execute, check and undo offset resets; shared by page and REST resource."""

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
class QueueCheck:
    """A queue after a reset: the committed offset, and the offset reported by the consumer of the
    queue. `moved` is True once the group was observed at the target offset or beyond."""

    broker: str
    queue_id: int
    old: int | None
    new: int
    committed: int | None
    client: str | None
    client_offset: int | None
    moved: bool


def execute_reset(
    request: HttpRequest | Request,
    cluster: Cluster,
    group: str,
    reset_request: ResetRequest,
    *,
    expected_etag: str | None = None,
    undoes: OffsetReset | None = None,
) -> tuple[OffsetReset, Plan, tuple[BrokerOutcome, ...]]:
    """Reset the offsets; write an audit entry and a row of the reset history."""
    action = RESET_ACTION if undoes is None else UNDO_ACTION
    with audited(request, action, cluster=cluster.name, target=group) as entry:
        planned, outcomes = cluster.do(reset, group, reset_request, expected_etag)
        queues = [
            {
                "broker": move.position.broker.name,
                "queue_id": move.position.queue_id,
                "old": move.position.offset,
                "new": move.new,
                "moved": False,
            }
            for move in planned.changes
        ]
        row = OffsetReset.objects.create(
            cluster=cluster.name,
            group=group,
            topic=reset_request.topic,
            goal=reset_request.goal,
            online=bool(planned.online),
            queues=queues,
            errors=[f"{outcome.broker}: {outcome.error}" for outcome in outcomes if outcome.error],
            undoes=undoes,
            by=_user(request.user),
        )
        entry.after = {
            "topic": reset_request.topic,
            "goal": reset_request.goal.value,
            "queues": queues,
        }
        entry.outcomes(outcomes)
    _delete_oldest(cluster.name, group)
    return row, planned, outcomes


def undo_request(row: OffsetReset) -> ResetRequest:
    """The request that restores the previous offsets; raises NotAllowedNow without such offsets."""
    if not row.may_undo:
        raise NotAllowedNow(
            _("Nothing to undo: the reset was undone, or the group had no offset before.")
        )
    offsets = tuple(((q["broker"], q["queue_id"]), q["old"]) for q in row.queues_with_offset())
    return ResetRequest(row.topic, ResetTarget.EACH, each=offsets)


def check_reset(cluster: Cluster, row: OffsetReset) -> Answer[list[QueueCheck]]:
    """The present position of the group by queue. Observed moves are saved in the row."""
    answer = cluster.ask(positions, row.group, row.topic)
    committed = {position.key: position.offset for position in answer.value}
    own = cluster.ask(client_offsets, row.group, row.topic).value
    checks = [_check(queue, committed, own) for queue in row.queues]
    queues = [
        {**queue, "moved": check.moved} for queue, check in zip(row.queues, checks, strict=True)
    ]
    if queues != row.queues:
        row.queues = queues
        row.save(update_fields=["queues"])
    return Answer(checks, answer.failures, answer.asked_at_ms)


def reset_of(cluster: Cluster, group: str, number: int) -> OffsetReset:
    """A reset of a group; raises NotFound when the history has no such reset, and for a topic that
    the reader does not see."""
    found = OffsetReset.objects.filter(cluster=cluster.name, group=group, pk=number).first()
    if found is None or not cluster.sees_topic(found.topic):
        raise NotFound(
            format_lazy(_("There is no reset {number} of this group."), number=number),
            hint=_("Only the newest resets are kept."),
        )
    return found


def _check(
    queue: dict[str, Any], committed: dict[Key, int | None], own: dict[Key, tuple[str, int]]
) -> QueueCheck:
    key = (queue["broker"], queue["queue_id"])
    now = committed.get(key)
    client, client_offset = own.get(key, (None, None))
    old, new = queue["old"], queue["new"]
    seen = (now,) if client_offset is None else (now, client_offset)
    moved = queue["moved"] or all(_has_moved(old, new, offset) for offset in seen)
    return QueueCheck(*key, old, new, now, client, client_offset, moved)


def _has_moved(old: int | None, new: int, now: int | None) -> bool:
    """True when the group is at the target offset or beyond. After a reset to an earlier offset, a
    group that has passed the old offset again cannot be told from a group that never moved."""
    if now is None or now < new:
        return False
    return old is None or new >= old or now < old


def _user(user: AbstractBaseUser | AnonymousUser | None) -> User | None:
    return user if isinstance(user, User) else None


def _delete_oldest(cluster: str, group: str) -> None:
    rows = OffsetReset.objects.filter(cluster=cluster, group=group)
    keys = list(rows.values_list("pk", flat=True)[RESETS_KEPT : RESETS_KEPT * 2])
    OffsetReset.objects.filter(pk__in=keys).delete()
