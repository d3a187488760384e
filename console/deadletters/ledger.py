"""Sending dead letters again: one outcome per message, and a row in the ledger for each try.

The page and the REST resource both come through `resend`, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth.models import AnonymousUser, User
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.deadletters.models import SENDING, Resend
from console.gateway import Cluster, GatewayError
from console.gateway import resends as commands
from console.gateway.resends import RESEND_DEADLINE_MS, Outcome, Result, Target

#: A row that says “sending” for longer was left behind by a console that ended on the way.
LEFT_BEHIND_AFTER = timedelta(milliseconds=2 * RESEND_DEADLINE_MS)
#: Rows written at once, within what a database takes in one statement.
ROWS_AT_ONCE = 100


def resend(
    cluster: Cluster,
    group: str,
    ids: Sequence[str],
    target: Target,
    *,
    by: User | AnonymousUser,
    again: bool = False,
) -> tuple[Outcome, ...]:
    """Send dead letters again and write down what happened; one outcome for each id, in order.

    Skipped is what somebody else is sending at this moment and, unless `again` is set, what was
    sent before. An id that is named twice, in whatever letter case, counts once.
    """
    wanted = list(dict.fromkeys(each.upper() for each in ids))
    batch = _claim(cluster.name, group, wanted, target, by)
    claimed = set(Resend.objects.filter(batch=batch).values_list("offset_msg_id", flat=True))
    before = set() if again else set(sent_before(cluster.name, claimed))
    Resend.objects.filter(batch=batch, offset_msg_id__in=before).delete()
    to_send = tuple(each for each in wanted if each in claimed - before)
    done = _send(cluster, group, to_send, target)
    _write_down(batch, done)
    reasons = {
        True: _(
            "It was sent again before. Choose “Also what was sent before” (in the API: again) to "
            "send it once more."
        ),
        False: _("Somebody is sending it at this moment."),
    }
    return tuple(
        done.get(each) or Outcome(each, Result.SKIPPED, reasons[each in before]) for each in wanted
    )


def sent_before(cluster: str, ids: Collection[str]) -> dict[str, Resend]:
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


def _claim(
    cluster: str,
    group: str,
    ids: Sequence[str],
    target: Target,
    by: User | AnonymousUser,
) -> UUID:
    """Put a row for each letter into the ledger, except for those that are being sent already.

    Whether it was sent before must be looked up after this: until then another one may be at it.
    """
    batch = uuid4()
    left_behind = Resend.objects.filter(
        cluster=cluster,
        offset_msg_id__in=ids,
        result=SENDING,
        at__lt=timezone.now() - LEFT_BEHIND_AFTER,
    )
    left_behind.update(
        result=Result.FAILED,
        reason="The console ended while it was sending this; it may have been sent.",
    )
    Resend.objects.bulk_create(
        [
            Resend(
                cluster=cluster,
                group=group,
                offset_msg_id=each,
                batch=batch,
                target=target,
                by=None if isinstance(by, AnonymousUser) else by,
            )
            for each in ids
        ],
        batch_size=ROWS_AT_ONCE,
        ignore_conflicts=True,
    )
    return batch


def _send(cluster: Cluster, group: str, ids: tuple[str, ...], target: Target) -> dict[str, Outcome]:
    if not ids:
        return {}
    try:
        outcomes: Iterable[Outcome] = cluster.do(commands.resend, group, ids, target)
    except GatewayError as failure:
        reason: Any = failure.detail
        outcomes = [Outcome(each, Result.FAILED, reason) for each in ids]
    return {each.id: each for each in outcomes}


def _write_down(batch: UUID, done: dict[str, Outcome]) -> None:
    rows = list(Resend.objects.filter(batch=batch))
    for row in rows:
        outcome = done[row.offset_msg_id]
        row.result = outcome.result
        row.reason = str(outcome.reason)
        row.msg_id, row.topic = outcome.msg_id, outcome.topic
        row.new_offset_msg_id = outcome.new_offset_msg_id
    fields = ["result", "reason", "msg_id", "topic", "new_offset_msg_id"]
    Resend.objects.bulk_update(rows, fields, batch_size=ROWS_AT_ONCE)
