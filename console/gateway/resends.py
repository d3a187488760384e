"""The command that sends dead letters again.

A dead letter stays in its `%DLQ%` topic after it was sent again: the topic is a log. What was sent
again, when and by whom is kept in the console's ledger, see `console.deadletters.ledger`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.desk import Desk
from console.gateway.errors import GatewayError, NotThere, Unusable
from console.gateway.messages import MessageRef, view
from console.gateway.questions import command
from console.gateway.queue_slices import MASTER_ID
from core_broker.client import SendStatus
from core_broker.errors import ConnectionClosed, GantryError, RequestRefused, RequestTimeout
from core_broker.message import properties as names
from core_broker.message.model import Message, MessageExt
from core_broker.message.topics import dlq_topic, retry_topic
from core_broker.remoting.bodies import TopicRouteData

PERM_WRITE = 2
RESEND_MESSAGES_MAX = 1_000
RESENDS_AT_ONCE_MAX = 8
#: What is not begun by then fails, so that there is an outcome for each message in time.
RESEND_BUDGET_S = 40.0
RESEND_DEADLINE_MS = 60_000

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


@command(deadline_ms=RESEND_DEADLINE_MS)
async def resend(
    desk: Desk, group: str, ids: tuple[str, ...], target: Target
) -> tuple[Outcome, ...]:
    """Send dead letters of a group again; one outcome for each id, in the order of `ids`.

    One that fails does not keep the others back. A message keeps its unique key, so its journey can
    be followed and consumers that remember ids know it again.
    """
    if len(ids) > RESEND_MESSAGES_MAX:
        raise Unusable(
            format_lazy(
                _("At most {most} dead letters can be sent again at once."),
                most=RESEND_MESSAGES_MAX,
            )
        )
    gate = asyncio.Semaphore(RESENDS_AT_ONCE_MAX)
    routes: dict[str, TopicRouteData | RequestRefused] = {}
    out_of_time = monotonic() + RESEND_BUDGET_S

    async def one(offset_msg_id: str) -> Outcome:
        async with gate:
            if monotonic() > out_of_time:
                reason: Any = _("The cluster is slow: there was no time left for this one.")
                return Outcome(offset_msg_id, Result.FAILED, reason)
            try:
                return await _resend_one(desk, group, offset_msg_id, target, routes)
            except GatewayError as failure:
                return Outcome(offset_msg_id, Result.FAILED, failure.detail)
            except GantryError as failure:
                return Outcome(offset_msg_id, Result.FAILED, str(failure))

    return tuple(await asyncio.gather(*(one(each) for each in ids)))


async def _resend_one(
    desk: Desk,
    group: str,
    offset_msg_id: str,
    target: Target,
    routes: dict[str, TopicRouteData | RequestRefused],
) -> Outcome:
    answer = await desk.ask(view, offset_msg_id)
    ref = answer.value
    if ref is None and answer.failures:
        return Outcome(offset_msg_id, Result.FAILED, answer.failures[0].reason)
    if ref is None or ref.message.topic != dlq_topic(group):
        reason = format_lazy(_("“{group}” has no such dead letter any more."), group=group)
        return Outcome(offset_msg_id, Result.FAILED, reason)
    message = ref.message
    topic = retry_topic(group) if target is Target.RETRY else origin_topic(message)
    if not topic:
        reason = _("The dead letter does not tell which topic it came from.")
        return Outcome(offset_msg_id, Result.FAILED, reason, message.msg_id)
    try:
        addr, queue_id = _target_queue(await _route(desk, topic, routes), topic, ref)
    except NotThere as missing:
        return Outcome(offset_msg_id, Result.FAILED, missing.detail, message.msg_id, topic)
    try:
        sent = await desk.admin.send(addr, revived(message, topic, target), queue_id)
    except (RequestTimeout, ConnectionClosed) as failure:
        reason = format_lazy(
            _("{cause} It may have arrived all the same: look before you send it once more."),
            cause=str(failure),
        )
        return Outcome(offset_msg_id, Result.FAILED, reason, message.msg_id, topic)
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


def _target_queue(route: TopicRouteData, topic: str, ref: MessageRef) -> tuple[str, int]:
    """Address and queue to send to, on the broker that keeps the dead letter where it can be."""
    masters = {each.broker_name: each.broker_addrs.get(MASTER_ID) for each in route.broker_datas}
    queues = [
        (data.broker_name, addr, queue_id)
        for data in route.queue_datas
        if data.perm & PERM_WRITE and (addr := masters.get(data.broker_name))
        for queue_id in range(data.write_queue_nums)
    ]
    if not queues:
        raise NotThere(format_lazy(_("No broker takes messages for topic “{topic}”."), topic=topic))
    near = [each for each in queues if each[0] == ref.broker.name] or queues
    _broker, addr, queue_id = near[ref.message.queue_offset % len(near)]
    return addr, queue_id
