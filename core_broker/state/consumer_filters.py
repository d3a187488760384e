"""The filter expressions of groups: consumerFilter.json.

    register     a heartbeat brought subscriptions; new expressions are compiled
    unregister   the last consumer of a group left: its filters are dead, and kept for a day
    get          what a pull without an expression of its own is filtered by

An expression that does not compile is not kept, so that the pull hears of it. Another one replaces
the one known only with a higher version. Compatible with RocketMQ's ConsumerFilterManager.
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

#: filterDataCleanTimeSpan of RocketMQ: how long the filter of a group without consumers is kept.
DEAD_FILTER_KEPT_MS = 24 * 3600 * 1000
#: How long the consumers of a filter read from the file are taken to be gone.
DEAD_SINCE_MS = 30_000
#: More filters than this, or more text in all of them, are not kept.
FILTERS_MAX = 10_000
TEXT_CHARS_MAX = 1024 * 1024
#: New expressions that one heartbeat may bring to be compiled; the next one brings the rest.
COMPILED_CHARS_PER_HEARTBEAT_MAX = 32_768

F = TypeVar("F")


class KnownFilter(NamedTuple, Generic[F]):
    """A filter as it is kept, and what it was compiled to; None when it does not compile."""

    data: ConsumerFilterData
    compiled: F | None


class ConsumerFilters(Generic[F]):
    """All filters that are not by tag.

    `compile_filter` gets type and expression and raises ProtocolError; `bloom` gets group#topic.
    """

    def __init__(
        self, compile_filter: Callable[[str, str], F], bloom: Callable[[str], BloomFilterData]
    ) -> None:
        self._compile = compile_filter
        self._bloom = bloom
        #: group -> topic -> filter
        self._filters: dict[str, dict[str, KnownFilter[F]]] = {}
        self._count = 0
        self._chars = 0
        #: Counts changes, so that an unchanged table is not written again.
        self.changes = 0

    def __len__(self) -> int:
        return self._count

    def get(self, topic: str, group: str) -> KnownFilter[F] | None:
        """The filter of a group in a topic, dead or alive."""
        return self._filters.get(group, {}).get(topic)

    def of_group(self, group: str) -> list[KnownFilter[F]]:
        """The filters of a group in all topics."""
        return list(self._filters.get(group, {}).values())

    def register(
        self,
        group: str,
        subscriptions: Iterable[SubscriptionData],
        now_ms: int,
        chars_max: int = COMPILED_CHARS_PER_HEARTBEAT_MAX,
    ) -> int:
        """Take over what a heartbeat says; filters of topics it does not name are dead.

        Returns how much of `chars_max` is left for its other groups.
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
        for topic, known in self._filters.get(group, {}).items():
            if topic not in topics:
                self._bury(known, now_ms)
        return chars_max

    def _renew(self, group: str, subscription: SubscriptionData) -> bool:
        """Keep the filter that is known, when the subscription does not bring another one."""
        known = self.get(subscription.topic, group)
        if known is None:
            return False
        data = known.data
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
        self._add(KnownFilter(data, compiled))

    def unregister(self, group: str, now_ms: int) -> None:
        """Note that a group has no consumers any more."""
        for known in self._filters.get(group, {}).values():
            self._bury(known, now_ms)

    def _bury(self, known: KnownFilter[F], now_ms: int) -> None:
        if not known.data.is_dead:
            known.data.dead_time = now_ms
            self.changes += 1

    def clean(self, now_ms: int) -> None:
        """Forget filters that have been dead for a day."""
        old = [
            known.data
            for known in self._all()
            if known.data.is_dead and now_ms - known.data.dead_time >= DEAD_FILTER_KEPT_MS
        ]
        for data in old:
            self._drop(data.consumer_group, data.topic)

    def encode(self) -> bytes:
        """The table as it is kept in the file."""
        topics: dict[str, FilterDataMapByTopic] = {}
        for known in self._all():
            data = known.data
            of_topic = topics.setdefault(data.topic, FilterDataMapByTopic(topic=data.topic))
            of_topic.group_filter_data[data.consumer_group] = data
        return encode_body(ConsumerFilterWrapper(filter_data_by_topic=topics))

    def restore(self, content: bytes, now_ms: int) -> None:
        """Take over what a file holds; raises ProtocolError when it is no such file.

        Nobody has sent a heartbeat yet, so all filters are dead. What does not compile any more is
        kept and filters nothing, as in RocketMQ.
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
                self._add(KnownFilter(data, compiled))

    def _all(self) -> Iterator[KnownFilter[F]]:
        for topics in self._filters.values():
            yield from topics.values()

    def _add(self, known: KnownFilter[F]) -> None:
        data = known.data
        self._filters.setdefault(data.consumer_group, {})[data.topic] = known
        self._count += 1
        self._chars += len(data.expression)
        self.changes += 1

    def _drop(self, group: str, topic: str) -> None:
        topics = self._filters.get(group, {})
        known = topics.pop(topic, None)
        if known is None:
            return
        if not topics:
            del self._filters[group]
        self._count -= 1
        self._chars -= len(known.data.expression)
        self.changes += 1
        self.changes += 1
