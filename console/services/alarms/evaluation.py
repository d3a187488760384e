"""Episodes of all rules of a cluster, after each evaluation of its findings.

Runs in the worker that evaluates. All changes of a rule's episodes, and the deliveries of their
notices, are one transaction that holds the rule's row: after a crash, or beside a second worker,
the next evaluation continues from the rows.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError, transaction

from console.gateway import Cluster, now_ms
from console.services.alarms import retention
from console.services.alarms.conditions import Pace, Seen, Step, Times, next_step
from console.services.alarms.feed import announce
from console.services.alarms.models import AlarmRule, Episode, EpisodeState
from console.services.alarms.notices import notify_firing, notify_resolved
from console.services.alarms.observing import (
    OBJECTS_PER_RULE_MAX,
    ObjectKey,
    Observation,
    Observed,
    View,
    observe,
)
from console.services.findings.finding import Report

log = logging.getLogger(__name__)

OPEN: Final = (EpisodeState.PENDING, EpisodeState.FIRING)
#: Minimum time between two stored values of an episode, ms.
VALUE_EVERY_MS: Final = 60_000


def on_evaluated(sender: Any, *, cluster: Cluster, report: Report | None, **_: Any) -> None:
    """Receiver of `findings.background.evaluated`."""
    try:
        evaluate(cluster.name, report, now_ms())
    except DatabaseError:
        log.exception("no evaluation of the alarms of %s", cluster)


def evaluate(cluster: str, report: Report | None, at_ms: int) -> None:
    """Evaluate all rules of a cluster. Raises DatabaseError."""
    view = View.of(settings.GANTRY_HOME, cluster, report, at_ms)
    rules = AlarmRule.objects.filter(enabled=True, cluster__in=["", cluster]).order_by("pk")
    is_changed = False
    for rule in rules:
        observed = observe(rule, view)
        is_open = Episode.objects.filter(rule=rule, cluster=cluster, state__in=OPEN).exists()
        if observed.met or is_open:
            is_changed |= _apply(rule.pk, cluster, observed, at_ms)
    if is_changed:
        announce(cluster, "alarms")
    retention.prune(at_ms)


def _apply(number: int, cluster: str, observed: Observed, at_ms: int) -> bool:
    """Change the episodes of a rule in one transaction, unless the rule has changed meanwhile.

    Returns whether pages show anything else now.
    """
    with transaction.atomic():
        rule = AlarmRule.objects.select_for_update().filter(pk=number, enabled=True).first()
        if rule is None:
            return False
        is_changed = Changes(rule, cluster, observed, at_ms).apply()
        return bool(notify_firing(rule, cluster, at_ms)) or is_changed


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of the episodes of a rule in a cluster at one time."""

    rule: AlarmRule
    cluster: str
    observed: Observed
    at_ms: int

    def apply(self) -> bool:
        """Store the changes; returns whether there were any."""
        rows = Episode.objects.filter(rule=self.rule, cluster=self.cluster, state__in=OPEN)
        known = {ObjectKey(row.kind, row.name, row.detail): row for row in rows}
        by_step: dict[Step, list[Episode]] = {}
        for key, row in known.items():
            by_step.setdefault(self._step(row, self.observed.of(key)), []).append(row)
        self._move(by_step)
        is_moved = any(step is not Step.KEEP for step in by_step)
        return any((is_moved, self._refresh(known), self._begin(known)))

    def _step(self, row: Episode, seen: Seen) -> Step:
        times = Times(row.state, row.begun_ms, row.clear_since_ms, row.seen_ms)  # type: ignore[arg-type]
        return next_step(times, seen, pace_of(self.rule), self.at_ms)

    def _move(self, by_step: Mapping[Step, list[Episode]]) -> None:
        def rows(step: Step) -> Any:
            return Episode.objects.filter(pk__in=[each.pk for each in by_step.get(step, ())])

        rows(Step.DROP).delete()
        rows(Step.FIRE).update(state=EpisodeState.FIRING, fired_ms=self.at_ms)
        rows(Step.BEGIN_CLEARING).update(clear_since_ms=self.at_ms)
        rows(Step.STOP_CLEARING).update(clear_since_ms=None)
        resolve(self.rule, self.cluster, by_step.get(Step.RESOLVE, []), self.at_ms, "cleared")
        lost = by_step.get(Step.RESOLVE_WITHOUT_DATA, [])
        resolve(self.rule, self.cluster, lost, self.at_ms, "no-data")

    def _refresh(self, known: Mapping[ObjectKey, Episode]) -> int:
        """Store values and times of open episodes, each at most every VALUE_EVERY_MS; returns
        their number."""
        changed = []
        for key, row in known.items():
            if self.observed.of(key) is Seen.UNKNOWN or self.at_ms - row.seen_ms < VALUE_EVERY_MS:
                continue
            row.seen_ms = self.at_ms
            if (now := self.observed.by_key.get(key)) is not None:
                row.value = now.value
                row.text = dict(now.text) or row.text
            changed.append(row)
        Episode.objects.bulk_update(changed, ["seen_ms", "value", "text"], batch_size=100)
        return len(changed)

    def _begin(self, known: Mapping[ObjectKey, Episode]) -> int:
        """Begin episodes of objects that meet the condition, at most OBJECTS_PER_RULE_MAX; returns
        their number."""
        new = [each for each in self.observed.met if each.key not in known]
        new.sort(key=lambda each: (-(each.value or 0), each.key))
        most = max(0, OBJECTS_PER_RULE_MAX - len(known))
        Episode.objects.bulk_create(
            [self._row(each) for each in new[:most]], batch_size=100, ignore_conflicts=True
        )
        left_out = len(new[most:])
        if left_out != self.rule.left_out:
            AlarmRule.objects.filter(pk=self.rule.pk).update(left_out=left_out)
        return len(new[:most])

    def _row(self, seen: Observation) -> Episode:
        fires = self.rule.for_s == 0
        return Episode(
            rule=self.rule,
            rule_name=self.rule.name,
            cluster=self.cluster,
            kind=seen.key.kind,
            name=seen.key.name,
            detail=seen.key.detail,
            severity=seen.severity,
            state=EpisodeState.FIRING if fires else EpisodeState.PENDING,
            begun_ms=self.at_ms,
            fired_ms=self.at_ms if fires else None,
            seen_ms=self.at_ms,
            value=seen.value,
            text=dict(seen.text),
        )


def pace_of(rule: AlarmRule) -> Pace:
    return Pace(rule.for_s * 1_000, rule.clear_for_s * 1_000)


def resolve(
    rule: AlarmRule, cluster: str, episodes: list[Episode], at_ms: int, reason: str
) -> None:
    """End firing episodes and enqueue their notices; runs in a transaction."""
    if not episodes:
        return
    Episode.objects.filter(pk__in=[each.pk for each in episodes]).update(
        state=EpisodeState.RESOLVED, resolved_ms=at_ms, end_reason=reason
    )
    notify_resolved(rule, cluster, episodes, at_ms)


def end_all(rule: AlarmRule, at_ms: int, reason: str) -> None:
    """End the open episodes of a rule that is off, changed or deleted; runs in a transaction."""
    rows = Episode.objects.filter(rule=rule)
    rows.filter(state=EpisodeState.PENDING).delete()
    by_cluster: dict[str, list[Episode]] = {}
    for row in rows.filter(state=EpisodeState.FIRING):
        by_cluster.setdefault(row.cluster, []).append(row)
    for cluster, firing in by_cluster.items():
        resolve(rule, cluster, firing, at_ms, reason)
