"""The question of the consumer groups of one topic: lag and number of clients."""

import asyncio
from dataclasses import dataclass

from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures
from console.gateway.engine.errors import GatewayError
from console.gateway.engine.questions import question
from console.gateway.engine.session import ClusterSession
from console.gateway.groups.members import clients_of
from console.gateway.groups.progress import GroupQueue, progress_of, queue_progress
from console.gateway.topics.metrics import topic_metrics

TOPIC_GROUPS_MAX = 30
TOPIC_GROUPS_DEADLINE_MS = 10_000


@dataclass(frozen=True, slots=True)
class TopicGroup:
    """A consumer group of the topic; None means unknown."""

    group: str
    lag: int | None
    behind_since_ms: int | None
    clients: int | None


@question(fresh_for_ms=2_000, deadline_ms=TOPIC_GROUPS_DEADLINE_MS)
async def groups_reading(session: ClusterSession, topic: str) -> Partial[tuple[TopicGroup, ...]]:
    """The groups of a topic, highest lag first; at most TOPIC_GROUPS_MAX groups."""
    numbers = await session.ask(topic_metrics, topic)
    groups = numbers.value.groups[:TOPIC_GROUPS_MAX]
    clients = await session.ask(clients_of, groups)
    found = await asyncio.gather(*(_queues(session, group, topic) for group in groups))
    readers = []
    for group, (queues, _failures) in zip(groups, found, strict=True):
        progress = progress_of(queues, ())
        members = clients.value.get(group)
        readers.append(
            TopicGroup(
                group,
                progress.lag if progress else None,
                progress.behind_since_ms if progress else None,
                len(members.clients) if members else None,
            )
        )
    readers.sort(key=lambda reader: (-(reader.lag or 0), reader.group))
    failures = merge_failures(clients.failures, *(part for _queues, part in found))
    return Partial(tuple(readers), failures)


async def _queues(
    session: ClusterSession, group: str, topic: str
) -> tuple[list[GroupQueue], tuple[BrokerFailure, ...]]:
    """Return the group's offsets in a topic; empty for a deleted group."""
    try:
        answer = await session.ask(queue_progress, group)
    except GatewayError as failure:
        return [], failure.failures
    return [queue for queue in answer.value if queue.topic == topic], answer.failures
