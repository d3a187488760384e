"""A whole broker in one answer: Gantry's own codes 60000, 60001 and 60002.

Consoles list thousands of topics and groups; RocketMQ's protocol has one question for each. Here a
picture of all of them is taken in steps of QUEUES_PER_STEP queues, between which other requests
have their turn, and kept ten times as long as taking it took: being watched costs a broker no more
than a tenth of its time. Every answer says when its picture was taken.
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

QUEUES_PER_STEP = 128
#: A picture is kept so many times as long as it took, but not for longer than this.
REST_PER_WORK = 10
KEPT_MS_MAX = 30_000

REMOTING = "remoting"

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Picture:
    """All topics and groups as they were, and until when that is recent enough."""

    taken_ms: int
    topics: dict[str, TopicEntry] = field(default_factory=dict)
    groups: dict[str, GroupEntry] = field(default_factory=dict)
    kept_until_ms: int = 0


class InventoryProcessor:
    """Takes pictures, one at a time, and hands out their parts."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx
        self._picture: Picture | None = None
        self._taking: asyncio.Task[Picture] | None = None
        #: By topic: how many messages it ever had, and when the last one was stored.
        self._last_writes: dict[str, tuple[int, int]] = {}
        self._queues_looked_at = 0

    def topics(self, connection: Connection, request: RemotingCommand) -> None:
        """GET_TOPIC_INVENTORY (60000)."""
        self._ctx.answer_later(connection, request, self._topics())

    def groups(self, connection: Connection, request: RemotingCommand) -> None:
        """GET_GROUP_INVENTORY (60001)."""
        self._ctx.answer_later(connection, request, self._groups())

    def clients(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_ALL_CLIENTS (60002)."""
        found: dict[object, ClientEntry] = {}
        for name in self._ctx.consumers.groups:
            group = self._ctx.consumers.group(name)
            for member in group.members.values() if group is not None else ():
                client = found.setdefault(member.channel, _client(member))
                client.consumer_groups[name] = sorted(group.subscriptions) if group else []
        for name in self._ctx.producers.groups:
            for member in self._ctx.producers.members(name):
                found.setdefault(member.channel, _client(member)).producer_groups.append(name)
        body = ClientInventoryBody(taken_timestamp=self._ctx.now_ms(), clients=list(found.values()))
        return RemotingCommand.response(body=_encode(body))

    async def _topics(self) -> RemotingCommand:
        picture = await self._recent()
        body = TopicInventoryBody(taken_timestamp=picture.taken_ms, topics=picture.topics)
        return RemotingCommand.response(body=_encode(body))

    async def _groups(self) -> RemotingCommand:
        picture = await self._recent()
        body = GroupInventoryBody(taken_timestamp=picture.taken_ms, groups=picture.groups)
        return RemotingCommand.response(body=_encode(body))

    async def _recent(self) -> Picture:
        """The kept picture, or the one that is being taken, or a new one."""
        kept = self._picture
        if kept is not None and self._ctx.now_ms() < kept.kept_until_ms:
            return kept
        if self._taking is None:
            self._taking = asyncio.get_running_loop().create_task(self._take())
            self._ctx.tasks.add(self._taking)
            self._taking.add_done_callback(self._taken)
        # Whoever stops waiting must not end it for the others.
        return await asyncio.shield(self._taking)

    def _taken(self, task: "asyncio.Task[Picture]") -> None:
        self._taking = None
        self._ctx.tasks.discard(task)
        if not task.cancelled() and task.exception() is None:
            self._picture = task.result()

    async def _take(self) -> Picture:
        picture = Picture(self._ctx.now_ms())
        for name in [topic.topic_name for topic in self._ctx.topics.configs]:
            await self._add_topic(picture, name)
        self._last_writes = {
            name: known for name, known in self._last_writes.items() if name in picture.topics
        }
        for name in sorted({*self._ctx.groups.names, *self._ctx.consumers.groups}):
            await self._add_group(picture, name)
        took_ms = max(0, self._ctx.now_ms() - picture.taken_ms)
        picture.kept_until_ms = self._ctx.now_ms() + min(took_ms * REST_PER_WORK, KEPT_MS_MAX)
        return picture

    async def _add_topic(self, picture: Picture, name: str) -> None:
        config = self._ctx.topics.get(name)
        if config is None:
            return
        store = self._ctx.store
        queues: list[tuple[int, int]] = []
        for ids in _steps(max(config.read_queue_nums, config.write_queue_nums)):
            queues += [store.queue_range(name, queue_id) for queue_id in ids]
            await self._breathe(len(ids))
        picture.topics[name] = TopicEntry(
            queues=queues,
            last_write_timestamp=await self._last_write(name, queues),
            put_tps=self._ctx.statistics.topic_put_tps(name),
            get_tps=0.0,
        )

    async def _last_write(self, name: str, queues: list[tuple[int, int]]) -> int | None:
        """When the last message of a topic was stored; None when nobody knows."""
        total = sum(end for _first, end in queues)
        known = self._last_writes.get(name)
        if known is None or known[0] != total:
            ends = [(i, end - 1) for i, (first, end) in enumerate(queues) if end > first]
            known = total, max(await self._store_times(name, ends), default=-1)
            self._last_writes[name] = known
        return known[1] if known[1] >= 0 else None

    async def _add_group(self, picture: Picture, name: str) -> None:
        ctx = self._ctx
        connected = ctx.consumers.group(name)
        entry = GroupEntry(consume_tps=0.0)
        if connected is not None:
            entry.clients, entry.message_model = len(connected.members), connected.message_model
        dead = picture.topics.get(dlq_topic(name))
        entry.dead_letters = sum(end - first for first, end in dead.queues) if dead else 0
        oldest_ms: list[int] = []
        topics = set(ctx.offsets.topics_of(name))
        # Who broadcasts keeps its offsets itself; how fast it reads is known all the same.
        for topic in topics.union(connected.subscriptions if connected else ()):
            of_topic = picture.topics.get(topic)
            if of_topic is None or ctx.consumers.is_elsewhere(name, topic):
                continue
            rate = ctx.statistics.group_get_tps(name, topic)
            entry.consume_tps = (entry.consume_tps or 0.0) + rate
            of_topic.get_tps = (of_topic.get_tps or 0.0) + rate
            if topic in topics:
                lag, pending_ms = await self._behind(name, topic, of_topic.queues)
                entry.topics[topic] = of_topic.groups[name] = lag
                oldest_ms += pending_ms
        entry.oldest_pending_timestamp = min(oldest_ms, default=None)
        picture.groups[name] = entry

    async def _behind(
        self, group: str, topic: str, queues: list[tuple[int, int]]
    ) -> tuple[int, list[int]]:
        """How many messages a group has before it, and when the first of each queue was stored.

        As in GET_CONSUME_STATS (208), what has left the store since is counted too.
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
            await self._breathe(len(ids))
        return lag, await self._store_times(topic, pending)

    async def _store_times(self, topic: str, places: list[tuple[int, int]]) -> list[int]:
        """When these messages were stored; those that are not there are left out."""
        times: list[int] = []
        ask = self._ctx.store.store_time_of
        for ids in _steps(len(places)):
            asks = [partial(ask, topic, *places[each]) for each in ids]
            times += await self._ctx.store.cold.when_warm(partial(ask_all, asks))
            await self._breathe(len(ids))
        return [stored_ms for stored_ms in times if stored_ms >= 0]

    async def _breathe(self, queues: int) -> None:
        """Let other requests have their turn when a step's worth of queues was looked at."""
        self._queues_looked_at += queues
        if self._queues_looked_at >= QUEUES_PER_STEP:
            self._queues_looked_at = 0
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
    )
