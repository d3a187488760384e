"""Questions and commands about dead letters: which groups have any, and sending them again.

A dead letter stays in its `%DLQ%` topic after it was sent again: the topic is a log. What was sent
again, when and by whom is kept in the console's ledger, see `console.deadletters.ledger`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.answers import Partial
from console.gateway.desk import BrokerRef, Desk
from console.gateway.errors import NotThere
from console.gateway.messages import MessageRef, view
from console.gateway.questions import command, question
from console.gateway.queue_slices import QueueRef, queues_of_route, read_slice
from core_broker.client import SendStatus
from core_broker.errors import GantryError, RequestRefused
from core_broker.message import properties as names
from core_broker.message.model import Message, MessageExt
from core_broker.message.topics import DLQ_PREFIX, dlq_topic, retry_topic
from core_broker.remoting.bodies import TopicRouteData
from core_broker.remoting.codes import ResponseCode

PERM_WRITE = 2
RESEND_MESSAGES_MAX = 1_000
RESENDS_AT_ONCE_MAX = 8
TOPICS_AT_ONCE_MAX = 16

#: Set on what is sent again, so that consumers and the trace page can tell.
PROPERTY_RESENT_FROM = "RESENT_FROM"

#: What described the failed journey; the new one gets its own.
_PROPERTIES_OF_THE_JOURNEY = frozenset(
    {
        names.PROPERTY_CLUSTER,
        names.PROPERTY_CONSUME_START_TIMESTAMP,
        names.PROPERTY_DELAY_TIME_LEVEL,
        names.PROPERTY_MAX_OFFSET,
        names.PROPERTY_MAX_RECONSUME_TIMES,
        names.PROPERTY_MIN_OFFSET,
        names.PROPERTY_PRODUCER_GROUP,
        names.PROPERTY_REAL_QUEUE_ID,
        names.PROPERTY_REAL_TOPIC,
        names.PROPERTY_RECONSUME_TIME,
        names.PROPERTY_RETRY_TOPIC,
        names.PROPERTY_TRANSACTION_PREPARED,
        names.PROPERTY_WAIT_STORE_MSG_OK,
    }
)


@dataclass(frozen=True, slots=True)
class DeadLetterGroup:
    """A group that has dead letters. Times are None where no broker could tell."""

    group: str
    topic: str
    perm: int
    count: int
    oldest_ms: int | None
    newest_ms: int | None


class Target(StrEnum):
    """Where dead letters are sent."""

    RETRY = "retry"
    """To the group's retry topic: only this group receives them."""
    ORIGIN = "origin"
    """To the topic they came from: every group of that topic receives them."""


