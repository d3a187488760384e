"""Questions about the progress of a consumer group: offsets, lag and rate, queue by queue."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from console.gateway.engine.answers import Partial, merge_failures
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.groups.listing import group_settings
from core_broker.message.topics import RETRY_PREFIX
from core_broker.remoting.bodies import ConsumeStats


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a group over its queues. `lag` counts messages; None means unknown.

    `behind_since_ms` is the earliest store time of a last consumed message among the queues with
    lag; None without lag or before the first consumption. `unseen_topics` counts the topics whose
    names the reader does not see; `topics` has a placeholder for each.
    """

    lag: int | None
    retry_lag: int
    rate: float | None
    behind_since_ms: int | None
    topics: tuple[str, ...]
    unseen_topics: int = 0


@dataclass(frozen=True, slots=True)
class GroupQueue:
    """A group's offsets in a queue. `client` is the owner of the queue; None means unknown."""

    topic: str
    broker: str
    queue_id: int
    broker_offset: int | None
    consumer_offset: int | None
    last_consumed_ms: int | None
    client: str | None = None

    @property
    def lag(self) -> int | None:
        if self.broker_offset is None or self.consumer_offset is None:
            return None
        return max(0, self.broker_offset - self.consumer_offset)

    @property
    def retry(self) -> bool:
        return self.topic.startswith(RETRY_PREFIX)


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """The queues of a group; the sums include queues of topics that the reader does not see."""

    queues: tuple[GroupQueue, ...]
    progress: Progress | None


@question(fresh_for_ms=1_000)
async def group_stats(
    session: ClusterSession, group: str
) -> Partial[Mapping[BrokerRef, ConsumeStats]]:
    """Offsets and rate of the group by broker."""
    held = await session.ask(group_settings, group)
    refs = [ref for ref, _config in held.value]
    found, failures = await session.fan_out(
        refs,
        lambda ref: session.admin.consume_stats(ref.addr, group),
        keep=("consume_stats", group),
    )
    return Partial(found, merge_failures(held.failures, failures))


@question(fresh_for_ms=1_000)
async def queue_progress(session: ClusterSession, group: str) -> Partial[tuple[GroupQueue, ...]]:
    """The group's offsets in all its queues, retry queues last."""
    answer = await session.ask(group_stats, group)
    queues = [
        queue for ref, stats in answer.value.items() for queue in group_queues(ref.name, stats)
    ]
    queues.sort(key=lambda q: (q.retry, q.topic, q.broker, q.queue_id))
    return Partial(tuple(queues), answer.failures)


@question(fresh_for_ms=1_000)
async def group_offsets(session: ClusterSession, group: str) -> Partial[GroupOffsets]:
    """The group's offsets in all its queues, with the sums."""
    answer = await session.ask(queue_progress, group)
    return Partial(GroupOffsets(answer.value, progress_of(answer.value, ())), answer.failures)


def group_queues(broker: str, stats: ConsumeStats) -> list[GroupQueue]:
    """Read one broker's answer; offsets below zero and store times of zero mean unknown."""
    return [
        GroupQueue(
            topic=queue.topic,
            broker=broker,
            queue_id=queue.queue_id,
            broker_offset=wrapper.broker_offset if wrapper.broker_offset >= 0 else None,
            consumer_offset=wrapper.consumer_offset if wrapper.consumer_offset >= 0 else None,
            last_consumed_ms=wrapper.last_timestamp if wrapper.last_timestamp > 0 else None,
        )
        for queue, wrapper in stats.offset_table.items()
    ]


def progress_of(queues: Iterable[GroupQueue], rates: Iterable[float]) -> Progress | None:
    """Return the sums over the queues; None when the group has no offset in any queue."""
    found = list(queues)
    if not found:
        return None
    lags = [queue.lag for queue in found if queue.lag is not None]
    waiting = [queue for queue in found if queue.lag]
    return Progress(
        lag=sum(lags) if lags else None,
        retry_lag=sum(queue.lag or 0 for queue in found if queue.retry),
        rate=sum(rates),
        behind_since_ms=min(
            (queue.last_consumed_ms for queue in waiting if queue.last_consumed_ms), default=None
        ),
        topics=tuple(sorted({queue.topic for queue in found if not queue.retry})),
    )


def with_owners(
    queues: Iterable[GroupQueue], owners: Mapping[tuple[str, str, int], str]
) -> tuple[GroupQueue, ...]:
    """Return the queues with their owners."""
    return tuple(
        replace(queue, client=owners.get((queue.topic, queue.broker, queue.queue_id)))
        for queue in queues
    )
