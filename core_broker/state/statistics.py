"""Counters by topic, group and broker, and what they grew by in the last minute, hour and day.

Sending only bumps two numbers per message (`TopicPuts`); they are folded into the named items when
somebody looks. Each item keeps readings of itself: every 10 s for a minute, every 10 min for an
hour, every hour for a day. Names and keys are those of RocketMQ's BrokerStatsManager, StatsItem and
StatsSnapshot: a topic, topic@group, queueId@topic@group, topic@queueId, or the cluster's name.
"""

from collections import defaultdict, deque
from collections.abc import Callable

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

SAMPLE_INTERVAL_MS = 10_000
_SAMPLES_PER_HOUR_STEP = 60
_SAMPLES_PER_DAY_STEP = 360

_Reading = tuple[int, int, int]


class TopicPuts:
    """What was sent to one topic, by queue. The send path adds to these dicts directly."""

    __slots__ = ("bytes_of", "count_of")

    def __init__(self) -> None:
        self.count_of: dict[int, int] = defaultdict(int)
        self.bytes_of: dict[int, int] = defaultdict(int)


class StatItem:
    """One counter with its readings: a value, and in how many additions it came together."""

    __slots__ = ("_day", "_hour", "_minute", "times", "value")

    def __init__(self) -> None:
        self.value = 0
        self.times = 0
        self._minute: deque[_Reading] = deque(maxlen=7)
        self._hour: deque[_Reading] = deque(maxlen=7)
        self._day: deque[_Reading] = deque(maxlen=25)

    def sample(self, now_ms: int, number: int) -> None:
        """Keep a reading; `number` counts the calls, so that longer steps are known."""
        reading = (now_ms, self.value, self.times)
        self._minute.append(reading)
        if number % _SAMPLES_PER_HOUR_STEP == 0:
            self._hour.append(reading)
        if number % _SAMPLES_PER_DAY_STEP == 0:
            self._day.append(reading)

    def minute(self) -> BrokerStatsItem:
        """Growth over the last minute."""
        return _growth(self._minute)

    def view(self) -> BrokerStatsData:
        """Growth over minute, hour and day, as code 315 shows it."""
        return BrokerStatsData(
            stats_minute=_growth(self._minute),
            stats_hour=_growth(self._hour),
            stats_day=_growth(self._day),
        )


def _growth(readings: deque[_Reading]) -> BrokerStatsItem:
    if not readings:
        return BrokerStatsItem(sum=0, tps=0.0, avgpt=0.0)
    first_ms, first_value, first_times = readings[0]
    last_ms, last_value, last_times = readings[-1]
    total, times = last_value - first_value, last_times - first_times
    return BrokerStatsItem(
        sum=total,
        tps=total * 1000 / (last_ms - first_ms) if last_ms > first_ms else 0.0,
        avgpt=total / times if times > 0 else 0.0,
    )


class Statistics:
    """All counters of a broker, since its start."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._items: dict[tuple[str, str], StatItem] = {}
        self._puts: dict[str, TopicPuts] = {}
        self._samples = 0
        self._put_before = 0
        self.get_total = 0
        self.get_bytes_total = 0
        self.get_time_max_ms = 0

    def puts_of(self, topic: str) -> TopicPuts:
        """The counters that the send path adds to."""
        puts = self._puts.get(topic)
        if puts is None:
            puts = self._puts[topic] = TopicPuts()
        return puts

    def add(self, name: str, key: str, value: int = 1, times: int = 1) -> None:
        """Count something that does not happen for every message."""
        item = self._item(name, key)
        item.value += value
        item.times += times

    def got(
        self, group: str, topic: str, queue_id: int, count: int, size: int, took_ms: int
    ) -> None:
        """Count messages handed to a consumer by one pull, and how long reading them took."""
        key = f"{topic}@{group}"
        self.add(GROUP_GET_NUMS, key, count)
        self.add(GROUP_GET_SIZE, key, size)
        queue = f"{topic}@{queue_id}@{group}"
        self.add(QUEUE_GET_NUMS, queue, count)
        self.add(QUEUE_GET_SIZE, queue, size)
        self.add(BROKER_GET_NUMS, self._cluster, count)
        self.add(GROUP_GET_LATENCY, f"{queue_id}@{key}", took_ms)
        self.get_time_max_ms = max(self.get_time_max_ms, took_ms)
        self.get_total += count
        self.get_bytes_total += size

    def got_from_disk(self, group: str, topic: str, count: int) -> None:
        """Count messages of a pull that was far behind."""
        self.add(GROUP_GET_FROM_DISK_NUMS, f"{topic}@{group}", count)
        self.add(BROKER_GET_FROM_DISK_NUMS, self._cluster, count)

    def buried(self, group: str) -> None:
        """Count a message that became a dead letter of a group."""
        self.add(DLQ_PUT_NUMS, group)

    def fold(self) -> None:
        """Bring the named items up to date with what the send path counted."""
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
        """Take a reading of everything; due every SAMPLE_INTERVAL_MS."""
        self.fold()
        for item in self._items.values():
            item.sample(now_ms, self._samples)
        self._samples += 1

    def view(self, name: str, key: str) -> BrokerStatsData | None:
        """What code 315 answers, or None when nothing was ever counted under this name."""
        self.fold()
        item = self._items.get((name, key))
        return item.view() if item is not None else None

    def group_get_tps(self, group: str, topic: str) -> float:
        """Messages a second that a group received of a topic in the last minute."""
        item = self._items.get((GROUP_GET_NUMS, f"{topic}@{group}"))
        return item.minute().tps if item is not None else 0.0

    def totals(self) -> dict[str, dict[str, int]]:
        """All counters since the start, by name and key."""
        self.fold()
        totals: dict[str, dict[str, int]] = defaultdict(dict)
        for (name, key), item in self._items.items():
            totals[name][key] = item.value
        return totals

    def forget_topic(self, topic: str) -> None:
        """Drop the counters of a deleted topic; the broker's total keeps what it had."""
        puts = self._puts.pop(topic, None)
        if puts is not None:
            self._put_before += sum(puts.count_of.values())
        self._forget(lambda parts: parts[0] == topic)

    def forget_group(self, group: str) -> None:
        """Drop the counters of a deleted group."""
        self._forget(lambda parts: len(parts) > 1 and parts[-1] == group)

    def _forget(self, chosen: Callable[[list[str]], bool]) -> None:
        for name, key in list(self._items):
            if not name.startswith("BROKER_") and chosen(key.split("@")):
                del self._items[name, key]

    def _item(self, name: str, key: str) -> StatItem:
        item = self._items.get((name, key))
        if item is None:
            item = self._items[name, key] = StatItem()
        return item

    def _set(self, name: str, key: str, value: int, times: int) -> None:
        item = self._item(name, key)
        item.value = value
        item.times = times
