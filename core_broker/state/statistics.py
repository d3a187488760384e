"""Broker statistics: counters by topic, group and broker, their growth per minute, hour and day.

A send only increments two numbers (in `TopicPuts` or in the compiled kernel). `fold` adds these
numbers to the named items before a read. Each item keeps samples of its value: every 10 s for a
minute, every 10 min for an hour, every hour for a day. Names and keys are compatible with
RocketMQ's BrokerStatsManager, StatsItem and StatsSnapshot. A key is a topic, topic@group,
queueId@topic@group, topic@queueId, or the cluster's name.
"""

from array import array
from collections import defaultdict, deque
from collections.abc import Callable

from core_broker.message.topics import TOOLS_CONSUMER_GROUP
from core_broker.remoting.bodies import BrokerStatsData, BrokerStatsItem

TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"
TOPIC_PUT_SIZE = "TOPIC_PUT_SIZE"
QUEUE_PUT_NUMS = "QUEUE_PUT_NUMS"
QUEUE_PUT_SIZE = "QUEUE_PUT_SIZE"
BROKER_PUT_NUMS = "BROKER_PUT_NUMS"
GROUP_GET_NUMS = "GROUP_GET_NUMS"
GROUP_GET_SIZE = "GROUP_GET_SIZE"
GROUP_GET_LATENCY = "GROUP_GET_LATENCY"
GROUP_GET_FROM_DISK_NUMS = "GROUP_GET_FROM_DISK_NUMS"
QUEUE_GET_NUMS = "QUEUE_GET_NUMS"
QUEUE_GET_SIZE = "QUEUE_GET_SIZE"
BROKER_GET_NUMS = "BROKER_GET_NUMS"
BROKER_GET_FROM_DISK_NUMS = "BROKER_GET_FROM_DISK_NUMS"
SNDBCK_PUT_NUMS = "SNDBCK_PUT_NUMS"
DLQ_PUT_NUMS = "DLQ_PUT_NUMS"

#: Time between two samples, ms.
SAMPLE_INTERVAL_MS = 10_000


class TopicPuts:
    """Messages and bytes sent to one topic, by queue id. The send path updates the dicts itself."""

    __slots__ = ("bytes_of", "count_of")

    def __init__(self) -> None:
        self.count_of: dict[int, int] = defaultdict(int)
        self.bytes_of: dict[int, int] = defaultdict(int)


class _Span:
    """One span of time: the times of its samples. The items keep the values."""

    __slots__ = ("every", "moments_ms")

    def __init__(self, samples_max: int, every: int) -> None:
        #: Interval of this span, as a multiple of SAMPLE_INTERVAL_MS.
        self.every = every
        self.moments_ms: deque[int] = deque(maxlen=samples_max)


class StatItem:
    """One counter: a value and the number of its additions, now and at each sample."""

    __slots__ = ("_samples", "times", "value")

    def __init__(self, spans: int) -> None:
        self.value = 0
        self.times = 0
        #: Per span: value, times, value, times, … oldest first. An array of 64-bit numbers saves
        #: memory with many items.
        self._samples = tuple(array("q") for _ in range(spans))

    def sample(self, span: int, samples_max: int) -> None:
        """Append a sample to a span, and drop its oldest sample beyond `samples_max`."""
        samples = self._samples[span]
        samples.extend((self.value, self.times))
        if len(samples) > 2 * samples_max:
            del samples[:2]

    def growth(self, span: int, moments_ms: deque[int]) -> BrokerStatsItem:
        """The growth between the first and the last sample; an item starts at 0."""
        samples = self._samples[span]
        if not samples:
            return BrokerStatsItem()
        value, times = samples[-2], samples[-1]
        if len(samples) == 2 * len(moments_ms):
            value -= samples[0]
            times -= samples[1]
        span_ms = moments_ms[-1] - moments_ms[0]
        return BrokerStatsItem(
            sum=value,
            tps=value * 1000 / span_ms if span_ms > 0 else 0.0,
            avgpt=value / times if times > 0 else 0.0,
        )


