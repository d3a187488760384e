"""States of dead letters by the ledger: open, resent, discarded."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.areas.deadletters.ledger import IDS_AT_ONCE, ROWS_AT_ONCE, Person, person, resends_of
from console.areas.deadletters.models import Discard, Resend
from console.areas.messages.body import preview
from console.gateway import Cluster, GatewayError
from console.gateway.dead_letters.resend import Outcome, Result, origin_topic
from console.gateway.dead_letters.summary import dead_letters_by_id
from console.gateway.messages.schemas.decoder import Decoder
from console.gateway.messages.stored import MessageRef
from console.services.exports.tables import batched
from console.services.schemas.stored import decoder_for

#: Maximum ids that a filter by state passes to the search.
STATE_IDS_MAX = 10_000
#: Groups per COUNT statement.
GROUPS_AT_ONCE = 100


class DeadLetterState(StrEnum):
    """The state of a dead letter in filters and lists."""

    OPEN = "open"
    RESENT = "resent"
    DISCARDED = "discarded"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A row of a list of dead letters; `resent` is the latest resend."""

    ref: MessageRef
    origin: str
    resent: Resend | None
    discard: Discard | None
    #: Decodes the body with the rules and the mask of the reader.
    decoder: Decoder

    @property
    def preview(self) -> str:
        return preview(self.ref.message, self.decoder)

    @property
    def state(self) -> DeadLetterState:
        if self.discard is not None:
            return DeadLetterState.DISCARDED
        return DeadLetterState.OPEN if self.resent is None else DeadLetterState.RESENT

    @property
    def resent_ms(self) -> int | None:
        return None if self.resent is None else self.resent.at_ms

    @property
    def discarded_ms(self) -> int | None:
        return None if self.discard is None else self.discard.at_ms


def dead_letters(cluster: Cluster, refs: Iterable[MessageRef]) -> list[DeadLetter]:
    """Dead letters with their ledger rows."""
    shown = list(refs)
    names = [each.message.offset_msg_id for each in shown]
    resent = {row.offset_msg_id: row for row in resends_of(cluster.name, names)}
    discarded = discards_of(cluster.name, names)
    decoder = decoder_for(cluster)
    return [
        DeadLetter(
            each,
            origin_topic(each.message),
            resent.get(each.message.offset_msg_id),
            discarded.get(each.message.offset_msg_id),
            decoder,
        )
        for each in shown
    ]


def discards_of(cluster: str, ids: Collection[str]) -> dict[str, Discard]:
    rows = Discard.objects.filter(cluster=cluster, offset_msg_id__in=ids).select_related("by")
    return {row.offset_msg_id: row for row in rows}


def ids_of_state(
    cluster: str, group: str, state: DeadLetterState
) -> tuple[frozenset[str] | None, frozenset[str]]:
    """Ids of the dead letters in a state, as `only` and `without` of a search."""
    discarded = _newest(Discard.objects.filter(cluster=cluster, group=group))
    if state is DeadLetterState.DISCARDED:
        return discarded, frozenset()
    sent = Resend.objects.filter(cluster=cluster, group=group, result=Result.SENT)
    resent = _newest(sent)
    if state is DeadLetterState.RESENT:
        return resent - discarded, frozenset()
    return None, resent | discarded


def _newest(rows: Any) -> frozenset[str]:
    return frozenset(rows.order_by("-id").values_list("offset_msg_id", flat=True)[:STATE_IDS_MAX])


def dealt_with(cluster: str, oldest_ms: Mapping[str, int | None]) -> Counter[str]:
    """Resent or discarded dead letters per group, without expired messages: rows count from the
    store time of the group's oldest dead letter."""
    counted: Counter[str] = Counter()
    # A condition per group is slow to build: most groups have no row.
    known = _with_rows(cluster, oldest_ms)
    wanted = [(name, ms) for name, ms in oldest_ms.items() if name in known]
    for groups in batched(wanted, GROUPS_AT_ONCE):
        stored = reduce(or_, (Q(group=name, died_ms__gte=ms or 0) for name, ms in groups))
        sent = Resend.objects.filter(stored, cluster=cluster, result=Result.SENT)
        same = Resend.objects.filter(
            cluster=cluster, offset_msg_id=OuterRef("offset_msg_id"), result=Result.SENT
        )
        discarded = Discard.objects.filter(~Exists(same), stored, cluster=cluster)
        for rows in (sent, discarded):
            counts = rows.order_by().values("group")
            for row in counts.annotate(n=Count("offset_msg_id", distinct=True)):
                counted[row["group"]] += row["n"]
    return counted


def _with_rows(cluster: str, names: Iterable[str]) -> set[str]:
    """Groups that the ledger has resent or discarded dead letters of."""
    found: set[str] = set()
    for part in batched(names, IDS_AT_ONCE):
        sent = Resend.objects.filter(cluster=cluster, group__in=part, result=Result.SENT)
        discarded = Discard.objects.filter(cluster=cluster, group__in=part)
        for rows in (sent, discarded):
            found.update(rows.order_by().values_list("group", flat=True).distinct())
    return found


def discard(cluster: Cluster, group: str, ids: Sequence[str], *, by: Person) -> tuple[Outcome, ...]:
    """Discard dead letters. Discarded ids are skipped; unknown ids fail."""
    wanted = list(dict.fromkeys(each.upper() for each in ids))
    known = discards_of(cluster.name, wanted)
    missing = tuple(each for each in wanted if each not in known)
    problem: Any = format_lazy(_("“{group}” has no such dead letter."), group=group)
    try:
        found = cluster.ask(dead_letters_by_id, group, missing).value if missing else {}
    except GatewayError as failure:
        found, problem = {}, failure.detail
    Discard.objects.bulk_create(
        [
            Discard(
                cluster=cluster.name,
                group=group,
                offset_msg_id=each,
                died_ms=ref.message.store_timestamp,
                by=person(by),
            )
            for each, ref in found.items()
        ],
        batch_size=ROWS_AT_ONCE,
        ignore_conflicts=True,
    )
    already = _("Already discarded.")
    return tuple(
        Outcome(each, Result.SENT, msg_id=found[each].message.msg_id)
        if each in found
        else Outcome(each, Result.SKIPPED, already)
        if each in known
        else Outcome(each, Result.FAILED, problem)
        for each in wanted
    )


def restore(cluster: str, group: str, ids: Sequence[str]) -> int:
    """Restore discarded dead letters; returns the count."""
    rows = Discard.objects.filter(
        cluster=cluster, group=group, offset_msg_id__in={each.upper() for each in ids}
    )
    return rows.delete()[0]
