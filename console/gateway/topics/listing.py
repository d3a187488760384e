"""Questions about topics: the list, configuration and queue offsets."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers.listing import ask_masters, known_map
from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures
from console.gateway.engine.errors import NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from core_broker.message import topics as names
from core_broker.remoting.bodies import PERM_READ, ClusterInfo, TopicConfig, TopicOffset

Kind = Literal["unspecified", "normal", "fifo", "delay", "transaction", "retry", "dlq", "system"]

#: Maximum number of read-only queues of a topic whose offsets are requested.
READ_ONLY_QUEUES_MAX = 64


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic over all brokers; `drift`: brokers differ. `perm` is None for unequal permissions.

    `unread_queues` counts write queues beyond the read queues: no consumer reads them.
    """

    name: str
    kind: Kind
    perm: int | None
    read_queues: int
    write_queues: int
    brokers: tuple[str, ...]
    order: bool
    drift: bool
    unread_queues: int


@dataclass(frozen=True, slots=True)
class TopicQueue:
    """A queue: `stored` messages with offsets in [`offset_min`, `offset_max`).

    `unread`: the queue is beyond the read queues of its broker, so no consumer reads it.
    """

    broker: str
    queue_id: int
    offset_min: int
    offset_max: int
    last_write_ms: int | None
    unread: bool = False

    @property
    def stored(self) -> int:
        return max(0, self.offset_max - self.offset_min)


@dataclass(frozen=True, slots=True)
class TopicDetail:
    row: TopicRow
    configs: tuple[tuple[BrokerRef, TopicConfig], ...]
    queues: tuple[TopicQueue, ...]

    @property
    def unread_stored(self) -> int:
        return sum(queue.stored for queue in self.queues if queue.unread)


Configs = Mapping[BrokerRef, Mapping[str, TopicConfig]]


@question(fresh_for_ms=2_000, costly=True)
async def topic_configs(session: ClusterSession) -> Partial[Configs]:
    """The topic table of each broker."""
    found, failures = await ask_masters(
        session, lambda ref: session.admin.topic_configs(ref.addr), keep=("topic_configs",)
    )
    return Partial(found, failures)


@question(fresh_for_ms=2_000, costly=True)
async def topic_rows(session: ClusterSession) -> Partial[tuple[TopicRow, ...]]:
    """All topics in order of name."""
    answer = await session.ask(topic_configs)
    own = own_names(await known_map(session))
    rows = session.derived("topic_rows", (answer.value, own), _rows)
    return Partial(rows, answer.failures)


def _rows(source: tuple[Configs, frozenset[str]]) -> tuple[TopicRow, ...]:
    tables, own = source
    held: dict[str, dict[str, TopicConfig]] = {}
    for ref, table in tables.items():
        for name, config in table.items():
            held.setdefault(name, {})[ref.name] = config
    rows = (topic_row(name, configs, own) for name, configs in held.items())
    return tuple(sorted(rows, key=lambda row: row.name))


@question(fresh_for_ms=1_000)
async def topic_detail(session: ClusterSession, topic: str) -> Partial[TopicDetail]:
    """A topic with the configuration of each broker, and the queues of the brokers that answer."""
    answer = await session.ask(topic_configs)
    configs = {ref: table[topic] for ref, table in answer.value.items() if topic in table}
    if not configs:
        raise no_such_topic(topic, answer.failures)
    own = own_names(await known_map(session))
    tables, failures = await queues_of_topic(session, topic, one_must_answer=False)
    queues = sorted(
        (
            replace(queue, unread=queue.queue_id >= configs[ref].read_queue_nums)
            for ref, table in tables.items()
            for queue in table
        ),
        key=lambda queue: (queue.broker, queue.queue_id),
    )
    return Partial(
        TopicDetail(
            topic_row(topic, {ref.name: config for ref, config in configs.items()}, own),
            tuple(configs.items()),
            tuple(queues),
        ),
        merge_failures(answer.failures, failures),
    )


def no_such_topic(topic: str, failures: tuple[BrokerFailure, ...] = ()) -> NotFound:
    hint = _("A broker that did not answer may have it.") if failures else ""
    return NotFound(
        format_lazy(_("No broker of the cluster has a topic “{topic}”."), topic=topic),
        hint=hint,
        failures=failures,
    )


