"""Names of topics and groups in answers, as far as the permissions of a reader include them. Pure.

A page of one topic lists consumer groups, a page of one group lists topics, and a page of a client
lists both. For a reader whose permissions include some names only, answers come without the other
names; totals of messages, groups and clients stay: people decide by them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, Final

from console.gateway.clients import AllClients, ConnectedClient, ProducerGroup
from console.gateway.groups.changes import GroupImpact
from console.gateway.groups.members import GroupClients
from console.gateway.groups.metrics import GroupMetrics
from console.gateway.groups.progress import GroupOffsets, GroupQueue, Progress
from console.gateway.groups.topic_groups import TopicGroup
from console.gateway.kicks import KickPlan, QueueMove
from console.gateway.messages.deliveries import GroupDelivery
from console.gateway.metrics import BulkMetrics
from console.gateway.overview import Behind, DeadLetters, Overview, Totals
from console.gateway.topics.changes import TopicImpact
from console.gateway.topics.metrics import TopicMetrics
from core_broker.message.topics import DLQ_PREFIX, RETRY_PREFIX
from core_broker.remoting.bodies import ConsumerRunningInfo, SubscriptionData

#: Takes the place of a name in a row that stays for its numbers.
HIDDEN_NAME: Final = "***"


@dataclass(frozen=True, slots=True)
class NamesSeen:
    """Tests of names; `has_topic` and `has_group` are those of the permissions."""

    has_topic: Callable[[str], bool]
    has_group: Callable[[str], bool]

    def topic(self, name: str) -> bool:
        """Whether the reader sees a topic; retry and dead-letter topics follow their group."""
        for prefix in (RETRY_PREFIX, DLQ_PREFIX):
            if name.startswith(prefix) and self.has_group(name.removeprefix(prefix)):
                return True
        return self.has_topic(name)

    def group(self, name: str) -> bool:
        return self.has_group(name)

    def filtered(self, value: Any) -> Any:
        """Return a value without the names that the reader does not see."""
        if type(value) in (tuple, list):
            kept = (self.filtered(each) for each in value if not _is_gone(each, self))
            return type(value)(kept)
        if isinstance(value, Mapping):
            return {key: self.filtered(each) for key, each in value.items()}
        return _without(value, self)


@singledispatch
def _is_gone(_row: Any, _seen: NamesSeen) -> bool:
    """Whether a row is about a topic or group that the reader does not see."""
    return False


@_is_gone.register
def _(row: GroupQueue | SubscriptionData, seen: NamesSeen) -> bool:
    return not seen.topic(row.topic or "")


@_is_gone.register
def _(row: TopicGroup | GroupDelivery | DeadLetters, seen: NamesSeen) -> bool:
    return not seen.group(row.group)


@_is_gone.register
def _(row: ProducerGroup, seen: NamesSeen) -> bool:
    return not seen.group(row.name)


@_is_gone.register
def _(row: Behind, seen: NamesSeen) -> bool:
    return not seen.group(row.name)


@singledispatch
def _without(value: Any, _seen: NamesSeen) -> Any:
    return value


@_without.register
def _(value: GroupClients, seen: NamesSeen) -> Any:
    kept = seen.filtered(value.subscriptions)
    unseen = value.unseen_topics + len(value.subscriptions) - len(kept)
    return replace(value, subscriptions=kept, unseen_topics=unseen)


@_without.register
def _(value: TopicMetrics, seen: NamesSeen) -> Any:
    lags = {name: lag for name, lag in value.lags.items() if seen.group(name)}
    unseen = tuple(lag for name, lag in value.lags.items() if name not in lags)
    return replace(value, lags=lags, unseen_lags=unseen)


@_without.register
def _(value: GroupOffsets, seen: NamesSeen) -> Any:
    return GroupOffsets(seen.filtered(value.queues), seen.filtered(value.progress))


@_without.register
def _(value: Progress, seen: NamesSeen) -> Any:
    topics = tuple(name if seen.topic(name) else HIDDEN_NAME for name in value.topics)
    return replace(value, topics=topics, unseen_topics=topics.count(HIDDEN_NAME))


@_without.register
def _(value: GroupMetrics | GroupImpact, seen: NamesSeen) -> Any:
    kept = tuple(filter(seen.topic, value.topics))
    unseen = value.unseen_topics + len(value.topics) - len(kept)
    return replace(value, topics=kept, unseen_topics=unseen)


@_without.register
def _(value: Overview, seen: NamesSeen) -> Any:
    topics = tuple(filter(seen.topic, value.unread_topics))
    letters = value.dead_letters or ()
    return replace(
        value,
        unread_topics=topics,
        unseen_topics=value.unseen_topics + len(value.unread_topics) - len(topics),
        totals=seen.filtered(value.totals),
        dead_letters=seen.filtered(value.dead_letters),
        unseen_dead_letters=(
            *value.unseen_dead_letters,
            *(each.count for each in letters if not seen.group(each.group)),
        ),
    )


@_without.register
def _(value: Totals, seen: NamesSeen) -> Any:
    kept = seen.filtered(value.behind)
    unseen = value.unseen_behind + len(value.behind) - len(kept)
    return replace(value, behind=kept, unseen_behind=unseen)


@_without.register
def _(value: TopicImpact, seen: NamesSeen) -> Any:
    online = tuple(
        (name if seen.group(name) else HIDDEN_NAME, count) for name, count in value.online_groups
    )
    return replace(value, numbers=seen.filtered(value.numbers), online_groups=online)


@_without.register(BulkMetrics)
def _(value: Any, seen: NamesSeen) -> Any:
    return replace(value, by_name=seen.filtered(value.by_name))


@_without.register
def _(value: AllClients, seen: NamesSeen) -> Any:
    return replace(value, clients=seen.filtered(value.clients))


@_without.register
def _(value: ConnectedClient, seen: NamesSeen) -> Any:
    groups = {
        group: tuple(filter(seen.topic, topics))
        for group, topics in value.groups.items()
        if seen.group(group)
    }
    producers = tuple(filter(seen.group, value.producer_groups))
    return replace(value, groups=groups, producer_groups=producers)


@_without.register
def _(value: KickPlan, seen: NamesSeen) -> Any:
    return replace(
        value,
        clients=seen.filtered(value.clients),
        groups=tuple(filter(seen.group, value.groups)),
        moves=seen.filtered(value.moves),
        unknown=tuple(filter(seen.group, value.unknown)),
    )


@_without.register
def _(value: QueueMove, seen: NamesSeen) -> Any:
    return replace(
        value,
        group=value.group if seen.group(value.group) else HIDDEN_NAME,
        topic=value.topic if seen.topic(value.topic) else HIDDEN_NAME,
    )


@_without.register
def _(value: ConsumerRunningInfo, seen: NamesSeen) -> Any:
    return ConsumerRunningInfo(
        properties=value.properties,
        subscription_set=seen.filtered(value.subscription_set),
        mq_table={
            queue: each for queue, each in value.mq_table.items() if seen.topic(queue.topic or "")
        },
        status_table={
            topic: each for topic, each in value.status_table.items() if seen.topic(topic)
        },
        user_consumer_info=value.user_consumer_info,
        jstack=value.jstack,
    )
