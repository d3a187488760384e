"""Rules about the pace of groups: lag that grows although clients consume, frequent rebalances."""

from itertools import pairwise

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.frame import formats
from console.gateway.health.members import GroupDiagnosis
from console.services.findings.finding import Finding, NotChecked, Severity, Target
from console.services.findings.rules.groups import measured_groups, unmeasured
from console.services.findings.rules.members import undiagnosed
from console.services.findings.rules.rule import Duration, Evidence, Results, rule

#: Window of the growth of the lag and of the counted rebalances, ms.
WINDOW_MS = 600_000
#: Minimum distance of two lags that are compared, ms.
GROWTH_MIN_MS = 120_000
#: A consumer is slow when the lag has at least this many messages, and grew by SLOW_RATIO.
SLOW_LAG_MIN = 1_000
SLOW_RATIO = 1.2
#: Number of changes of the owners within WINDOW_MS that is no longer a start or stop of clients.
REBALANCES_MIN = 4


@rule("consumer-slow", _("Consumers keep up with producers"))
def consumer_slow(evidence: Evidence) -> Results:
    """A group with clients whose lag grows while the clients consume: the listener is slower than
    the producers. A group without progress is a case for `queue-stuck`."""
    yield from unmeasured(evidence)
    before = evidence.samples.within(evidence.now_ms, WINDOW_MS)
    passed_ms = 0 if before is None else evidence.now_ms - before.at_ms
    first = 0
    for row, metrics, _at_ms in measured_groups(evidence.snapshot):
        lag = metrics.lag or 0
        is_consuming = bool(metrics.clients and metrics.rate) and not metrics.broadcasting
        if not is_consuming or lag < SLOW_LAG_MIN:
            continue
        earlier = None if before is None or passed_ms < GROWTH_MIN_MS else before.lag(row.name)
        if earlier is None:
            first += 1
            continue
        if lag < earlier * SLOW_RATIO:
            continue
        growth = (lag - earlier) / (passed_ms / 1000)
        yield Finding(
            "consumer-slow",
            Severity.WARNING,
            Target("group", row.name),
            format_lazy(
                _(
                    "The lag grew from {earlier} to {lag} within {time}, while the group consumes "
                    "{rate} messages per second."
                ),
                earlier=formats.number(earlier),
                lag=formats.number(lag),
                time=Duration(passed_ms),
                rate=formats.rate(metrics.rate),
            ),
            _(
                "Add consumers up to the number of queues, or make the listener faster: the page "
                "of a client has its consume latency and a thread dump."
            ),
            {
                "lag": lag,
                "earlier_lag": earlier,
                "window_s": passed_ms / 1000,
                "growth_per_s": round(growth, 1),
                "rate": metrics.rate,
                "clients": metrics.clients,
            },
            related=tuple(Target("topic", name) for name in metrics.topics),
        )
    if first:
        reason = _("Groups with lag: {count}. The check compares two samples, {time} apart.")
        yield NotChecked(format_lazy(reason, count=first, time=Duration(GROWTH_MIN_MS)))


@rule("rebalance-storm", _("Queues keep their clients"))
def rebalance_storm(evidence: Evidence) -> Results:
    """A group whose queues change their clients again and again: clients lose their connection, or
    restart, and messages are consumed twice at each change."""
    yield from undiagnosed(evidence)
    seen = evidence.samples.since(evidence.now_ms - WINDOW_MS)
    for name in sorted(evidence.diagnoses):
        each = evidence.diagnoses[name]
        now = owners_digest(each)
        if each.broadcasting or now is None:
            continue
        states = [sample.owners[name] for sample in seen if name in sample.owners]
        changes = sum(one != other for one, other in pairwise([*states, now]))
        if changes < REBALANCES_MIN:
            continue
        first_ms = next(sample.at_ms for sample in seen if name in sample.owners)
        minutes = max(1.0, (each.taken_ms - first_ms) / 60_000)
        yield Finding(
            "rebalance-storm",
            Severity.WARNING,
            Target("group", name),
            format_lazy(
                _("The queues changed their clients at least {count} times within {time}."),
                count=changes,
                time=Duration(each.taken_ms - first_ms),
            ),
            _(
                "Look for clients that restart, lose their connection or pause for long: each "
                "change stops the consumption and repeats uncommitted messages."
            ),
            {"changes": changes, "per_minute": round(changes / minutes, 2)},
        )


def owners_digest(diagnosis: GroupDiagnosis) -> int | None:
    """A value that is equal while the queues keep their clients; None when a client is silent.

    Comparable in one process only, as the samples are.
    """
    if diagnosis.not_asked or any(member.queues is None for member in diagnosis.members):
        return None
    return hash(
        frozenset(
            (queue, member.client_id)
            for member in diagnosis.members
            for queue in member.queues or ()
        )
    )
