"""The subscriptions and committed offsets of groups, as rows of `trace.tables.SUBSCRIPTIONS`. Pure.

Traces hold no subscriptions. So each run asks the cluster, and keeps the history of the filters: a
filter counts for the messages stored while it was valid, the first known filter also for earlier
messages. Of the offsets only the newest answer counts.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

#: Maximum periods of one topic and group; the oldest periods are merged.
PERIODS_MAX: Final = 20
TAG: Final = "TAG"


class Filter(NamedTuple):
    """The filter of a subscription; all None when unknown, as with different brokers' answers."""

    expression_type: str | None = None
    expression: str | None = None
    #: None when all tags pass, and for SQL92.
    accepted_tags: list[str] | None = None


class Found(NamedTuple):
    """The answer of the cluster for one topic and group."""

    topic: str
    consumer_group: str
    #: None without connected consumers: the last known filter stays.
    filter: Filter | None
    #: None when unknown: the last known value stays.
    consumed_until_ms: int | None


class Subscription(NamedTuple):
    """One row, with the columns of `trace.tables.SUBSCRIPTIONS`."""

    topic: str
    consumer_group: str
    since_ms: int
    until_ms: int | None
    expression_type: str | None
    expression: str | None
    accepted_tags: list[str] | None
    consumed_until_ms: int | None
    asked_ms: int

    @property
    def filter(self) -> Filter:
        return Filter(self.expression_type, self.expression, self.accepted_tags)


class QueueOffsets(NamedTuple):
    """A group's committed offset in a queue; `last_consumed_ms` is the store time of the message
    before this offset, 0 when unknown."""

    broker_offset: int
    committed_offset: int
    last_consumed_ms: int


def filter_of(expression_type: str, expression: str) -> Filter:
    """The filter of a subscription as consumers send it; no expression and `*` accept all."""
    text = expression.strip()
    if expression_type != TAG:
        return Filter(expression_type, text)
    tags = sorted({tag for tag in (part.strip() for part in text.split("||")) if tag})
    return Filter(TAG, text, None if not tags or "*" in tags else tags)


def consumed_until_ms(queues: Iterable[QueueOffsets], asked_ms: int) -> int | None:
    """The time up to which the group has passed all messages of a topic, in every queue.

    None when unknown: the group has no committed offset in a queue with messages (broadcasting
    consumers commit none), or the last consumed message has expired.
    """
    times = []
    for queue in queues:
        if queue.committed_offset >= queue.broker_offset:
            times.append(asked_ms)
        elif queue.committed_offset > 0 and queue.last_consumed_ms > 0:
            times.append(queue.last_consumed_ms)
        else:
            return None
    return min(times, default=None)


def merged(
    before: Sequence[Subscription], found: Iterable[Found], asked_ms: int, oldest_ms: int
) -> list[Subscription]:
    """The rows after an answer of the cluster, ordered by topic, group and time.

    Topics and groups without an answer stay as they were, until their last answer is older than
    `oldest_ms`.
    """
    rows: dict[tuple[str, str], list[Subscription]] = {}
    for row in sorted(before, key=lambda row: row.since_ms):
        if row.asked_ms >= oldest_ms:
            rows.setdefault((row.topic, row.consumer_group), []).append(row)
    for answer in found:
        periods = rows.setdefault((answer.topic, answer.consumer_group), [])
        newest = periods[-1] if periods else None
        known = newest.filter if newest else Filter()
        current = known if answer.filter is None else answer.filter
        until_ms = answer.consumed_until_ms
        if until_ms is None and newest:
            until_ms = newest.consumed_until_ms
        if newest is None or current != known:
            if newest is not None:
                periods[-1] = newest._replace(until_ms=asked_ms)
            since_ms = asked_ms if periods else 0
            kind, expression, tags = current
            names = answer.topic, answer.consumer_group
            periods.append(Subscription(*names, since_ms, None, kind, expression, tags, None, 0))
        periods = periods[-PERIODS_MAX:]
        periods[0] = periods[0]._replace(since_ms=0)
        rows[answer.topic, answer.consumer_group] = [
            row._replace(consumed_until_ms=until_ms, asked_ms=asked_ms) for row in periods
        ]
    return [row for _key, periods in sorted(rows.items()) for row in periods]
