"""Questions about the dead letters of each group: count, first and last one, growth.

With many groups, the list of all groups takes offsets from the inventories of Gantry brokers, and
remembers the store time of a queue's first message: a group without new dead letters needs no
request.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from time import monotonic
from weakref import WeakKeyDictionary

from console.gateway.engine.answers import Answer, Partial, merge_failures, now_ms
from console.gateway.engine.errors import NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.inventory import topic_inventory
from console.gateway.messages.paging import Window
from console.gateway.messages.queue_slices import (
    QueueRef,
    queues_of_config,
    queues_of_route,
    read_slice,
)
from console.gateway.messages.stored import MessageRef, view
from console.gateway.messages.windows import first_stored_at
from console.gateway.topics.listing import topic_configs, topic_rows
from console.gateway.topics.routes import reading_route
from core_broker.message.topics import DLQ_PREFIX, dlq_topic
from core_broker.remoting.bodies import PERM_READ, TopicOffset
from core_broker.remoting.bodies.inventory import TopicEntry, TopicInventoryBody

#: Maximum number of DLQ topics or messages that are requested at the same time.
TOPICS_AT_ONCE_MAX = 16
#: Maximum number of DLQ topics whose offsets are requested topic by topic; the offsets of an
#: inventory are up to some seconds old.
TOPICS_ASKED_MAX = 50
#: Time span of the growth, by store time, milliseconds.
GROWTH_SPAN_MS = 3_600_000
#: Time for which a first message is remembered, seconds: a topic may be deleted and created again.
FIRST_FRESH_S = 60.0
#: Maximum number of remembered first messages of a cluster.
FIRSTS_MAX = 8_192

Offsets = Mapping[int, TopicOffset]


@dataclass(frozen=True, slots=True)
class DeadLetterGroup:
    """A group with dead letters. Counts and times are None when no broker answered.

    `read_ms` is the time when the oldest of the counts was read: offsets of an inventory, and the
    last values of a broker that is down, are older than the question.
    """

    group: str
    topic: str
    perm: int
    count: int | None
    last_hour: int | None
    oldest_ms: int | None
    newest_ms: int | None
    read_ms: int | None

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
    read_ms: int


@dataclass(frozen=True, slots=True)
class _Inventory:
    """The topics of a broker's inventory, and the time when the inventory was read."""

    topics: Mapping[str, TopicEntry]
    read_ms: int


class _FirstTimes:
    """Store times of first messages, by queue and offset; bounded."""

    def __init__(self) -> None:
        self._times: OrderedDict[tuple[QueueRef, int], tuple[int, float]] = OrderedDict()

    async def read(self, session: ClusterSession, queue: QueueRef, offset: int) -> int | None:
        """Return the store time of a message; None for a deleted one."""
        known = self._times.get((queue, offset))
        if known is not None and monotonic() < known[1]:
            return known[0]
        found = (await read_slice(session, queue, offset, offset + 1)).messages
        if not found:
            return None
        self._times[queue, offset] = found[0].store_timestamp, monotonic() + FIRST_FRESH_S
        self._times.move_to_end((queue, offset))
        while len(self._times) > FIRSTS_MAX:
            self._times.popitem(last=False)
        return found[0].store_timestamp


_first_times: WeakKeyDictionary[ClusterSession, _FirstTimes] = WeakKeyDictionary()


@question(fresh_for_ms=2_000, deadline_ms=10_000, costly=True)
async def groups_with_dead_letters(session: ClusterSession) -> Partial[tuple[DeadLetterGroup, ...]]:
    """Every group with dead letters, highest count first; unknown counts before all others."""
    rows = await session.ask(topic_rows)
    configs = (await session.ask(topic_configs)).value
    topics = [row.name for row in rows.value if row.kind == "dlq"]
    inventories: Mapping[BrokerRef, _Inventory] = {}
    if len(topics) > TOPICS_ASKED_MAX:
        inventories = _inventories(await session.ask(topic_inventory))
    gate = asyncio.Semaphore(TOPICS_AT_ONCE_MAX)

    async def ask(topic: str) -> Partial[DeadLetterGroup | None]:
        held = {ref: table[topic] for ref, table in configs.items() if topic in table}
        queues = chain.from_iterable(queues_of_config(topic, *each) for each in held.items())
        known = {
            ref: (_offsets(inventory.topics[topic]), inventory.read_ms)
            for ref, inventory in inventories.items()
            if topic in inventory.topics
        }
        perm = max((config.perm for config in held.values()), default=0)
        async with gate:
            return await _summary(session, topic, queues, perm, known)

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
    topic = dlq_topic(group)
    try:
        route = await reading_route(session, topic)
    except NotFound:
        return Partial(None)
    perm = max((data.perm for data in route.queue_datas), default=0)
    return await _summary(session, topic, queues_of_route(topic, route), perm, {})


