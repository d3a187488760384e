"""The question of which groups have consumed a message.

A group's committed offset lies beyond the messages that its filter rejected, too. So the filters
of the connected consumers decide first; an offline group's filter is unknown.
"""

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from console.gateway.engine.answers import Partial
from console.gateway.engine.concurrency import gather_limited
from console.gateway.engine.errors import GatewayError
from console.gateway.engine.questions import question
from console.gateway.engine.session import ClusterSession
from console.gateway.groups.members import GroupClients, group_clients
from console.gateway.messages.filters import FilterError, MessageFilter
from console.gateway.messages.lookup import by_key
from console.gateway.messages.stored import QUEUES_AT_ONCE_MAX, MessageRef, message_at
from core_broker.client import AdminClient
from core_broker.errors import RequestRefused, TransportError
from core_broker.message.model import MessageExt
from core_broker.message.topics import RETRY_PREFIX
from core_broker.remoting.bodies import EXPRESSION_SQL92, MessageQueue, SubscriptionData

GROUPS_SHOWN_MAX = 100
DELIVERIES_DEADLINE_MS = 10_000


class Delivery(StrEnum):
    """The state of a message in a group, judged by the group's filter and committed offset."""

    CONSUMED = "consumed"
    #: The filter of the connected consumers rejects the message.
    FILTERED = "filtered"
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
    states = await gather_limited(gate, groups, lambda group: _delivery(session, ref, group))
    return Partial(tuple(states))


@question(fresh_for_ms=2_000, deadline_ms=DELIVERIES_DEADLINE_MS)
async def deliveries_of(
    session: ClusterSession, wanted: tuple[tuple[str, str, str], ...]
) -> Partial[tuple[Delivery, ...]]:
    """The delivery state for each topic, unique key and group, in order.

    UNKNOWN for a deleted topic or message, and for unreachable brokers.
    """
    gate = asyncio.Semaphore(QUEUES_AT_ONCE_MAX)

    async def state(each: tuple[str, str, str]) -> Delivery:
        topic, msg_id, group = each
        try:
            refs = (await session.ask(by_key, topic, msg_id)).value.refs
        except GatewayError:
            return Delivery.UNKNOWN
        stored = [ref for ref in refs if ref.message.msg_id == msg_id]
        if not stored:
            return Delivery.UNKNOWN
        oldest = min(stored, key=lambda ref: ref.message.store_timestamp)
        return (await _delivery(session, oldest, group)).state

    return Partial(tuple(await gather_limited(gate, wanted, state)))


async def _delivery(session: ClusterSession, ref: MessageRef, group: str) -> GroupDelivery:
    by_offset = await _by_offset(session.admin, ref, group)
    if by_offset.state not in {Delivery.CONSUMED, Delivery.WAITING}:
        return by_offset
    try:
        members = (await session.ask(group_clients, group)).value
    except GatewayError:
        return by_offset
    reason = rejecting_filter(members, ref.message)
    return by_offset if reason is None else GroupDelivery(group, Delivery.FILTERED, reason)


def rejecting_filter(members: GroupClients, message: MessageExt) -> str | None:
    """Return the filter of the connected consumers for a rejected message, else None.

    Consumers with different filters reject a message together. By default, brokers apply no filter
    to the retry topic of a group.
    """
    if message.topic.startswith(RETRY_PREFIX):
        return None
    filters = [each for each in members.subscriptions if each.topic == message.topic]
    if not filters or not all(_rejects(each, message) for each in filters):
        return None
    return ", ".join(each.sub_string for each in filters)


def _rejects(subscription: SubscriptionData, message: MessageExt) -> bool:
    expression = subscription.sub_string.strip()
    if not expression or subscription.class_filter_mode:
        return False
    is_sql = subscription.expression_type == EXPRESSION_SQL92
    condition = MessageFilter(sql=expression) if is_sql else MessageFilter(tags=expression)
    try:
        return not condition.compiled()(message)
    except FilterError:
        return False


async def _by_offset(admin: AdminClient, ref: MessageRef, group: str) -> GroupDelivery:
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
