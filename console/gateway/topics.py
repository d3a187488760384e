"""Questions about topics: what there is, how it is configured, what its queues hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.answers import Answer, BrokerFailure, Partial, merge_failures
from console.gateway.brokers import cluster_map, masters
from console.gateway.desk import BrokerRef, Desk
from console.gateway.errors import GatewayError, NotThere
from console.gateway.questions import question
from core_broker.errors import RequestRefused
from core_broker.message import topics as names
from core_broker.remoting.bodies import ClusterInfo, TopicConfig, TopicOffset
from core_broker.remoting.codes import ResponseCode

Kind = Literal["unspecified", "normal", "fifo", "delay", "transaction", "retry", "dlq", "system"]

NUMBERS_FRESH_MS = 3_000
NUMBERS_DEADLINE_MS = 10_000
READ_ONLY_QUEUES_MAX = 64


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic over all brokers. `perm` is None where brokers differ; `drift` says that they do."""

    name: str
    kind: Kind
    perm: int | None
    read_queues: int
    write_queues: int
    brokers: tuple[str, ...]
    order: bool
    drift: bool


@dataclass(frozen=True, slots=True)
class TopicNumbers:
    """What changes while people watch. `in_rate` is None when no broker counted anything yet."""

    stored: int
    total: int
    last_write_ms: int | None
    in_rate: float | None
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicQueue:
    """One queue: `stored` messages from `offset_min` to before `offset_max`."""

    broker: str
    queue_id: int
    offset_min: int
    offset_max: int
    last_write_ms: int | None

    @property
    def stored(self) -> int:
        return max(0, self.offset_max - self.offset_min)


@dataclass(frozen=True, slots=True)
class TopicDetail:
    row: TopicRow
    configs: tuple[tuple[BrokerRef, TopicConfig], ...]
    queues: tuple[TopicQueue, ...]
    numbers: TopicNumbers


Configs = Mapping[BrokerRef, Mapping[str, TopicConfig]]


@question(fresh_for_ms=2_000)
async def topic_configs(desk: Desk) -> Partial[Configs]:
    """Every broker's table of topics."""
    found, failures = await desk.each(
        await masters(desk), lambda ref: desk.admin.topic_configs(ref.addr)
    )
    return Partial(found, failures)


@question(fresh_for_ms=2_000)
async def topic_rows(desk: Desk) -> Partial[tuple[TopicRow, ...]]:
    """All topics in order of name."""
    answer = await desk.ask(topic_configs)
    own = own_names((await desk.ask(cluster_map)).value)
    held: dict[str, dict[str, TopicConfig]] = {}
    for ref, table in answer.value.items():
        for name, config in table.items():
            held.setdefault(name, {})[ref.name] = config
    rows = (topic_row(name, configs, own) for name, configs in held.items())
    return Partial(tuple(sorted(rows, key=lambda row: row.name)), answer.failures)


@question(fresh_for_ms=NUMBERS_FRESH_MS)
async def topic_numbers(desk: Desk, topic: str) -> Partial[TopicNumbers]:
    """Stored messages, rate and groups of one topic."""
    tables, failures = await _queues(desk, topic)
    rates, rate_failures = await desk.each(
        tables, lambda ref: _put_rate(desk, ref, topic), one_must_answer=False
    )
    groups, group_failures = await desk.each(
        tables, lambda ref: desk.admin.groups_of_topic(ref.addr, topic), one_must_answer=False
    )
    known = [rate for rate in rates.values() if rate is not None]
    queues = [queue for table in tables.values() for queue in table]
    return Partial(
        TopicNumbers(
            stored=sum(queue.stored for queue in queues),
            total=sum(queue.offset_max for queue in queues),
            last_write_ms=max((queue.last_write_ms or 0 for queue in queues), default=0) or None,
            in_rate=sum(known) if known else None,
            # RocketMQ 5 may list the topic itself among its groups.
            groups=tuple(sorted({group for found in groups.values() for group in found} - {topic})),
        ),
        merge_failures(failures, rate_failures, group_failures),
    )