async def _summary(
    session: ClusterSession,
    topic: str,
    queues: Iterable[QueueRef],
    perm: int,
    known: Mapping[BrokerRef, tuple[Offsets, int]],
) -> Partial[DeadLetterGroup | None]:
    """The dead letters in a topic. Brokers without `known` offsets, which have the time of their
    reading, are asked for the offsets.
    """
    by_broker: dict[BrokerRef, list[QueueRef]] = {}
    for queue in queues:
        by_broker.setdefault(queue.broker, []).append(queue)

    async def ask(broker: BrokerRef) -> _Held:
        if broker in known:
            return await _held(session, by_broker[broker], *known[broker])
        read_ms = now_ms()
        stats = await session.admin.topic_stats(broker.addr, topic)
        offsets = {key.queue_id: value for key, value in stats.items()}
        return await _held(session, by_broker[broker], offsets, read_ms)

    found, failures = await session.fan_out(
        sorted(by_broker), ask, one_must_answer=False, keep=("dead_letters", topic)
    )
    count = sum(held.count for held in found.values()) if found else None
    if count == 0 and not failures:
        return Partial(None)
    return Partial(
        DeadLetterGroup(
            group=topic.removeprefix(DLQ_PREFIX),
            topic=topic,
            perm=perm,
            count=count,
            last_hour=sum(held.last_hour for held in found.values()) if found else None,
            oldest_ms=min((h.oldest_ms for h in found.values() if h.oldest_ms), default=None),
            newest_ms=max((h.newest_ms for h in found.values() if h.newest_ms), default=None),
            read_ms=min((held.read_ms for held in found.values()), default=None),
        ),
        failures,
    )


def _inventories(
    answer: Answer[Mapping[BrokerRef, TopicInventoryBody]],
) -> dict[BrokerRef, _Inventory]:
    """Return the inventories with the times of their reading; a broker that is down has an older
    one.
    """
    older_ms = {failure.addr: failure.as_of_ms for failure in answer.failures}
    return {
        ref: _Inventory(body.topics, older_ms.get(ref.addr) or answer.asked_at_ms)
        for ref, body in answer.value.items()
    }


def _offsets(entry: TopicEntry) -> Offsets:
    """Return the offsets of a topic's inventory, by queue id."""
    return {
        queue_id: TopicOffset(
            min_offset=first,
            max_offset=end,
            last_update_timestamp=entry.last_write_timestamp or 0,
        )
        for queue_id, (first, end) in enumerate(entry.queues)
    }


async def _held(
    session: ClusterSession, queues: Sequence[QueueRef], offsets: Offsets, read_ms: int
) -> _Held:
    hour_ago_ms = now_ms() - GROWTH_SPAN_MS
    firsts = _first_times.setdefault(session, _FirstTimes())
    total, last_hour, oldest_ms, newest_ms = 0, 0, [], []
    for queue in queues:
        offset = offsets.get(queue.queue_id)
        if offset is None or offset.max_offset <= offset.min_offset:
            continue
        window = Window(queue, offset.min_offset, offset.max_offset)
        total += window.count
        newest_ms.append(offset.last_update_timestamp)
        first_ms = await firsts.read(session, queue, window.begin)
        if first_ms is not None:
            oldest_ms.append(first_ms)
        if offset.last_update_timestamp >= hour_ago_ms:
            begin = (
                window.begin
                if first_ms is not None and first_ms >= hour_ago_ms
                else await first_stored_at(session, window, hour_ago_ms)
            )
            last_hour += window.end - begin
    return _Held(
        total, last_hour, min(oldest_ms, default=None), max(newest_ms, default=None), read_ms
    )


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
