"""Rules about consumer groups: offline with lag, lag in time, dead letters, unequal settings."""

from collections.abc import Iterator

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.frame import formats
from console.gateway.groups.listing import GroupRow
from console.gateway.groups.metrics import GroupMetrics
from console.gateway.health.snapshot import Snapshot
from console.services.findings.finding import Finding, NotChecked, Severity, Target
from console.services.findings.rules.rule import (
    Duration,
    Evidence,
    Results,
    gaps,
    listing,
    rule,
    stale_ms,
)

#: Window of the growth of dead letters, ms.
GROWTH_WINDOW_MS = 600_000


@rule("group-offline", _("Groups with lag have connected clients"))
def group_offline(evidence: Evidence) -> Results:
    """A group whose messages nobody consumes. Members of a broadcasting group keep their offsets:
    such a group has no lag on the brokers."""
    yield from unmeasured(evidence)
    unknown = 0
    for row, metrics, at_ms in measured_groups(evidence.snapshot):
        if metrics.broadcasting or not metrics.is_behind(at_ms):
            continue
        if metrics.clients is None:
            unknown += 1
        elif metrics.clients == 0:
            yield Finding(
                "group-offline",
                Severity.CRITICAL,
                Target("group", row.name),
                format_lazy(
                    _("No client is connected. Lag: {lag}"),
                    lag=formats.number(metrics.lag),
                ),
                _("Start a consumer of the group, or delete the group if nobody needs it."),
                {"lag": metrics.lag, "lag_s": metrics.lag_seconds(at_ms), "clients": 0},
                as_of_ms=_stale(evidence, row),
                related=_topics(metrics),
            )
    if unknown:
        reason = _("Groups with an unknown number of clients: {count}")
        yield NotChecked(format_lazy(reason, count=unknown))


@rule("group-lag", _("Groups consume in time"))
def group_lag(evidence: Evidence) -> Results:
    """A group with clients whose oldest unconsumed message is older than the threshold."""
    yield from unmeasured(evidence)
    limit_s, unknown = evidence.thresholds.lag_s, 0
    for row, metrics, at_ms in measured_groups(evidence.snapshot):
        if metrics.broadcasting or not metrics.lag or metrics.clients == 0:
            continue
        lag_s = metrics.lag_seconds(at_ms)
        if lag_s is None:
            unknown += 1
        elif lag_s > limit_s:
            yield Finding(
                "group-lag",
                Severity.WARNING,
                Target("group", row.name),
                format_lazy(
                    _(
                        "The oldest unconsumed message waits for {age}; threshold {limit}. "
                        "Lag: {lag}"
                    ),
                    lag=formats.number(metrics.lag),
                    age=Duration(lag_s * 1000),
                    limit=Duration(limit_s * 1000),
                ),
                _(
                    "Compare the consume rate with the produce rate, add consumers up to the "
                    "number of queues, and look for a slow or failing listener."
                ),
                {
                    "lag": metrics.lag,
                    "lag_s": lag_s,
                    "threshold_s": limit_s,
                    "clients": metrics.clients,
                    "rate": metrics.rate,
                },
                since_ms=(metrics.pending_since_ms or at_ms) + limit_s * 1000,
                as_of_ms=_stale(evidence, row),
                related=_topics(metrics),
            )
    if unknown:
        reason = _("Groups with lag of unknown age: {count}")
        yield NotChecked(format_lazy(reason, count=unknown))


@rule("dead-letters-growing", _("No group gets new dead letters"))
def dead_letters_growing(evidence: Evidence) -> Results:
    """A group with more dead letters than in the oldest sample of the last ten minutes."""
    yield from unmeasured(evidence)
    before = evidence.samples.within(evidence.now_ms, GROWTH_WINDOW_MS)
    if before is None:
        yield NotChecked(_("The check compares two samples; the first was taken just now."))
        return
    passed_ms = evidence.now_ms - before.at_ms
    for row, metrics, _at_ms in measured_groups(evidence.snapshot):
        earlier = before.dead_letters.get(row.name, 0 if before.complete else None)
        if metrics.dead_letters is None or earlier is None or metrics.dead_letters <= earlier:
            continue
        grown = metrics.dead_letters - earlier
        yield Finding(
            "dead-letters-growing",
            Severity.WARNING,
            Target("group", row.name),
            format_lazy(
                _("New dead letters within {passed}: {grown}. In total: {count}"),
                grown=formats.number(grown),
                passed=Duration(passed_ms),
                count=formats.number(metrics.dead_letters),
            ),
            _("Open the dead letters to see the cause, correct the consumer, then resend them."),
            {"grown": grown, "dead_letters": metrics.dead_letters, "window_s": passed_ms / 1000},
            as_of_ms=_stale(evidence, row),
        )


@rule("group-drift", _("Settings of a group are equal on all brokers"))
def group_drift(evidence: Evidence) -> Results:
    groups = evidence.snapshot.groups
    yield from gaps(groups)
    for row in groups.value or ():
        if row.drift and not row.system:
            yield Finding(
                "group-drift",
                Severity.WARNING,
                Target("group", row.name),
                format_lazy(
                    _("The settings of the group differ between {brokers}."),
                    brokers=listing(row.brokers),
                ),
                _("Save the settings of the group for all brokers."),
                {"brokers": list(row.brokers)},
                as_of_ms=stale_ms(row.brokers, groups),
            )


def measured_groups(snapshot: Snapshot) -> Iterator[tuple[GroupRow, GroupMetrics, int]]:
    """Yield the groups of applications with their metrics and the time of the metrics, ms."""
    measured = snapshot.group_metrics.value
    if measured is None:
        return
    for row in snapshot.groups.value or ():
        metrics = measured.by_name.get(row.name)
        if metrics is not None and not row.system:
            yield row, metrics, measured.times_ms[row.name]


def unmeasured(evidence: Evidence) -> Results:
    """Report missing metrics of groups."""
    part = evidence.snapshot.group_metrics
    yield from gaps(part)
    if part.value is not None and part.value.left_out:
        reason = _("Groups without metrics: {count}. The brokers report one group per request.")
        yield NotChecked(format_lazy(reason, count=part.value.left_out))


def _topics(metrics: GroupMetrics) -> tuple[Target, ...]:
    return tuple(Target("topic", name) for name in metrics.topics)


def _stale(evidence: Evidence, row: GroupRow) -> int | None:
    return stale_ms(row.brokers, evidence.snapshot.group_metrics)
