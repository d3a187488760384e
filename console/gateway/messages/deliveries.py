"""The question of which groups have consumed a message."""

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from console.gateway.engine.answers import Partial
from console.gateway.engine.concurrency import gather_limited
from console.gateway.engine.questions import question
from console.gateway.engine.session import ClusterSession
from console.gateway.messages.stored import QUEUES_AT_ONCE_MAX, MessageRef, message_at
from core_broker.client import AdminClient
from core_broker.errors import RequestRefused, TransportError
from core_broker.remoting.bodies import MessageQueue

GROUPS_SHOWN_MAX = 100


class Delivery(StrEnum):
    """The state of a message in a group, judged by the group's committed offset."""

    CONSUMED = "consumed"
    WAITING = "waiting"
    NOT_SUBSCRIBED = "not_subscribed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class GroupDelivery:
    group: str
    state: Delivery
    reason: str = ""


@question(fresh_for_ms=2_000)
async def deliveries(
    session: ClusterSession, offset_msg_id: str
) -> Partial[tuple[GroupDelivery, ...]]:
    """The delivery state of a message in each group of its topic."""
    ref, failures = await message_at(session, offset_msg_id)
    if ref is None:
        return Partial((), failures)
    admin, addr, topic = session.admin, ref.broker.addr, ref.message.topic
    # RocketMQ 5 may list the topic itself among its groups.
    groups = sorted(set(await admin.groups_of_topic(addr, topic)) - {topic})[:GROUPS_SHOWN_MAX]
    gate = asyncio.Semaphore(QUEUES_AT_ONCE_MAX)
    states = await gather_limited(gate, groups, lambda group: _delivery(admin, ref, group))
    return Partial(tuple(states))


async def _delivery(admin: AdminClient, ref: MessageRef, group: str) -> GroupDelivery:
    message = ref.message
    queue = MessageQueue(
        topic=message.topic, broker_name=ref.broker.name, queue_id=message.queue_id
    )
    try:
        stats = await admin.consume_stats(ref.broker.addr, group, message.topic)
    except (RequestRefused, TransportError) as failure:
        return GroupDelivery(group, Delivery.UNKNOWN, str(failure))
    offsets = stats.offset_table.get(queue)
    if offsets is None or offsets.consumer_offset < 0:
        return GroupDelivery(group, Delivery.NOT_SUBSCRIBED)
    consumed = offsets.consumer_offset > message.queue_offset
    return GroupDelivery(group, Delivery.CONSUMED if consumed else Delivery.WAITING)
