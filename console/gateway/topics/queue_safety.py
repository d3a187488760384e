"""Unread queues: queues without a consumer after a change of a topic's queue numbers.

Consumers read the queues below `readQueueNums`. Producers write to the queues below
`writeQueueNums`: with more write queues than read queues, messages pile up without a consumer.
Fewer read queues hide the messages of the removed queues.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.changes import configs_on
from console.gateway.engine.answers import Partial
from console.gateway.engine.errors import GatewayError, NotAllowedNow, NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.groups.progress import queue_progress
from console.gateway.topics.listing import queues_of_topic, topic_configs
from console.gateway.topics.metrics import topic_metrics
from core_broker.remoting.bodies import TopicConfig

#: Maximum number of groups in the count of unconsumed messages.
GROUPS_MAX = 30
#: Keyword of commands and parameter of requests: accept unread queues.
CONFIRM = "confirm_unread_queues"


class QueueSettings(Protocol):
    """Changes of a topic configuration."""

    def on(self, config: TopicConfig) -> TopicConfig: ...


@dataclass(frozen=True, slots=True)
class UnreadQueues:
    """Unread queues `first` to `last` of a topic on one broker.

    `stored` counts the messages in the queues, `unconsumed` the part without consumption by the
    slowest group; None without a group. `written`: producers write to the queues after the change.
    """

    broker: str
    first: int
    last: int
    stored: int
    unconsumed: int | None
    written: bool


class UnreadQueuesAhead(NotAllowedNow):
    """The change leaves unread queues; `members` lists the queues."""

    kind = "unread-queues"
    title = _("Confirmation required")

    def __init__(self, topic: str, queues: Sequence[UnreadQueues]) -> None:
        super().__init__(
            format_lazy(
                _("Consumers would not read {queues} of “{topic}”, with {stored} stored messages."),
                queues="; ".join(f"{each.broker} {each.first}-{each.last}" for each in queues),
                topic=topic,
                stored=sum(each.stored for each in queues),
            ),
            hint=format_lazy(
                _(
                    "Lower the write queues first, wait until the removed queues are consumed, "
                    "then lower the read queues. To do it anyway, confirm on the form, or repeat "
                    "the request with {confirm}=true."
                ),
                confirm=CONFIRM,
            ),
        )
        self.members = {"unread_queues": [asdict(each) for each in queues]}


@question(fresh_for_ms=1_000)
async def unread_queues(
    session: ClusterSession,
    topic: str,
    settings: QueueSettings,
    brokers: tuple[str, ...] | None = None,
) -> Partial[tuple[UnreadQueues, ...]]:
    """The unread queues of an existing topic after a change."""
    answer = await session.ask(topic_configs)
    held = [(ref, table[topic]) for ref, table in answer.value.items() if topic in table]
    return Partial(await unread_after(session, topic, configs_on(held, brokers), settings))


async def check_queues(
    session: ClusterSession,
    topic: str,
    configs: Sequence[tuple[BrokerRef, TopicConfig]],
    settings: QueueSettings,
) -> None:
    """Raise UnreadQueuesAhead when the change leaves unread queues."""
    found = await unread_after(session, topic, configs, settings)
    if found:
        raise UnreadQueuesAhead(topic, found)


def check_new_queues(topic: str, brokers: Sequence[str], config: TopicConfig) -> None:
    """Raise UnreadQueuesAhead for a new topic with more write queues than read queues."""
    if found := unread_when_new(brokers, config):
        raise UnreadQueuesAhead(topic, found)


def unread_when_new(brokers: Sequence[str], config: TopicConfig) -> tuple[UnreadQueues, ...]:
    read, write = config.read_queue_nums, config.write_queue_nums
    if write <= read:
        return ()
    return tuple(UnreadQueues(name, read, write - 1, 0, None, written=True) for name in brokers)


async def unread_after(
    session: ClusterSession,
    topic: str,
    configs: Sequence[tuple[BrokerRef, TopicConfig]],
    settings: QueueSettings,
) -> tuple[UnreadQueues, ...]:
    """Return the unread queues by broker; empty for a change without additional unread queues,
    such as a change of the permission, or a step of a repair."""
    changes = [(ref, before, settings.on(before)) for ref, before in configs]
    worse = [each for each in changes if _is_worse(each[1], each[2])]
    if not worse:
        return ()
    tables, _failures = await queues_of_topic(session, topic)
    found = []
    for ref, before, after in worse:
        first = after.read_queue_nums
        last = max(before.read_queue_nums, before.write_queue_nums, after.write_queue_nums) - 1
        stored = sum(queue.stored for queue in tables.get(ref, ()) if queue.queue_id >= first)
        written = after.write_queue_nums > first
        if written or stored:
            unconsumed = await _unconsumed(session, topic, ref.name, first) if stored else None
            found.append(UnreadQueues(ref.name, first, last, stored, unconsumed, written))
    return tuple(found)


def _is_worse(before: TopicConfig, after: TopicConfig) -> bool:
    if after.read_queue_nums < before.read_queue_nums:
        return True
    is_wider = after.write_queue_nums > before.write_queue_nums
    return is_wider and after.write_queue_nums > after.read_queue_nums


async def _unconsumed(session: ClusterSession, topic: str, broker: str, first: int) -> int | None:
    """Return the unconsumed messages of the slowest group in the queues from `first` on.

    None without groups, and when the lag of a group is unknown: the slowest group is unknown, too.
    """
    lags = []
    for group in (await session.ask(topic_metrics, topic)).value.groups[:GROUPS_MAX]:
        try:
            queues = (await session.ask(queue_progress, group)).value
        except NotFound:  # the group was deleted meanwhile
            continue
        except GatewayError:  # its broker is down
            return None
        lag = 0
        for queue in queues:
            if (queue.topic, queue.broker) == (topic, broker) and queue.queue_id >= first:
                if queue.lag is None:
                    return None
                lag += queue.lag
        lags.append(lag)
    return max(lags, default=None)
