"""The filter expressions of groups: consumerFilter.json.

    register     take the subscriptions of a heartbeat; compile new expressions
    unregister   the last consumer of a group left: mark its filters dead, keep them for a day
    get          the filter of a pull without an expression in its request

An expression with a syntax error is not stored, so that pulls are answered with an error. A new
expression replaces the stored expression only with a higher version. Compatible with RocketMQ's
ConsumerFilterManager.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from core_broker.errors import ProtocolError
from core_broker.remoting.bodies import (
    EXPRESSION_TAG,
    BloomFilterData,
    ConsumerFilterData,
    ConsumerFilterWrapper,
    FilterDataMapByTopic,
    SubscriptionData,
    decode_body,
    encode_body,
)

#: Retention of the filters of a group without consumers, ms: RocketMQ's filterDataCleanTimeSpan.
DEAD_FILTER_KEPT_MS = 24 * 3600 * 1000
#: Age of the dead mark on a live filter read from the file, ms.
DEAD_SINCE_MS = 30_000
#: Maximum filters.
FILTERS_MAX = 10_000
#: Maximum length of all expressions together, characters.
TEXT_CHARS_MAX = 1024 * 1024
#: Maximum length of new expressions compiled in one heartbeat, characters. The next heartbeat
#: compiles the rest.
COMPILED_CHARS_PER_HEARTBEAT_MAX = 32_768

F = TypeVar("F")


class GroupFilter(NamedTuple, Generic[F]):
    """A stored filter, and its compiled form; None after a syntax error."""

    data: ConsumerFilterData
    compiled: F | None


class ConsumerFilters(Generic[F]):
    """The filters of all groups, except filters by tag.

    `compile_filter(type, expression)` raises ProtocolError for a syntax error. `bloom` maps
    "group#topic" to the group's Bloom filter bits.
    """

    def __init__(
        self, compile_filter: Callable[[str, str], F], bloom: Callable[[str], BloomFilterData]
    ) -> None:
        self._compile = compile_filter
        self._bloom = bloom
        #: group -> topic -> filter
        self._filters: dict[str, dict[str, GroupFilter[F]]] = {}
        self._count = 0
        self._chars = 0
        #: Counts changes, so that an unchanged table is not written again.
        self.changes = 0

    def __len__(self) -> int:
        return self._count

    def get(self, topic: str, group: str) -> GroupFilter[F] | None:
        """The filter of a group in a topic, dead or alive."""
        return self._filters.get(group, {}).get(topic)

    def of_group(self, group: str) -> list[GroupFilter[F]]:
        """The filters of a group in all topics."""
        return list(self._filters.get(group, {}).values())

    def register(
        self,
        group: str,
        subscriptions: Iterable[SubscriptionData],
        now_ms: int,
        chars_max: int = COMPILED_CHARS_PER_HEARTBEAT_MAX,
    ) -> int:
        """Apply the subscriptions of a heartbeat; filters of other topics are marked dead.

        Returns the rest of `chars_max`, for the other groups of the heartbeat.
        """
        topics = set()
        for subscription in subscriptions:
            topics.add(subscription.topic)
            if subscription.expression_type in {EXPRESSION_TAG, ""} or not subscription.sub_string:
                continue
            if not self._renew(group, subscription):
                size = len(subscription.sub_string)
                if size <= chars_max:
                    chars_max -= size
                    self._put(group, subscription, now_ms)
        for topic, group_filter in self._filters.get(group, {}).items():
            if topic not in topics:
                self._mark_dead(group_filter, now_ms)
        return chars_max

    def _renew(self, group: str, subscription: SubscriptionData) -> bool:
        """Update version and dead mark of the stored filter; False for a new expression."""
        group_filter = self.get(subscription.topic, group)
        if group_filter is None:
            return False
        data = group_filter.data
        if subscription.sub_version > data.client_version:
            if (data.expression, data.expression_type) != (
                subscription.sub_string,
                subscription.expression_type,
            ):
                return False
            data.client_version = subscription.sub_version
            self.changes += 1
        if data.is_dead and subscription.sub_version == data.client_version:
            data.dead_time = 0
            self.changes += 1
        return True

    def _put(self, group: str, subscription: SubscriptionData, now_ms: int) -> None:
        self._drop(group, subscription.topic)
        expression = subscription.sub_string
        if self._count >= FILTERS_MAX or self._chars + len(expression) > TEXT_CHARS_MAX:
            return
        try:
            compiled = self._compile(subscription.expression_type, expression)
        except ProtocolError:
            return
        data = ConsumerFilterData(
            consumer_group=group,
            topic=subscription.topic,
            expression=expression,
            expression_type=subscription.expression_type,
            born_time=now_ms,
            bloom_filter_data=self._bloom(f"{group}#{subscription.topic}"),
            client_version=subscription.sub_version,
        )
        self._add(GroupFilter(data, compiled))

    def unregister(self, group: str, now_ms: int) -> None:
        """Mark all filters of a group dead, because its last consumer left."""
        for group_filter in self._filters.get(group, {}).values():
            self._mark_dead(group_filter, now_ms)

    def _mark_dead(self, group_filter: GroupFilter[F], now_ms: int) -> None:
        if not group_filter.data.is_dead:
            group_filter.data.dead_time = now_ms
            self.changes += 1

    def clean(self, now_ms: int) -> None:
        """Remove filters that have been dead for a day."""
        old = [
            group_filter.data
            for group_filter in self._all()
            if group_filter.data.is_dead
            and now_ms - group_filter.data.dead_time >= DEAD_FILTER_KEPT_MS
        ]
        for data in old:
            self._drop(data.consumer_group, data.topic)

    def encode(self) -> bytes:
        """The table in the format of the file."""
        topics: dict[str, FilterDataMapByTopic] = {}
        for group_filter in self._all():
            data = group_filter.data
            of_topic = topics.setdefault(data.topic, FilterDataMapByTopic(topic=data.topic))
            of_topic.group_filter_data[data.consumer_group] = data
        return encode_body(ConsumerFilterWrapper(filter_data_by_topic=topics))

    def restore(self, content: bytes, now_ms: int) -> None:
        """Load the content of the file; raises ProtocolError for an invalid content.

        All filters are dead until the first heartbeat of their group. As in RocketMQ, an expression
        with a syntax error is kept and accepts all messages.
        """
        wrapper = decode_body(ConsumerFilterWrapper, content)
        for of_topic in wrapper.filter_data_by_topic.values():
            for data in of_topic.group_filter_data.values():
                if data.dead_time == 0:
                    data.dead_time = max(now_ms - DEAD_SINCE_MS, data.born_time)
                data.bloom_filter_data = self._bloom(f"{data.consumer_group}#{data.topic}")
                compiled: F | None
                try:
                    compiled = self._compile(data.expression_type, data.expression)
                except ProtocolError:
                    compiled = None
                self._add(GroupFilter(data, compiled))

    def _all(self) -> Iterator[GroupFilter[F]]:
        for topics in self._filters.values():
            yield from topics.values()

    def _add(self, group_filter: GroupFilter[F]) -> None:
        data = group_filter.data
        self._filters.setdefault(data.consumer_group, {})[data.topic] = group_filter
        self._count += 1
        self._chars += len(data.expression)
        self.changes += 1

    def _drop(self, group: str, topic: str) -> None:
        topics = self._filters.get(group, {})
        group_filter = topics.pop(topic, None)
        if group_filter is None:
            return
        if not topics:
            del self._filters[group]
        self._count -= 1
        self._chars -= len(group_filter.data.expression)
        self.changes += 1
        self.changes += 1
