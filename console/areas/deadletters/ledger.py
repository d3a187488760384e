"""Sending dead letters again: one outcome per message, and a row in the ledger for each try.

Pages, REST resources and replays all come through here, so they cannot disagree.
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

#: A row that says “sending” for longer was left behind by a console that ended on the way.
ABANDONED_AFTER = timedelta(milliseconds=2 * RESEND_DEADLINE_MS)
#: Rows written at once, within what a database takes in one statement.
ROWS_AT_ONCE = 100
#: Ids that one statement asks for.
IDS_AT_ONCE = 500

# Kept in the row in English, shown in the reader's language.
ABANDONED = gettext_noop(
    "The outcome is unknown: the console ended while it was sending this, so it may have been sent."
)
RESENT_BEFORE = _(
    "It was sent again before. Choose “Also what was sent before” (in the API: again) to send it "
    "once more."
)
IN_PROGRESS = _("Somebody is sending it at this moment.")
DISCARDED = _(
    "It was discarded. Restore it, or choose “Also what was sent before” (in the API: again)."
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
    """Send dead letters again and write down what happened; one outcome for each id, in order.

    Skipped is what somebody else is sending at this moment and, unless `again` is set, what was
    sent before or discarded. An id that is named twice, in whatever letter case, counts once.
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
    """The same for letters that were read already, as part of a batch that goes on; of such a
    batch the ledger keeps what was skipped, too."""
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
    """The latest successful resend of each of the dead letters that have one."""
    return {row.offset_msg_id: row for row in resends_of(cluster, ids)}


def history(cluster: str, offset_msg_id: str) -> list[Resend]:
    """Every try to send one dead letter again, newest first."""
    rows = Resend.objects.filter(cluster=cluster, offset_msg_id=offset_msg_id)
    return list(rows.select_related("by"))


def resends_of(cluster: str, ids: Collection[str]) -> list[Resend]:
    """Every time that one of the dead letters was sent again, oldest first."""
    rows = Resend.objects.filter(cluster=cluster, offset_msg_id__in=ids, result=Result.SENT)
    return list(rows.order_by("at", "id").select_related("by"))


def fail_abandoned(batch: UUID) -> int:
    """What a batch was sending when its console ended: its outcome is unknown."""
    rows = Resend.objects.filter(batch=batch, result=SENDING)
    return rows.update(result=Result.FAILED, reason=ABANDONED)


def person(by: Person) -> User | None:
    return by if isinstance(by, User) else None


def _dealt_with(cluster: str, ids: Collection[str]) -> dict[str, Any]:
    """Why a letter is not sent unless it is wanted all the same."""
    discards = Discard.objects.filter(cluster=cluster, offset_msg_id__in=ids)
    reasons: dict[str, Any] = dict.fromkeys(
        discards.values_list("offset_msg_id", flat=True), DISCARDED
    )
    return reasons | dict.fromkeys(resent_before(cluster, ids), RESENT_BEFORE)


def _claim(
    cluster: str, group: str, ids: Sequence[str], plan: Plan, by: Person, batch: UUID
) -> set[str]:
    """Put a row for each letter into the ledger, except for those that are being sent already.

    Whether it was sent before must be looked up after this: until then another one may be at it.
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
    # Rows that are there are updated; bulk_update would take ten times as long for it.
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
