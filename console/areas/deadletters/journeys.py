"""Resent dead letters as events of a message's journey."""

from collections.abc import Iterable

from django.db.models import Q

from console.areas.deadletters.models import Resend
from console.areas.traces.broker_events import dead_letter_ids
from console.areas.traces.drawing import BrokerEvent, BrokerEventKind
from console.gateway.dead_letters.resend import Result
from console.gateway.traces.journey import Journey

RESENDS_SHOWN_MAX = 100


def resends_of_journey(cluster: str, found: Journey) -> Iterable[BrokerEvent]:
    """Successful resends of the journey's dead letters as events, oldest first."""
    ids = list(dead_letter_ids(found).values())
    mine = Q(offset_msg_id__in=ids) | Q(msg_id=found.msg_id)
    rows = Resend.objects.filter(mine, cluster=cluster, result=Result.SENT)
    for row in rows.order_by("at", "id").select_related("by")[:RESENDS_SHOWN_MAX]:
        yield BrokerEvent(BrokerEventKind.RESENT, row.at_ms, row.group, by=str(row.by or ""))
