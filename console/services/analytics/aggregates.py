"""Results of the analytics queries. Pure.

Values without records are None, never 0. Rates are 0 to 1, times milliseconds.
"""

from dataclasses import dataclass, replace

from console.services.analytics.ranges import TimeRange
from trace.tables import MESSAGE_KINDS

KIND_NUMBERS = {name: number for number, name in MESSAGE_KINDS.items()}


@dataclass(frozen=True, slots=True)
class Scope:
    """Filter of a query: time range, and optionally topic, consumer group and message type."""

    range: TimeRange
    topic: str | None = None
    consumer_group: str | None = None
    #: One of MESSAGE_KINDS.
    kind: str | None = None

    @property
    def parameters(self) -> dict[str, object]:
        return {
            "begin": self.range.begin_ms,
            "end": self.range.end_ms,
            "topic": self.topic,
            "consumer_group": self.consumer_group,
            "msg_type": None if self.kind is None else KIND_NUMBERS[self.kind],
        }


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of sends and consume attempts. A batch counts as the messages of the batch."""

    sends: int = 0
    send_failures: int = 0
    bytes: int = 0
    attempts: int = 0
    successes: int = 0
    failures: int = 0
    retries: int = 0
    dead_letters: int = 0
    deliveries: int = 0
    consumed: int = 0

    @property
    def stored(self) -> int:
        return self.sends - self.send_failures

    @property
    def send_success(self) -> float | None:
        return 1 - self.send_failures / self.sends if self.sends else None

    @property
    def consume_success(self) -> float | None:
        """Share of successes among the attempts with a recorded result."""
        ended = self.successes + self.failures
        return self.successes / ended if ended else None


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Percentiles in milliseconds."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None


@dataclass(frozen=True, slots=True)
class Aggregates:
    """Counts and latencies of a topic, group or message type.

    `name` is None for records without the topic, group or type.
    """

    name: str | None
    counts: Counts = Counts()
    #: From stored to the first delivery to a listener.
    latency: Percentiles = Percentiles()
    send_cost: Percentiles = Percentiles()
    #: From the send call to the end of the first successful consume attempt.
    end_to_end: Percentiles = Percentiles()


@dataclass(frozen=True, slots=True)
class Point:
    """Counts and latencies of a step of time."""

    at_ms: int
    #: None without records: messages may have been sent and consumed without a trace.
    counts: Counts | None = None
    latency: Percentiles = Percentiles()
    send_cost: Percentiles = Percentiles()
    end_to_end: Percentiles = Percentiles()


@dataclass(frozen=True, slots=True)
class Overview:
    """Totals of a range, and aggregates by topic, group and message type, busiest first."""

    total: Aggregates
    topics: list[Aggregates]
    groups: list[Aggregates]
    kinds: list[Aggregates]


@dataclass(frozen=True, slots=True)
class SlowDelivery:
    """A slow delivery to a consumer group, or a message without a recorded attempt of the group."""

    at_ms: int
    #: slow; or the state of a message without an attempt: pending or unknown.
    reason: str
    topic: str | None
    producer_group: str | None
    consumer_group: str | None
    msg_type: int | None
    msg_id: str
    stored_ms: int | None
    start_ms: int | None
    latency_ms: int | None
    end_to_end_ms: int | None
    duration_ms: int | None
    attempts: int | None
    success: bool | None

    @property
    def kind(self) -> str | None:
        return None if self.msg_type is None else MESSAGE_KINDS.get(self.msg_type)


@dataclass(frozen=True, slots=True)
class Missed:
    """Counts of messages without a recorded attempt of a group."""

    #: Never consumed: behind the committed offsets, and not filtered.
    pending: int
    #: Without a known subscription or committed offset.
    unknown: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge of the topology: producer group to topic, or topic to consumer group."""

    producer_group: str | None
    topic: str | None
    consumer_group: str | None
    messages: int
    bytes: int
    attempts: int
    failures: int
    dead_letters: int
    last_ms: int
    never_consumed: int = 0
    #: Messages that may have been filtered, or consumed without a trace.
    unconfirmed: int = 0

    def with_missed(self, missed: Missed) -> "Edge":
        return replace(self, never_consumed=missed.pending, unconfirmed=missed.unknown)

    @property
    def is_consuming(self) -> bool:
        return self.consumer_group is not None

    @property
    def failure_rate(self) -> float | None:
        return self.failures / self.attempts if self.attempts else None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the consumption funnel."""

    name: str
    count: int
    #: Outside of the sequence from sent to succeeded.
    is_side: bool = False


def funnel_of(counts: Counts, missed: Missed) -> list[Step]:
    """The steps from sent to succeeded. Deliveries are counted per consumer group."""
    return [
        Step("sent", counts.sends),
        Step("stored", counts.stored),
        Step("delivered", counts.deliveries),
        Step("succeeded", counts.consumed),
        Step("retried", counts.retries, is_side=True),
        Step("dead", counts.dead_letters, is_side=True),
        Step("never_consumed", missed.pending, is_side=True),
        Step("unconfirmed", missed.unknown, is_side=True),
    ]
