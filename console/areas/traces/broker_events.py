"""Events of a journey from brokers and other areas, without traces."""

from collections.abc import Callable, Iterable

from console.areas.traces.drawing import BrokerEvent, BrokerEventKind
from console.gateway.traces.journey import Journey
from core_broker.message.properties import PROPERTY_TRANSACTION_CHECK_TIMES
from core_broker.message.topics import DLQ_PREFIX, RETRY_PREFIX

#: Returns the events of another area for a journey, unordered.
EventSource = Callable[[str, Journey], Iterable[BrokerEvent]]
_sources: list[EventSource] = []


def register(source: EventSource) -> None:
    """Add a source of events at start-up: (cluster, journey) -> events."""
    _sources.append(source)


def broker_events_of(cluster: str, found: Journey) -> list[BrokerEvent]:
    """All events, unordered. Retries of traced groups are omitted."""
    return [*_registered(cluster, found), *_delays(found), *_retries(found), *_halves(found)]


def dead_letter_ids(found: Journey) -> dict[tuple[str, int], str]:
    """Offset message ids of the journey's dead letters, by group and store time."""
    messages = [each.message for each in found.dead_letters]
    return {
        (each.topic.removeprefix(DLQ_PREFIX), each.store_timestamp): each.offset_msg_id
        for each in messages
    }


def _registered(cluster: str, found: Journey) -> Iterable[BrokerEvent]:
    for source in _sources:
        yield from source(cluster, found)


def _delays(found: Journey) -> Iterable[BrokerEvent]:
    for each in found.evidence.delayed:
        kind = BrokerEventKind.RETRY_WAITS if each.group else BrokerEventKind.DELAYED
        count = each.retry_times if each.group else None
        yield BrokerEvent(kind, each.at_ms, each.group, count, each.due_ms)


def _retries(found: Journey) -> Iterable[BrokerEvent]:
    traced = {each.group for each in found.timeline.groups} if found.timeline else set()
    for ref in found.evidence.retries:
        message = ref.message
        group = message.topic.removeprefix(RETRY_PREFIX)
        if group not in traced:
            times = message.reconsume_times
            yield BrokerEvent(BrokerEventKind.RETRY_GIVEN, message.store_timestamp, group, times)


def _halves(found: Journey) -> Iterable[BrokerEvent]:
    for ref in found.evidence.halves:
        times = ref.message.properties.get(PROPERTY_TRANSACTION_CHECK_TIMES, "")
        count = int(times[:6]) if times.isascii() and times.isdecimal() else 0
        kind = BrokerEventKind.CHECKED if count else BrokerEventKind.HALF
        yield BrokerEvent(kind, ref.message.store_timestamp, "", count or None)
