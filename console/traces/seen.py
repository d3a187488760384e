"""From what brokers and the ledger know of a message to steps of its journey."""

from collections.abc import Iterable, Sequence

from django.db.models import Q

from console.deadletters.models import Resend
from console.gateway.dead_letters.resend import Result
from console.gateway.traces.journey import Journey
from console.traces.drawing import Seen, SeenKind
from core_broker.message.properties import PROPERTY_TRANSACTION_CHECK_TIMES
from core_broker.message.topics import DLQ_PREFIX, RETRY_PREFIX

RESENDS_SHOWN_MAX = 100


def seen_of(cluster: str, found: Journey) -> list[Seen]:
    """Everything beside the traces, in no order. What traces tell of a group is not repeated."""
    return [*_resends(cluster, found), *_waits(found), *_given(found), *_halves(found)]


def letter_ids(found: Journey) -> dict[tuple[str, int], str]:
    """Where the dead letters of a journey are, by group and time."""
    messages = [each.message for each in found.dead_letters]
    return {
        (each.topic.removeprefix(DLQ_PREFIX), each.store_timestamp): each.offset_msg_id
        for each in messages
    }


def resends_of_journey(cluster: str, found: Journey) -> Sequence[Resend]:
    """The tries of the ledger that sent one of its dead letters again, oldest first."""
    ids = list(letter_ids(found).values())
    mine = Q(offset_msg_id__in=ids) | Q(msg_id=found.msg_id)
    rows = Resend.objects.filter(mine, cluster=cluster, result=Result.SENT)
    return list(rows.order_by("at", "id").select_related("by")[:RESENDS_SHOWN_MAX])


def _resends(cluster: str, found: Journey) -> Iterable[Seen]:
    for row in resends_of_journey(cluster, found):
        yield Seen(SeenKind.RESENT, row.at_ms, row.group, by=str(row.by or ""))


def _waits(found: Journey) -> Iterable[Seen]:
    for each in found.sightings.waits:
        kind = SeenKind.RETRY_WAITS if each.group else SeenKind.DELAYED
        count = each.retry_times if each.group else None
        yield Seen(kind, each.at_ms, each.group, count, each.due_ms)


def _given(found: Journey) -> Iterable[Seen]:
    traced = {each.group for each in found.timeline.groups} if found.timeline else set()
    for ref in found.sightings.retries:
        message = ref.message
        group = message.topic.removeprefix(RETRY_PREFIX)
        if group not in traced:
            times = message.reconsume_times
            yield Seen(SeenKind.RETRY_GIVEN, message.store_timestamp, group, times)


def _halves(found: Journey) -> Iterable[Seen]:
    for ref in found.sightings.halves:
        times = ref.message.properties.get(PROPERTY_TRANSACTION_CHECK_TIMES, "")
        count = int(times[:6]) if times.isascii() and times.isdecimal() else 0
        kind = SeenKind.CHECKED if count else SeenKind.HALF
        yield Seen(kind, ref.message.store_timestamp, "", count or None)
