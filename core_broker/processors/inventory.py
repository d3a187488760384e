"""The inventory of a broker, all topics, groups or clients in one answer: codes 60000 to 60002.

Consoles list thousands of topics and groups, and RocketMQ's protocol needs one request per topic
and group. Gantry takes a snapshot of all topics and groups in steps of QUEUES_PER_STEP queues, and
handles other requests between the steps. A snapshot is cached ten times as long as taking it took,
so that monitoring costs the broker at most a tenth of its time. Every answer holds the time of its
snapshot.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import msgspec

from core_broker.message.topics import dlq_topic
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies.inventory import (
    ClientEntry,
    ClientInventoryBody,
    GroupEntry,
    GroupInventoryBody,
    TopicEntry,
    TopicInventoryBody,
)
from core_broker.remoting.codes import LanguageCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.state.channels import ClientChannel
from core_broker.store import ask_all

#: Queues examined before the event loop handles other requests.
QUEUES_PER_STEP = 128
#: Cache time of a snapshot, as a multiple of the time for taking it.
CACHE_TIME_FACTOR = 10
#: Maximum cache time of a snapshot, ms.
CACHE_MS_MAX = 30_000

REMOTING = "remoting"

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Snapshot:
    """All topics and groups at `taken_ms`, cached until `expires_ms`."""

    taken_ms: int
    topics: dict[str, TopicEntry] = field(default_factory=dict)
    groups: dict[str, GroupEntry] = field(default_factory=dict)
    expires_ms: int = 0


class InventoryProcessor:
    """Takes snapshots, one at a time, and answers from them."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx
        self._snapshot: Snapshot | None = None
        self._taking: asyncio.Task[Snapshot] | None = None
        #: Topic -> sum of its queues' end offsets, store time of its last message (ms).
        self._last_writes: dict[str, tuple[int, int]] = {}
        self._queues_examined = 0

    def topics(self, connection: Connection, request: RemotingCommand) -> None:
        """GET_TOPIC_INVENTORY (60000)."""
        self._ctx.answer_later(connection, request, self._topics())

    def groups(self, connection: Connection, request: RemotingCommand) -> None:
        """GET_GROUP_INVENTORY (60001)."""
        self._ctx.answer_later(connection, request, self._groups())

    def clients(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_ALL_CLIENTS (60002)."""
        entries: dict[object, ClientEntry] = {}
        for name in self._ctx.consumers.groups:
            group = self._ctx.consumers.group(name)
            for member in group.members.values() if group is not None else ():
                client = entries.setdefault(member.channel, _client(member))
                client.consumer_groups[name] = sorted(group.subscriptions) if group else []
        for name in self._ctx.producers.groups:
            for member in self._ctx.producers.members(name):
                entries.setdefault(member.channel, _client(member)).producer_groups.append(name)
        body = ClientInventoryBody(
            taken_timestamp=self._ctx.now_ms(), clients=list(entries.values())
        )
        return RemotingCommand.response(body=_encode(body))

    async def _topics(self) -> RemotingCommand:
        snapshot = await self._recent()
        body = TopicInventoryBody(taken_timestamp=snapshot.taken_ms, topics=snapshot.topics)
        return RemotingCommand.response(body=_encode(body))

    async def _groups(self) -> RemotingCommand:
        snapshot = await self._recent()
        body = GroupInventoryBody(taken_timestamp=snapshot.taken_ms, groups=snapshot.groups)
        return RemotingCommand.response(body=_encode(body))

    async def _recent(self) -> Snapshot:
        """The cached snapshot, or the result of the running task, or a new snapshot."""
        cached = self._snapshot
        if cached is not None and self._ctx.now_ms() < cached.expires_ms:
            return cached
        if self._taking is None:
            self._taking = asyncio.get_running_loop().create_task(self._take())
            self._ctx.tasks.add(self._taking)
            self._taking.add_done_callback(self._taken)
        # shield(): a cancelled request must not cancel the snapshot for other requests.
        return await asyncio.shield(self._taking)

    def _taken(self, task: "asyncio.Task[Snapshot]") -> None:
        self._taking = None
        self._ctx.tasks.discard(task)
        if not task.cancelled() and task.exception() is None:
            self._snapshot = task.result()

    async def _take(self) -> Snapshot:
        snapshot = Snapshot(self._ctx.now_ms())
        for name in [topic.topic_name for topic in self._ctx.topics.configs]:
            await self._add_topic(snapshot, name)
        self._last_writes = {
            name: known for name, known in self._last_writes.items() if name in snapshot.topics
        }
        for name in sorted({*self._ctx.groups.names, *self._ctx.consumers.groups}):
            await self._add_group(snapshot, name)
        took_ms = max(0, self._ctx.now_ms() - snapshot.taken_ms)
        snapshot.expires_ms = self._ctx.now_ms() + min(took_ms * CACHE_TIME_FACTOR, CACHE_MS_MAX)
        return snapshot

    async def _add_topic(self, snapshot: Snapshot, name: str) -> None:
        config = self._ctx.topics.get(name)
        if config is None:
            return
        store = self._ctx.store
        queues: list[tuple[int, int]] = []
        for ids in _steps(max(config.read_queue_nums, config.write_queue_nums)):
            queues += [store.queue_range(name, queue_id) for queue_id in ids]
            await self._yield_after(len(ids))
        snapshot.topics[name] = TopicEntry(
            queues=queues,
            last_write_timestamp=await self._last_write(name, queues),
            put_tps=self._ctx.statistics.topic_put_tps(name),
            get_tps=0.0,
        )

    async def _last_write(self, name: str, queues: list[tuple[int, int]]) -> int | None:
        """Store time of the last message of a topic, ms; None for a topic without messages."""
        total = sum(end for _first, end in queues)
        known = self._last_writes.get(name)
        if known is None or known[0] != total:
            ends = [(i, end - 1) for i, (first, end) in enumerate(queues) if end > first]
            known = total, max(await self._store_times(name, ends), default=-1)
            self._last_writes[name] = known
        return known[1] if known[1] >= 0 else None

    async def _add_group(self, snapshot: Snapshot, name: str) -> None:
        ctx = self._ctx
        connected = ctx.consumers.group(name)
        entry = GroupEntry()
        if connected is not None:
            entry.clients, entry.message_model = len(connected.members), connected.message_model
        dead = snapshot.topics.get(dlq_topic(name))
        entry.dead_letters = sum(end - first for first, end in dead.queues) if dead else 0
        oldest_ms: list[int] = []
        rates: dict[str, float] = {}
        topics = set(ctx.offsets.topics_of(name))
        # A broadcasting consumer keeps its offsets on the client, but its pull rate is known here.
        for topic in topics.union(connected.subscriptions if connected else ()):
            of_topic = snapshot.topics.get(topic)
            if of_topic is None or ctx.consumers.has_unsubscribed(name, topic):
                continue
            if rate := ctx.statistics.group_get_tps(name, topic):
                rates[topic] = rate
                of_topic.get_tps = (of_topic.get_tps or 0.0) + rate
            if topic in topics:
                lag, pending_ms = await self._lag(name, topic, of_topic.queues)
                entry.topics[topic] = of_topic.groups[name] = lag
                oldest_ms += pending_ms
        entry.topic_tps, entry.consume_tps = rates, sum(rates.values(), 0.0)
        entry.oldest_pending_timestamp = min(oldest_ms, default=None)
        snapshot.groups[name] = entry

    async def _lag(
        self, group: str, topic: str, queues: list[tuple[int, int]]
    ) -> tuple[int, list[int]]:
        """The lag of a group, messages, and the store time of each queue's next message, ms.

        As in GET_CONSUME_STATS (208), the lag includes expired messages.
        """
        config = self._ctx.topics.get(topic)
        lag, pending = 0, []
        for ids in _steps(min(len(queues), config.read_queue_nums if config else 0)):
            for queue_id in ids:
                first, end = queues[queue_id]
                consumed = self._ctx.offsets.committed(group, topic, queue_id) or 0
                if consumed < end:
                    lag += end - consumed
                    pending.append((queue_id, max(consumed, first)))
            await self._yield_after(len(ids))
        return lag, await self._store_times(topic, pending)

    async def _store_times(self, topic: str, positions: list[tuple[int, int]]) -> list[int]:
        """Store times, ms, of the messages at (queue id, offset); missing messages are left out."""
        times: list[int] = []
        store_time_of = self._ctx.store.store_time_of
        for ids in _steps(len(positions)):
            reads = [partial(store_time_of, topic, *positions[index]) for index in ids]
            times += await self._ctx.store.cold_reads.when_warm(partial(ask_all, reads))
            await self._yield_after(len(ids))
        return [stored_ms for stored_ms in times if stored_ms >= 0]

    async def _yield_after(self, queues: int) -> None:
        """Yield to the event loop after every QUEUES_PER_STEP examined queues."""
        self._queues_examined += queues
        if self._queues_examined >= QUEUES_PER_STEP:
            self._queues_examined = 0
            await asyncio.sleep(0)


def _steps(count: int) -> Iterator[range]:
    for start in range(0, count, QUEUES_PER_STEP):
        yield range(start, min(start + QUEUES_PER_STEP, count))


def _client(member: ClientChannel) -> ClientEntry:
    return ClientEntry(
        client_id=member.client_id,
        client_addr=cast("Connection", member.channel).peer,
        protocol=REMOTING,
        language=LanguageCode(member.language).name,
        version=member.version,
        last_heartbeat_timestamp=member.seen_ms,
        account=member.account,
    )
