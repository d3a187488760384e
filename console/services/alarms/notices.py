"""Notices become deliveries of the outbox, in the transaction that changes the episodes.

A notice has all episodes of a rule and cluster that fire, or resolve, together: a dead broker is
one notice. A delivery waits CONSOLE_ALARM_GROUP_SECONDS for further episodes.
"""

from collections.abc import Iterable, Sequence

from django.conf import settings

from console.services.alarms.models import (
    AlarmRule,
    Delivery,
    DeliveryState,
    Episode,
    Event,
    Notified,
    Receiver,
)
from console.services.alarms.silences import active_silences
from console.services.findings.finding import Severity


def receivers_of(rule: AlarmRule) -> list[Receiver]:
    """Return the enabled receivers of a rule: its own, and those of all rules."""
    own = set(rule.receivers.values_list("pk", flat=True))
    enabled = Receiver.objects.filter(enabled=True).order_by("pk")
    return [each for each in enabled if each.all_rules or each.pk in own]


def notify_firing(rule: AlarmRule, cluster: str, now_ms: int) -> int:
    """Decide about firing episodes without a notice; return the number of notified episodes.

    An episode that a silence matches gets its notice when the silence ends and it still fires.
    Runs in a transaction that holds the episodes.
    """
    waiting = list(
        Episode.objects.filter(
            rule=rule,
            cluster=cluster,
            state="firing",
            notified_ms=None,
            acknowledged_ms=None,
        ).order_by("pk")
    )
    if not waiting:
        return 0
    silences = active_silences(now_ms)
    due = [each for each in waiting if silences.of(each) is None]
    Episode.objects.filter(pk__in=[each.pk for each in due]).update(notified_ms=now_ms)
    for receiver in receivers_of(rule) if due else ():
        _enqueue(rule, cluster, Event.FIRING, receiver, due, now_ms)
    return len(due)


def notify_resolved(
    rule: AlarmRule, cluster: str, episodes: Sequence[Episode], now_ms: int
) -> None:
    """Enqueue the resolved notices: to each receiver that got the firing notice."""
    told = Notified.objects.filter(
        episode__in=episodes, event=Event.FIRING, receiver__isnull=False
    ).select_related("receiver")
    by_receiver: dict[int, tuple[Receiver, set[int]]] = {}
    for each in told:
        assert each.receiver is not None
        by_receiver.setdefault(each.receiver.pk, (each.receiver, set()))[1].add(each.episode_id)
    for receiver, numbers in by_receiver.values():
        ended = [each for each in episodes if each.pk in numbers]
        _enqueue(rule, cluster, Event.RESOLVED, receiver, ended, now_ms)


def _enqueue(
    rule: AlarmRule,
    cluster: str,
    event: Event,
    receiver: Receiver,
    episodes: Iterable[Episode],
    now_ms: int,
) -> None:
    """Add episodes to the last delivery, when it is of the same event and waits, or to a new one.

    A delivery before the last one takes no episodes: its notice would overtake the last one's.
    """
    chosen = list(episodes)
    rows = Delivery.objects.filter(receiver=receiver, rule=rule, cluster=cluster)
    delivery = rows.select_for_update().order_by("-pk").first()
    if delivery is not None and not (
        delivery.event == event
        and delivery.state == DeliveryState.WAITING
        and delivery.attempts == 0
    ):
        delivery = None
    if delivery is None:
        delivery = Delivery.objects.create(
            receiver=receiver,
            receiver_name=receiver.name,
            rule=rule,
            rule_name=rule.name,
            cluster=cluster,
            severity=min((each.severity for each in chosen), key=lambda one: Severity(one).rank),
            event=event,
            note=rule.note,
            created_ms=now_ms,
            due_ms=now_ms + settings.ALARM_GROUP_SECONDS * 1_000,
        )
    Notified.objects.bulk_create(
        [
            Notified(delivery=delivery, episode=each, receiver=receiver, event=event)
            for each in chosen
        ],
        ignore_conflicts=True,
    )
