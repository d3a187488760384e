"""The overview of a cluster: what its front page, its API resource and its live feed all show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from console.gateway.answers import BrokerFailure, Partial, merge_failures
from console.gateway.brokers import BrokerRow, broker_rows
from console.gateway.deadletters import DeadLetterGroup, groups_with_dead_letters
from console.gateway.desk import Desk
from console.gateway.groups import GroupRow, group_rows
from console.gateway.questions import question
from console.gateway.topics import topic_rows

BEHIND_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Load:
    """Sums over the masters. A sum leaves out what is unknown; it is None when all of it is."""

    in_rate: float | None
    out_rate: float | None
    in_today: int | None
    out_today: int | None
    in_total: int | None
    out_total: int | None
    stored_bytes: int | None
    disk_ratio: float | None


@dataclass(frozen=True, slots=True)
class Overview:
    load: Load
    brokers: tuple[BrokerRow, ...]
    silent: tuple[BrokerFailure, ...]
    topic_count: int
    own_topic_count: int
    group_count: int
    total_lag: int | None
    behind: tuple[GroupRow, ...]
    dead_letters: tuple[DeadLetterGroup, ...]

    @property
    def dead_letter_count(self) -> int | None:
        """All dead letters; None when a broker could not tell of some."""
        counts = [group.count for group in self.dead_letters]
        return None if None in counts else sum(count or 0 for count in counts)


@question(fresh_for_ms=1_000, deadline_ms=12_000)
async def overview(desk: Desk) -> Partial[Overview]:
    """Everything the overview shows."""
    brokers = await desk.ask(broker_rows)
    topics = await desk.ask(topic_rows)
    groups = await desk.ask(group_rows)
    letters = await desk.ask(groups_with_dead_letters)
    lags = [row.lag for row in groups.value if row.lag is not None]
    own = [row for row in topics.value if row.kind not in {"system", "retry", "dlq"}]
    return Partial(
        Overview(
            load=load_of(brokers.value),
            brokers=brokers.value,
            silent=brokers.failures,
            topic_count=len(topics.value),
            own_topic_count=len(own),
            group_count=sum(not row.system for row in groups.value),
            total_lag=sum(lags) if lags else None,
            behind=furthest_behind(groups.value),
            dead_letters=letters.value,
        ),
        merge_failures(brokers.failures, topics.failures, groups.failures, letters.failures),
    )


def load_of(rows: Iterable[BrokerRow]) -> Load:
    """Add up the masters; slaves repeat what their master has."""
    masters = [row for row in rows if row.ref.is_master]
    return Load(
        in_rate=_sum(row.in_rate for row in masters),
        out_rate=_sum(row.out_rate for row in masters),
        in_today=_total(row.in_today for row in masters),
        out_today=_total(row.out_today for row in masters),
        in_total=_total(row.in_total for row in masters),
        out_total=_total(row.out_total for row in masters),
        stored_bytes=_total(row.stored_bytes for row in masters),
        disk_ratio=max(
            (row.disk_ratio for row in masters if row.disk_ratio is not None), default=None
        ),
    )


def furthest_behind(rows: Iterable[GroupRow]) -> tuple[GroupRow, ...]:
    """The groups with the most messages before them."""
    behind = [row for row in rows if row.lag]
    behind.sort(key=lambda row: (-(row.lag or 0), row.name))
    return tuple(behind[:BEHIND_SHOWN])


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _total(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
