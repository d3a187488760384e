"""What a rule is, the evidence of all rules, and the evaluation of a list of rules."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from console.frame import formats
from console.frame.own_disks import OwnDisks
from console.gateway.health.members import GroupDiagnosis
from console.gateway.health.snapshot import Part, Snapshot
from console.services.findings.finding import (
    FINDINGS_PER_RULE_MAX,
    REASONS_MAX,
    Check,
    Finding,
    NotChecked,
    Severity,
)
from console.services.findings.samples import Samples
from console.services.findings.thresholds import Thresholds

Results = Iterator[Finding | NotChecked]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Input of the rules.

    `diagnoses` are the groups whose members were asked; `not_diagnosed` counts the groups that wait
    for their turn. `own_disks` are the console's.
    """

    snapshot: Snapshot
    samples: Samples
    thresholds: Thresholds
    diagnoses: Mapping[str, GroupDiagnosis]
    not_diagnosed: int = 0
    own_disks: OwnDisks = field(default_factory=OwnDisks)

    @property
    def now_ms(self) -> int:
        return self.snapshot.taken_ms


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: `title` is what the rule checks, as a sentence that is true without findings."""

    id: str
    title: Any
    check: Callable[[Evidence], Results]


def rule(rule_id: str, title: Any) -> Callable[[Callable[[Evidence], Results]], Rule]:
    """Make a generator a rule."""
    return lambda check: Rule(rule_id, title, check)


def evaluate(
    rules: Iterable[Rule], evidence: Evidence
) -> tuple[tuple[Finding, ...], tuple[Check, ...], Mapping[str, int]]:
    """Return the findings, at most FINDINGS_PER_RULE_MAX per rule, a check per rule, and the number
    of all findings by severity."""
    findings: list[Finding] = []
    counts = {severity.value: 0 for severity in Severity}
    checks = []
    for each in rules:
        results = list(each.check(evidence))
        found = [one for one in results if isinstance(one, Finding)]
        missing = dict.fromkeys(one for one in results if isinstance(one, NotChecked))
        for one in found:
            counts[one.severity] += 1
        findings += found[:FINDINGS_PER_RULE_MAX]
        left_out = max(0, len(found) - FINDINGS_PER_RULE_MAX)
        reasons = tuple(missing)[:REASONS_MAX]
        checks.append(Check(each.id, each.title, len(found), left_out, reasons))
    return tuple(findings), tuple(checks), counts


def gaps(*parts: Part[Any]) -> Iterator[NotChecked]:
    """Report each broker or name server whose share of the evidence is missing or old."""
    for part in parts:
        for failure in part.failures:
            yield NotChecked(failure.reason, failure.broker)


def stale_ms(brokers: Iterable[str], *parts: Part[Any]) -> int | None:
    """Return the time of the oldest evidence in place of an answer of these brokers."""
    names = frozenset(brokers)
    times = (
        failure.as_of_ms
        for part in parts
        for failure in part.failures
        if failure.broker in names and failure.as_of_ms is not None
    )
    return min(times, default=None)


def listing(names: Iterable[str], shown: int = 5) -> Any:
    """Join the first names; an ellipsis stands for the rest."""
    found = list(names)
    text = ", ".join(found[:shown])
    return f"{text}, …" if len(found) > shown else text


class Duration:
    """A duration for a lazy text: its units are translated when a page shows the text."""

    def __init__(self, ms: float) -> None:
        self._ms = max(1, ms)

    def __str__(self) -> str:
        return formats.duration(self._ms)