class Result(StrEnum):
    SENT = "sent"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one dead letter that was to be sent again."""

    id: str
    result: Result
    reason: Any = ""
    msg_id: str = ""
    topic: str = ""
    new_offset_msg_id: str = ""


@question(fresh_for_ms=2_000, deadline_ms=10_000)
async def groups_with_dead_letters(desk: Desk) -> Partial[tuple[DeadLetterGroup, ...]]:
    """Every group that has dead letters, most first."""
    topics = [each for each in await desk.admin.topic_list() if each.startswith(DLQ_PREFIX)]
    gate = asyncio.Semaphore(TOPICS_AT_ONCE_MAX)

    async def ask(topic: str) -> Partial[DeadLetterGroup | None]:
        async with gate:
            return await _summary(desk, topic)

    parts = await asyncio.gather(*(ask(topic) for topic in topics))
    found = [part.value for part in parts if part.value is not None]
    failures = dict.fromkeys(failure for part in parts for failure in part.failures)
    ordered = sorted(found, key=lambda each: (-each.count, each.group))
    return Partial(tuple(ordered), tuple(failures))


@question(fresh_for_ms=1_000)
async def summary(desk: Desk, group: str) -> Partial[DeadLetterGroup | None]:
    """The dead letters of one group; None when it has none."""
    return await _summary(desk, dlq_topic(group))


async def _summary(desk: Desk, topic: str) -> Partial[DeadLetterGroup | None]:
    try:
        route = await desk.admin.topic_route(topic)
    except RequestRefused as refusal:
        if refusal.code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        return Partial(None)
    queues = queues_of_route(topic, route)
    brokers = sorted({queue.broker for queue in queues})

    async def ask(broker: BrokerRef) -> tuple[int, int, int]:
        own = [queue for queue in queues if queue.broker == broker]
        return await _span(desk, topic, broker, own)

    spans, failures = await desk.each(brokers, ask)
    count = sum(span[0] for span in spans.values())
    if not count and not failures:
        return Partial(None)
    oldest = min((span[1] for span in spans.values() if span[1] > 0), default=None)
    newest = max((span[2] for span in spans.values() if span[2] > 0), default=None)
    perm = max((data.perm for data in route.queue_datas), default=0)
    group = topic.removeprefix(DLQ_PREFIX)
    return Partial(DeadLetterGroup(group, topic, perm, count, oldest, newest), failures)


async def _span(
    desk: Desk, topic: str, broker: BrokerRef, queues: list[QueueRef]
) -> tuple[int, int, int]:
    """How many a broker keeps, and when the oldest and the newest were stored (0: not known)."""
    stats = await desk.admin.topic_stats(broker.addr, topic)
    count = oldest_ms = newest_ms = 0
    for queue in queues:
        offset = next(
            (
                value
                for key, value in stats.items()
                if key.queue_id == queue.queue_id and key.broker_name == broker.name
            ),
            None,
        )
        if offset is None or offset.max_offset <= offset.min_offset:
            continue
        count += offset.max_offset - offset.min_offset
        newest_ms = max(newest_ms, offset.last_update_timestamp)
        first = await read_slice(desk, queue, offset.min_offset, offset.min_offset + 1)
        stored_ms = first.messages[0].store_timestamp if first.messages else 0
        oldest_ms = min(oldest_ms or stored_ms, stored_ms or oldest_ms)
    return count, oldest_ms, newest_ms


@command(deadline_ms=120_000)
async def resend(
    desk: Desk, group: str, ids: tuple[str, ...], target: Target
) -> tuple[Outcome, ...]:
    """Send dead letters of a group again; one outcome for each id, in the order of `ids`.

    One that fails does not keep the others back. A message keeps its unique key, so its journey can
    be followed and consumers that remember ids know it again.
    """
    gate = asyncio.Semaphore(RESENDS_AT_ONCE_MAX)
    routes: dict[str, TopicRouteData | RequestRefused] = {}

    async def one(offset_msg_id: str) -> Outcome:
        async with gate:
            try:
                return await _resend_one(desk, group, offset_msg_id, target, routes)
            except GantryError as failure:
                return Outcome(offset_msg_id, Result.FAILED, str(failure))

    return tuple(await asyncio.gather(*(one(each) for each in ids[:RESEND_MESSAGES_MAX])))


async def _resend_one(
    desk: Desk,
    group: str,
    offset_msg_id: str,
    target: Target,
    routes: dict[str, TopicRouteData | RequestRefused],
) -> Outcome:
    ref = (await desk.ask(view, offset_msg_id)).value
    if ref is None or ref.message.topic != dlq_topic(group):
        reason = format_lazy(_("“{group}” has no such dead letter any more."), group=group)
        return Outcome(offset_msg_id, Result.FAILED, reason)
    message = ref.message
    topic = retry_topic(group) if target is Target.RETRY else origin_topic(message)
    if not topic:
        reason = _("The dead letter does not tell which topic it came from.")
        return Outcome(offset_msg_id, Result.FAILED, reason, message.msg_id)
    try:
        queue = _target_queue(await _route(desk, topic, routes), topic, ref)
    except NotThere as missing:
        return Outcome(offset_msg_id, Result.FAILED, missing.detail, message.msg_id, topic)
    sent = await desk.admin.send(queue.broker.addr, revived(message, topic, target), queue.queue_id)
    doubt = "" if sent.status is SendStatus.SEND_OK else str(sent.status)
    return Outcome(offset_msg_id, Result.SENT, doubt, message.msg_id, topic, sent.offset_msg_id)


def origin_topic(message: MessageExt) -> str:
    """The topic a dead letter was sent to at first; empty when it does not say."""
    return (
        message.properties.get(names.PROPERTY_RETRY_TOPIC)
        or message.properties.get(names.PROPERTY_DLQ_ORIGIN_TOPIC)
        or ""
    )


def revived(message: MessageExt, topic: str, target: Target) -> Message:
    """The message to send for a dead letter: body, keys, tags and the application's properties."""
    kept = {
        name: value
        for name, value in message.properties.items()
        if name not in _PROPERTIES_OF_THE_JOURNEY
    }
    kept[PROPERTY_RESENT_FROM] = message.offset_msg_id
    origin = origin_topic(message)
    if target is Target.RETRY and origin:
        # The client shows its listener this topic instead of the retry topic.
        kept[names.PROPERTY_RETRY_TOPIC] = origin
    return Message(topic, message.decompressed_body(), flag=message.flag, properties=kept)


async def _route(
    desk: Desk, topic: str, routes: dict[str, TopicRouteData | RequestRefused]
) -> TopicRouteData:
    """The route of a target; asked for once however many messages go there."""
    if topic not in routes:
        try:
            routes[topic] = await desk.admin.topic_route(topic)
        except RequestRefused as refusal:
            routes[topic] = refusal
    known = routes[topic]
    if isinstance(known, RequestRefused):
        raise known
    return known


def _target_queue(route: TopicRouteData, topic: str, ref: MessageRef) -> QueueRef:
    """A writable queue of the target, on the broker that keeps the dead letter where it has one."""
    writable = {data.broker_name for data in route.queue_datas if data.perm & PERM_WRITE}
    queues = [each for each in queues_of_route(topic, route) if each.broker.name in writable]
    if not queues:
        raise NotThere(format_lazy(_("No broker takes messages for topic “{topic}”."), topic=topic))
    near = [each for each in queues if each.broker.name == ref.broker.name] or queues
    return near[ref.message.queue_offset % len(near)]
