"""Questions about the dead letters of each group: count, first and last one, growth."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from console.gateway.engine.answers import Answer, Partial, merge_failures, now_ms
from console.gateway.engine.errors import NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.messages.paging import Window
from console.gateway.messages.queue_slices import QueueRef, brokers_of, queues_of_route, read_slice
from console.gateway.messages.stored import MessageRef, view
from console.gateway.messages.windows import first_stored_at
from console.gateway.topics.listing import topic_rows
from console.gateway.topics.routes import reading_route
from core_broker.message.topics import DLQ_PREFIX, dlq_topic
from core_broker.remoting.bodies import PERM_READ

#: Maximum number of DLQ topics or messages that are requested at the same time.
TOPICS_AT_ONCE_MAX = 16
#: Time span of the growth, by store time, milliseconds.
GROWTH_SPAN_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class DeadLetterGroup:
    """A group with dead letters. Counts and times are None when no broker answered."""

    group: str
    topic: str
    perm: int
    count: int | None
    last_hour: int | None
    oldest_ms: int | None
    newest_ms: int | None

    @property
    def is_readable(self) -> bool:
        """True when consumers and Apache's dashboard may read the topic, too."""
        return bool(self.perm & PERM_READ)


@dataclass(frozen=True, slots=True)
class _Held:
    """The dead letters of a group on one broker."""

    count: int
    last_hour: int
    oldest_ms: int | None
    newest_ms: int | None


@question(fresh_for_ms=2_000, deadline_ms=10_000)
async def groups_with_dead_letters(session: ClusterSession) -> Partial[tuple[DeadLetterGroup, ...]]:
    """Every group with dead letters, highest count first; unknown counts before all others."""
    rows = await session.ask(topic_rows)
    topics = [row.name for row in rows.value if row.kind == "dlq"]
    gate = asyncio.Semaphore(TOPICS_AT_ONCE_MAX)

    async def ask(topic: str) -> Partial[DeadLetterGroup | None]:
        async with gate:
            return await _summary(session, topic)

    parts = await asyncio.gather(*(ask(topic) for topic in topics))
    found = [part.value for part in parts if part.value is not None]
    failures = merge_failures(rows.failures, *(part.failures for part in parts))
    ordered = sorted(
        found, key=lambda each: (each.count is not None, -(each.count or 0), each.group)
    )
    return Partial(tuple(ordered), failures)


@question(fresh_for_ms=1_000)
async def summary(session: ClusterSession, group: str) -> Partial[DeadLetterGroup | None]:
    """The dead letters of a group; None without dead letters."""
    return await _summary(session, dlq_topic(group))


async def _summary(session: ClusterSession, topic: str) -> Partial[DeadLetterGroup | None]:
    try:
        route = await reading_route(session, topic)
    except NotFound:
        return Partial(None)
    queues = queues_of_route(topic, route)

    async def ask(broker: BrokerRef) -> _Held:
        return await _held(session, topic, [each for each in queues if each.broker == broker])

    found, failures = await session.fan_out(
        brokers_of(queues), ask, one_must_answer=False, keep=("dead_letters", topic)
    )
    count = sum(held.count for held in found.values()) if found else None
    if count == 0 and not failures:
        return Partial(None)
    return Partial(
        DeadLetterGroup(
            group=topic.removeprefix(DLQ_PREFIX),
            topic=topic,
            perm=max((data.perm for data in route.queue_datas), default=0),
            count=count,
            last_hour=sum(held.last_hour for held in found.values()) if found else None,
            oldest_ms=min((h.oldest_ms for h in found.values() if h.oldest_ms), default=None),
            newest_ms=max((h.newest_ms for h in found.values() if h.newest_ms), default=None),
        ),
        failures,
    )


async def _held(session: ClusterSession, topic: str, queues: Sequence[QueueRef]) -> _Held:
    stats = await session.admin.topic_stats(queues[0].broker.addr, topic)
    offsets = {key.queue_id: value for key, value in stats.items()}
    hour_ago_ms = now_ms() - GROWTH_SPAN_MS
    total, last_hour, oldest_ms, newest_ms = 0, 0, [], []
    for queue in queues:
        offset = offsets.get(queue.queue_id)
        if offset is None or offset.max_offset <= offset.min_offset:
            continue
        window = Window(queue, offset.min_offset, offset.max_offset)
        total += window.count
        newest_ms.append(offset.last_update_timestamp)
        first = await read_slice(session, queue, window.begin, window.begin + 1)
        oldest_ms += [each.store_timestamp for each in first.messages]
        if offset.last_update_timestamp >= hour_ago_ms:
            begin = (
                window.begin
                if first.messages and first.messages[0].store_timestamp >= hour_ago_ms
                else await first_stored_at(session, window, hour_ago_ms)
            )
            last_hour += window.end - begin
    return _Held(total, last_hour, min(oldest_ms, default=None), max(newest_ms, default=None))


@question(fresh_for_ms=1_000, deadline_ms=15_000)
async def dead_letters_by_id(
    session: ClusterSession, group: str, ids: tuple[str, ...]
) -> Partial[dict[str, MessageRef]]:
    """The dead letters of the group with these offset message ids."""
    gate = asyncio.Semaphore(TOPICS_AT_ONCE_MAX)

    async def read(offset_msg_id: str) -> Answer[MessageRef | None]:
        async with gate:
            return await session.ask(view, offset_msg_id)

    answers = await asyncio.gather(*(read(each) for each in ids))
    found = {
        name: answer.value
        for name, answer in zip(ids, answers, strict=True)
        if answer.value is not None and answer.value.message.topic == dlq_topic(group)
    }
    return Partial(found, merge_failures(*(answer.failures for answer in answers)))
