"""Resent dead letters as events of a message's journey."""

from collections.abc import Iterable

from django.db.models import Q

from console.areas.deadletters.models import Resend
from console.areas.traces.drawing import Seen, SeenKind
from console.areas.traces.seen import letter_ids
from console.gateway.dead_letters.resend import Result
from console.gateway.traces.journey import Journey

RESENDS_SHOWN_MAX = 100


def resends_of_journey(cluster: str, found: Journey) -> Iterable[Seen]:
    """An event for each successful resend of the journey's dead letters, oldest first."""
    ids = list(letter_ids(found).values())
    mine = Q(offset_msg_id__in=ids) | Q(msg_id=found.msg_id)
    rows = Resend.objects.filter(mine, cluster=cluster, result=Result.SENT)
    for row in rows.order_by("at", "id").select_related("by")[:RESENDS_SHOWN_MAX]:
        yield Seen(SeenKind.RESENT, row.at_ms, row.group, by=str(row.by or ""))