async def queues_of_topic(
    session: ClusterSession, topic: str, *, one_must_answer: bool = True
) -> tuple[dict[BrokerRef, list[TopicQueue]], tuple[BrokerFailure, ...]]:
    """Return the queues of a topic on each broker with the topic."""
    configs = (await session.ask(topic_configs)).value
    refs = [ref for ref, table in configs.items() if topic in table]

    async def queues(ref: BrokerRef) -> list[TopicQueue]:
        table = await session.admin.topic_stats(ref.addr, topic)
        found = [_queue(ref, queue.queue_id, offsets) for queue, offsets in table.items()]
        # Topic statistics list the write queues only; request the offsets of read-only queues.
        listed = {queue.queue_id for queue in found}
        more = [one for one in range(configs[ref][topic].read_queue_nums) if one not in listed]
        rest = await asyncio.gather(
            *(_read_only_queue(session, ref, topic, one) for one in more[:READ_ONLY_QUEUES_MAX])
        )
        return found + rest

    return await session.fan_out(
        refs, queues, one_must_answer=one_must_answer, keep=("queues_of_topic", topic)
    )


async def _read_only_queue(
    session: ClusterSession, ref: BrokerRef, topic: str, queue_id: int
) -> TopicQueue:
    """Return a read-only queue; no request reports its last write time."""
    low, high = await asyncio.gather(
        session.admin.min_offset(ref.addr, topic, queue_id),
        session.admin.max_offset(ref.addr, topic, queue_id),
    )
    return _queue(ref, queue_id, TopicOffset(min_offset=low, max_offset=high))


def _queue(ref: BrokerRef, queue_id: int, offsets: TopicOffset) -> TopicQueue:
    written_ms = offsets.last_update_timestamp
    return TopicQueue(
        ref.name,
        queue_id,
        max(0, offsets.min_offset),
        max(0, offsets.max_offset),
        written_ms if written_ms > 0 else None,
    )


def own_names(info: ClusterInfo) -> frozenset[str]:
    """Return the topics that brokers create for themselves, named after brokers and clusters."""
    clusters = set(info.cluster_addr_table) | {
        data.cluster for data in info.broker_addr_table.values()
    }
    replies = {names.reply_topic(cluster) for cluster in clusters}
    return frozenset(clusters | replies | set(info.broker_addr_table))


def topic_row(name: str, configs: Mapping[str, TopicConfig], own: frozenset[str]) -> TopicRow:
    """Merge the configurations of a topic on several brokers."""
    perms = {config.perm for config in configs.values()}
    shapes = {
        (config.perm, config.read_queue_nums, config.write_queue_nums, config.order)
        for config in configs.values()
    }
    return TopicRow(
        name=name,
        kind=topic_kind(name, configs.values(), own),
        perm=perms.pop() if len(perms) == 1 else None,
        read_queues=sum(config.read_queue_nums for config in configs.values()),
        write_queues=sum(config.write_queue_nums for config in configs.values()),
        brokers=tuple(sorted(configs)),
        order=any(config.order for config in configs.values()),
        drift=len(shapes) > 1,
        unread_queues=sum(unread_queue_count(config) for config in configs.values()),
    )


def unread_queue_count(config: TopicConfig) -> int:
    """Return the number of write queues that no consumer reads. Without read permission, a topic
    such as a new dead-letter topic is closed to consumers on purpose."""
    if not config.perm & PERM_READ:
        return 0
    return max(0, config.write_queue_nums - config.read_queue_nums)


def topic_kind(name: str, configs: Iterable[TopicConfig], own: frozenset[str]) -> Kind:
    """Return the kind of a topic; 4.x records no message types: "unspecified"."""
    if name.startswith(names.RETRY_PREFIX):
        return "retry"
    if name.startswith(names.DLQ_PREFIX):
        return "dlq"
    if names.is_system_topic(name) or name in own:
        return "system"
    recorded = {(config.attributes or {}).get("message.type", "") for config in configs}
    kinds: dict[str, Kind] = {
        "NORMAL": "normal",
        "FIFO": "fifo",
        "DELAY": "delay",
        "TRANSACTION": "transaction",
    }
    return kinds.get(recorded.pop().upper(), "unspecified") if len(recorded) == 1 else "unspecified"