@question(fresh_for_ms=NUMBERS_FRESH_MS, deadline_ms=NUMBERS_DEADLINE_MS)
async def numbers_of(desk: Desk, topics: tuple[str, ...]) -> Partial[Mapping[str, TopicNumbers]]:
    """The numbers of the topics of one page; a topic that was just deleted is left out."""
    answers = await asyncio.gather(
        *(desk.ask(topic_numbers, topic) for topic in topics), return_exceptions=True
    )
    numbers: dict[str, TopicNumbers] = {}
    failures: list[tuple[BrokerFailure, ...]] = []
    for topic, answer in zip(topics, answers, strict=True):
        if isinstance(answer, Answer):
            numbers[topic] = answer.value
            failures.append(answer.failures)
        elif isinstance(answer, GatewayError):
            failures.append(answer.failures)
        else:
            raise answer
    return Partial(numbers, merge_failures(*failures))


@question(fresh_for_ms=1_000)
async def topic_detail(desk: Desk, topic: str) -> Partial[TopicDetail]:
    """One topic with its configuration on every broker and all its queues."""
    answer = await desk.ask(topic_configs)
    configs = {ref: table[topic] for ref, table in answer.value.items() if topic in table}
    if not configs:
        raise no_such_topic(topic, answer.failures)
    own = own_names((await desk.ask(cluster_map)).value)
    tables, failures = await _queues(desk, topic)
    numbers = await desk.ask(topic_numbers, topic)
    queues = sorted(
        (queue for table in tables.values() for queue in table),
        key=lambda queue: (queue.broker, queue.queue_id),
    )
    return Partial(
        TopicDetail(
            topic_row(topic, {ref.name: config for ref, config in configs.items()}, own),
            tuple(configs.items()),
            tuple(queues),
            numbers.value,
        ),
        merge_failures(answer.failures, failures, numbers.failures),
    )


def no_such_topic(topic: str, failures: tuple[BrokerFailure, ...] = ()) -> NotThere:
    hint = _("A broker that did not answer may have it.") if failures else ""
    return NotThere(
        format_lazy(_("No broker of the cluster has a topic “{topic}”."), topic=topic),
        hint=hint,
        failures=failures,
    )


async def _queues(
    desk: Desk, topic: str
) -> tuple[dict[BrokerRef, list[TopicQueue]], tuple[BrokerFailure, ...]]:
    """The queues of a topic on each broker that has it."""
    configs = (await desk.ask(topic_configs)).value
    refs = [ref for ref, table in configs.items() if topic in table]

    async def queues(ref: BrokerRef) -> list[TopicQueue]:
        table = await desk.admin.topic_stats(ref.addr, topic)
        found = [_queue(ref, queue.queue_id, offsets) for queue, offsets in table.items()]
        # Brokers tell of the write queues; where there are more to read, those are asked for.
        told = {queue.queue_id for queue in found}
        more = [one for one in range(configs[ref][topic].read_queue_nums) if one not in told]
        rest = await asyncio.gather(
            *(_read_only_queue(desk, ref, topic, one) for one in more[:READ_ONLY_QUEUES_MAX])
        )
        return found + rest

    return await desk.each(refs, queues)


async def _read_only_queue(desk: Desk, ref: BrokerRef, topic: str, queue_id: int) -> TopicQueue:
    """A queue that is no longer written to; nobody tells when it last was."""
    low, high = await asyncio.gather(
        desk.admin.min_offset(ref.addr, topic, queue_id),
        desk.admin.max_offset(ref.addr, topic, queue_id),
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


async def _put_rate(desk: Desk, ref: BrokerRef, topic: str) -> float | None:
    """Messages per second over the last minute; None before the first one was counted."""
    try:
        data = await desk.admin.broker_stats(ref.addr, "TOPIC_PUT_NUMS", topic)
    except RequestRefused as refusal:
        if refusal.code == ResponseCode.SYSTEM_ERROR:
            return None
        raise
    return data.stats_minute.tps


def own_names(info: ClusterInfo) -> frozenset[str]:
    """Topics that brokers make for themselves, named after brokers and clusters."""
    clusters = set(info.cluster_addr_table) | {
        data.cluster for data in info.broker_addr_table.values()
    }
    replies = {names.reply_topic(cluster) for cluster in clusters}
    return frozenset(clusters | replies | set(info.broker_addr_table))


def topic_row(name: str, configs: Mapping[str, TopicConfig], own: frozenset[str]) -> TopicRow:
    """One topic over the brokers that have it."""
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
    )


def topic_kind(name: str, configs: Iterable[TopicConfig], own: frozenset[str]) -> Kind:
    """What a topic is for; 4.x does not record message types, so those are unspecified."""
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
