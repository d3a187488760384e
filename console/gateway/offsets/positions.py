"""Questions about the offsets of a group in one topic, as brokers and as consumers report them."""

import asyncio
from collections.abc import Mapping

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.engine.answers import Partial, merge_failures
from console.gateway.engine.errors import Unusable
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.groups.members import group_clients
from console.gateway.messages.queue_slices import QueueRef, brokers_of, topic_queues
from console.gateway.offsets.plan import Key, QueuePosition
from core_broker.errors import RequestRefused
from core_broker.remoting.bodies import MessageQueue

#: Maximum number of queues of a topic whose offsets the console resets; beyond, use mqadmin.
QUEUES_MAX = 1_024
#: Maximum number of queues whose offsets are requested at the same time.
QUEUES_AT_ONCE_MAX = 32
PLAN_DEADLINE_MS = 20_000


@question(fresh_for_ms=0, deadline_ms=PLAN_DEADLINE_MS)
async def positions(
    session: ClusterSession, group: str, topic: str
) -> Partial[tuple[QueuePosition, ...]]:
    """The group's position in each queue of a topic; NotFound for an unknown topic."""
    queues = await topic_queues(session, topic)
    if len(queues) > QUEUES_MAX:
        raise Unusable(format_lazy(_("The topic has more than {most} queues."), most=QUEUES_MAX))
    gate = asyncio.Semaphore(QUEUES_AT_ONCE_MAX)

    async def ask(broker: BrokerRef) -> list[QueuePosition]:
        stats = await session.admin.topic_stats(broker.addr, topic)
        ends = {key.queue_id: value for key, value in stats.items()}
        mine = [each for each in queues if each.broker == broker and each.queue_id in ends]

        async def position(queue: QueueRef) -> QueuePosition:
            async with gate:
                offset = await session.admin.query_consumer_offset(
                    broker.addr, group, topic, queue.queue_id, committed_only=True
                )
            extent = ends[queue.queue_id]
            begin = max(0, extent.min_offset)
            return QueuePosition(
                broker, queue.queue_id, begin, max(begin, extent.max_offset), offset
            )

        return await asyncio.gather(*(position(each) for each in mine))

    found, failures = await session.fan_out(brokers_of(queues), ask)
    rows = [each for broker_positions in found.values() for each in broker_positions]
    return Partial(tuple(sorted(rows, key=lambda each: each.key)), failures)


@question(fresh_for_ms=500, deadline_ms=PLAN_DEADLINE_MS)
async def client_offsets(
    session: ClusterSession, group: str, topic: str
) -> Partial[dict[Key, tuple[str, int]]]:
    """The owner and the local offset of each queue, from consumers that answer."""
    members = await session.ask(group_clients, group)
    if not members.value.online:
        return Partial({})
    brokers = brokers_of(await topic_queues(session, topic))
    known: dict[Key, tuple[str, int]] = {}

    async def ask(broker: BrokerRef) -> Mapping[str, Mapping[MessageQueue, int]]:
        try:
            return await session.admin.consumer_status(broker.addr, group, topic)
        except RequestRefused:
            return {}  # no consumer of the group is connected to this broker, or none answers

    found, failures = await session.fan_out(brokers, ask, one_must_answer=False)
    for tables in found.values():
        for client, table in tables.items():
            for queue, offset in table.items():
                if offset >= 0:
                    known[queue.broker_name, queue.queue_id] = client, offset
    return Partial(known, merge_failures(members.failures, failures))
