"""Resends of dead letters: one outcome per message, and one ledger row per attempt.

Pages, REST resources and replays share this code, so their results agree.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from console.areas.deadletters.models import SENDING, Discard, Resend
from console.gateway import Cluster, GatewayError
from console.gateway.dead_letters import resend as commands
from console.gateway.dead_letters.resend import RESEND_DEADLINE_MS, Outcome, Plan, Result
from console.gateway.messages.stored import MessageRef

Person = AbstractBaseUser | AnonymousUser | None

#: Maximum age of a row in state “sending”. An older row belongs to a console that was stopped.
ABANDONED_AFTER = timedelta(milliseconds=2 * RESEND_DEADLINE_MS)
#: Rows per INSERT, within the parameter limits of databases.
ROWS_AT_ONCE = 100
#: Maximum ids per SELECT.
IDS_AT_ONCE = 500

# Rows store the English text; pages translate the text.
ABANDONED = gettext_noop(
    "Unknown outcome: the console stopped during the resend, and the message may have been sent."
)
RESENT_BEFORE = _(
    "Already resent. Choose “Include already resent” (in the API: again) to resend the message."
)
IN_PROGRESS = _("Another request is resending the message.")
DISCARDED = _(
    "Discarded. Restore the message, or choose “Include already resent” (in the API: again)."
)


def resend(
    cluster: Cluster,
    group: str,
    ids: Sequence[str],
    plan: Plan,
    *,
    by: Person,
    again: bool = False,
) -> tuple[Outcome, ...]:
    """Resend dead letters and record the outcomes; returns one outcome per id, in order.

    Messages in another request's resend are skipped. Without `again`, resent and discarded
    messages are skipped too. Duplicate ids, compared without letter case, count once.
    """
    wanted = list(dict.fromkeys(each.upper() for each in ids))

    def send(to_send: tuple[str, ...]) -> Iterable[Outcome]:
        return cluster.do(commands.resend, group, to_send, plan)

    return _resend_recorded(cluster.name, group, wanted, plan, send, by, uuid4(), again=again)


def resend_messages(
    cluster: Cluster,
    group: str,
    refs: Sequence[MessageRef],
    plan: Plan,
    *,
    by: Person,
    batch: UUID,
    again: bool = False,
) -> tuple[Outcome, ...]:
    """Resend dead letters that were read already, as part of the batch of a replay.

    For a batch, the ledger records skipped messages too.
    """
    found = {each.message.offset_msg_id: each for each in refs}

    def send(to_send: tuple[str, ...]) -> Iterable[Outcome]:
        return cluster.do(
            commands.resend_messages, group, tuple(found[each] for each in to_send), plan
        )

    outcomes = _resend_recorded(
        cluster.name, group, list(found), plan, send, by, batch, again=again
    )
    _write_skipped(cluster.name, group, plan, outcomes, by, batch)
    return outcomes


def _resend_recorded(
    cluster: str,
    group: str,
    wanted: Sequence[str],
    plan: Plan,
    send: Callable[[tuple[str, ...]], Iterable[Outcome]],
    by: Person,
    batch: UUID,
    *,
    again: bool,
) -> tuple[Outcome, ...]:
    plan.checked()
    if plan.dry_run:
        busy = Resend.objects.filter(
            cluster=cluster,
            offset_msg_id__in=wanted,
            result=SENDING,
            at__gte=timezone.now() - ABANDONED_AFTER,
        )
        claimed = set(wanted) - set(busy.values_list("offset_msg_id", flat=True))
    else:
        claimed = _claim(cluster, group, wanted, plan, by, batch)
    excluded = {} if again else _dealt_with(cluster, claimed)
    if not plan.dry_run:
        Resend.objects.filter(batch=batch, result=SENDING, offset_msg_id__in=excluded).delete()
    to_send = tuple(each for each in wanted if each in claimed and each not in excluded)
    done = _send(send, to_send)
    if not plan.dry_run:
        _record(batch, done)
    return tuple(
        done.get(each) or Outcome(each, Result.SKIPPED, excluded.get(each, IN_PROGRESS))
        for each in wanted
    )


def resent_before(cluster: str, ids: Collection[str]) -> dict[str, Resend]:
    """The latest successful resend per dead letter, by id."""
    return {row.offset_msg_id: row for row in resends_of(cluster, ids)}


def history(cluster: str, offset_msg_id: str) -> list[Resend]:
    """All resend attempts of one dead letter, newest first."""
    rows = Resend.objects.filter(cluster=cluster, offset_msg_id=offset_msg_id)
    return list(rows.select_related("by"))


def resends_of(cluster: str, ids: Collection[str]) -> list[Resend]:
    """Successful resends of the dead letters, oldest first."""
    rows = Resend.objects.filter(cluster=cluster, offset_msg_id__in=ids, result=Result.SENT)
    return list(rows.order_by("at", "id").select_related("by"))


def fail_abandoned(batch: UUID) -> int:
    """Mark rows of a batch in state “sending” as failed with an unknown outcome."""
    rows = Resend.objects.filter(batch=batch, result=SENDING)
    return rows.update(result=Result.FAILED, reason=ABANDONED)


def person(by: Person) -> User | None:
    return by if isinstance(by, User) else None


def _dealt_with(cluster: str, ids: Collection[str]) -> dict[str, Any]:
    """Reasons to skip dead letters, by id: discarded or already resent."""
    discards = Discard.objects.filter(cluster=cluster, offset_msg_id__in=ids)
    reasons: dict[str, Any] = dict.fromkeys(
        discards.values_list("offset_msg_id", flat=True), DISCARDED
    )
    return reasons | dict.fromkeys(resent_before(cluster, ids), RESENT_BEFORE)


def _claim(
    cluster: str, group: str, ids: Sequence[str], plan: Plan, by: Person, batch: UUID
) -> set[str]:
    """Insert one ledger row per dead letter, except for messages in state “sending”.

    Earlier resends must be queried after the insert: before the insert, a concurrent request can
    still resend the same message.
    """
    abandoned = Resend.objects.filter(
        cluster=cluster,
        offset_msg_id__in=ids,
        result=SENDING,
        at__lt=timezone.now() - ABANDONED_AFTER,
    )
    abandoned.update(result=Result.FAILED, reason=ABANDONED)
    Resend.objects.bulk_create(
        [
            Resend(
                cluster=cluster,
                group=group,
                offset_msg_id=each,
                batch=batch,
                target=plan.target,
                edited=not plan.edit.is_empty,
                by=person(by),
            )
            for each in ids
        ],
        batch_size=ROWS_AT_ONCE,
        ignore_conflicts=True,
    )
    mine = Resend.objects.filter(batch=batch, result=SENDING)
    return set(mine.values_list("offset_msg_id", flat=True))


def _send(
    send: Callable[[tuple[str, ...]], Iterable[Outcome]], ids: tuple[str, ...]
) -> dict[str, Outcome]:
    if not ids:
        return {}
    try:
        outcomes = send(ids)
    except GatewayError as failure:
        reason: Any = failure.detail
        outcomes = [Outcome(each, Result.FAILED, reason) for each in ids]
    return {each.id: each for each in outcomes}


def _record(batch: UUID, done: dict[str, Outcome]) -> None:
    rows = list(Resend.objects.filter(batch=batch, result=SENDING))
    for row in rows:
        outcome = done[row.offset_msg_id]
        row.result = outcome.result
        row.reason = str(outcome.reason)
        row.msg_id, row.topic = outcome.msg_id, outcome.topic
        row.new_offset_msg_id, row.died_ms = outcome.new_offset_msg_id, outcome.died_ms
    # An upsert of existing rows takes a tenth of the time of bulk_update().
    Resend.objects.bulk_create(
        rows,
        batch_size=ROWS_AT_ONCE,
        update_conflicts=True,
        unique_fields=["id"],
        update_fields=["result", "reason", "msg_id", "topic", "new_offset_msg_id", "died_ms"],
    )


def _write_skipped(
    cluster: str, group: str, plan: Plan, outcomes: Iterable[Outcome], by: Person, batch: UUID
) -> None:
    skipped = [each for each in outcomes if each.result is Result.SKIPPED]
    Resend.objects.bulk_create(
        [
            Resend(
                cluster=cluster,
                group=group,
                offset_msg_id=each.id,
                batch=batch,
                target=plan.target,
                result=Result.SKIPPED,
                reason=str(each.reason),
                by=person(by),
            )
            for each in skipped
        ],
        batch_size=ROWS_AT_ONCE,
    )
