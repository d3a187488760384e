"""Sending dead letters again: one outcome per message, and a row in the ledger for each try.

The page and the REST resource both come through `resend`, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.contrib.auth.models import AnonymousUser, User
from django.utils.translation import gettext_lazy as _

from console.deadletters.models import Resend
from console.gateway import Cluster
from console.gateway import deadletters as questions
from console.gateway.deadletters import Outcome, Result, Target


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

    What was sent before is skipped unless `again` is set. An id that is named twice counts once.
    """
    wanted = list(dict.fromkeys(ids))
    known = set() if again else set(sent_before(cluster.name, group, wanted))
    to_send = tuple(each for each in wanted if each not in known)
    done = {each.id: each for each in cluster.do(questions.resend, group, to_send, target)}
    _write_down(cluster.name, group, target, done.values(), by)
    skipped = _("It was sent again before. Choose “send again” to send it once more.")
    return tuple(done.get(each) or Outcome(each, Result.SKIPPED, skipped) for each in wanted)


def sent_before(cluster: str, group: str, ids: Iterable[str]) -> dict[str, Resend]:
    """The latest successful resend of each of the dead letters that have one."""
    rows = Resend.objects.filter(
        cluster=cluster, group=group, offset_msg_id__in=list(ids), result=Result.SENT
    )
    return {row.offset_msg_id: row for row in rows.order_by("at", "id")}


def history(cluster: str, group: str, offset_msg_id: str) -> list[Resend]:
    """Every try to send one dead letter again, newest first."""
    rows = Resend.objects.filter(cluster=cluster, group=group, offset_msg_id=offset_msg_id)
    return list(rows.select_related("by"))


def _write_down(
    cluster: str,
    group: str,
    target: Target,
    outcomes: Iterable[Outcome],
    by: User | AnonymousUser,
) -> None:
    who = None if isinstance(by, AnonymousUser) else by
    Resend.objects.bulk_create(
        Resend(
            cluster=cluster,
            group=group,
            offset_msg_id=each.id,
            msg_id=each.msg_id,
            target=target,
            topic=each.topic,
            result=each.result,
            reason=str(each.reason),
            new_offset_msg_id=each.new_offset_msg_id,
            by=who,
        )
        for each in outcomes
    )