class Statistics:
    """All counters of a broker since its start."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._items: dict[tuple[str, str], StatItem] = {}
        #: 7 samples bound 6 intervals of 10 s; 7 bound 6 of 10 min; 25 bound 24 of an hour.
        self._spans = (_Span(7, 1), _Span(7, 60), _Span(25, 360))
        self._puts: dict[str, TopicPuts] = {}
        self._samples = 0
        self._put_before = 0
        #: Callbacks of `fold`, which add counters kept elsewhere.
        self.suppliers: list[Callable[[], None]] = []
        self.get_total = 0
        self.get_bytes_total = 0
        self.get_time_max_ms = 0

    def puts_of(self, topic: str) -> TopicPuts:
        """The counters of a topic, for updates by the send path."""
        puts = self._puts.get(topic)
        if puts is None:
            puts = self._puts[topic] = TopicPuts()
        return puts

    def put(self, topic: str, queue_id: int, size: int) -> None:
        """Count one message that the broker stored."""
        puts = self.puts_of(topic)
        puts.count_of[queue_id] += 1
        puts.bytes_of[queue_id] += size

    def add(self, name: str, key: str, value: int = 1, times: int = 1) -> None:
        """Add to a named item directly, for events rarer than one per message."""
        item = self._item(name, key)
        item.value += value
        item.times += times

    def got(
        self,
        group: str,
        topic: str,
        queue_id: int,
        count: int,
        size: int,
        took_ms: int,
        *,
        pulls: int = 1,
    ) -> None:
        """Count messages answered to a consumer's pulls, and the time for reading them, ms.

        Pulls of tools (TOOLS_CONSUMER: a console's message browser, mqadmin) are no consumption:
        they count for their own group, but not for the broker.
        """
        key = f"{topic}@{group}"
        self.add(GROUP_GET_NUMS, key, count, pulls)
        self.add(GROUP_GET_SIZE, key, size, pulls)
        queue = f"{topic}@{queue_id}@{group}"
        self.add(QUEUE_GET_NUMS, queue, count, pulls)
        self.add(QUEUE_GET_SIZE, queue, size, pulls)
        self.add(GROUP_GET_LATENCY, f"{queue_id}@{key}", took_ms, pulls)
        if group == TOOLS_CONSUMER_GROUP:
            return
        self.add(BROKER_GET_NUMS, self._cluster, count, pulls)
        self.get_time_max_ms = max(self.get_time_max_ms, took_ms)
        self.get_total += count
        self.get_bytes_total += size

    def got_from_disk(self, group: str, topic: str, count: int) -> None:
        """Count messages of a pull with a lag too large for the memory."""
        self.add(GROUP_GET_FROM_DISK_NUMS, f"{topic}@{group}", count)
        if group != TOOLS_CONSUMER_GROUP:
            self.add(BROKER_GET_FROM_DISK_NUMS, self._cluster, count)

    def dead_lettered(self, group: str) -> None:
        """Count a message that became a dead letter of a group."""
        self.add(DLQ_PUT_NUMS, group)

    def fold(self) -> None:
        """Update the named items from the counters of the send path."""
        for supply in self.suppliers:
            supply()
        total = self._put_before
        for topic, puts in self._puts.items():
            count = sum(puts.count_of.values())
            total += count
            self._set(TOPIC_PUT_NUMS, topic, count, count)
            self._set(TOPIC_PUT_SIZE, topic, sum(puts.bytes_of.values()), count)
            for queue_id, queue_count in puts.count_of.items():
                key = f"{topic}@{queue_id}"
                self._set(QUEUE_PUT_NUMS, key, queue_count, queue_count)
                self._set(QUEUE_PUT_SIZE, key, puts.bytes_of[queue_id], queue_count)
        self._set(BROKER_PUT_NUMS, self._cluster, total, total)

    def sample(self, now_ms: int) -> None:
        """Sample all items; to be called every SAMPLE_INTERVAL_MS."""
        self.fold()
        for number, span in enumerate(self._spans):
            if self._samples % span.every:
                continue
            span.moments_ms.append(now_ms)
            samples_max = span.moments_ms.maxlen or 0
            for item in self._items.values():
                item.sample(number, samples_max)
        self._samples += 1

    def view(self, name: str, key: str) -> BrokerStatsData | None:
        """The answer to code 315; None for an unknown item."""
        self.fold()
        item = self._items.get((name, key))
        if item is None:
            return None
        minute, hour, day = (
            item.growth(number, span.moments_ms) for number, span in enumerate(self._spans)
        )
        return BrokerStatsData(stats_minute=minute, stats_hour=hour, stats_day=day)

    def group_get_tps(self, group: str, topic: str) -> float:
        """Consume rate of a group in a topic over the last minute, messages per second."""
        item = self._items.get((GROUP_GET_NUMS, f"{topic}@{group}"))
        return item.growth(0, self._spans[0].moments_ms).tps if item is not None else 0.0

    def topic_put_tps(self, topic: str) -> float:
        """Produce rate of a topic over the last minute, messages per second."""
        item = self._items.get((TOPIC_PUT_NUMS, topic))
        return item.growth(0, self._spans[0].moments_ms).tps if item is not None else 0.0

    def totals(self) -> dict[str, dict[str, int]]:
        """All counters since the start, by name and key."""
        self.fold()
        totals: dict[str, dict[str, int]] = defaultdict(dict)
        for (name, key), item in self._items.items():
            totals[name][key] = item.value
        return totals

    def forget_topic(self, topic: str) -> None:
        """Drop the counters of a deleted topic; the broker's total keeps the topic's messages."""
        self.fold()
        puts = self._puts.pop(topic, None)
        if puts is not None:
            self._put_before += sum(puts.count_of.values())
        self._forget(lambda parts: parts[0] == topic)

    def forget_group(self, group: str) -> None:
        """Drop the counters of a deleted group."""
        self.fold()
        self._forget(lambda parts: len(parts) > 1 and parts[-1] == group)

    def _forget(self, chosen: Callable[[list[str]], bool]) -> None:
        for name, key in list(self._items):
            if not name.startswith("BROKER_") and chosen(key.split("@")):
                del self._items[name, key]

    def _item(self, name: str, key: str) -> StatItem:
        item = self._items.get((name, key))
        if item is None:
            item = self._items[name, key] = StatItem(len(self._spans))
        return item

    def _set(self, name: str, key: str, value: int, times: int) -> None:
        item = self._item(name, key)
        item.value = value
        item.times = times
