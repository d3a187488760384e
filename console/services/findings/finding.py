"""Findings and reports. Texts are lazy translations: readers of all languages share a report.

The `key` of a finding is stable over evaluations: `<rule>/<kind of object>/<name of object>`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal

#: Kinds of objects. `setting` is a key of the brokers' settings, `console` this console.
ObjectKind = Literal["group", "topic", "broker", "name-server", "controller", "setting", "console"]
KINDS: tuple[ObjectKind, ...] = (
    *("group", "topic", "broker", "name-server", "controller", "setting", "console"),
)
#: Maximum number of findings of one rule in a report; the rest is counted.
FINDINGS_PER_RULE_MAX = 200
#: Maximum number of reasons of one rule in a report.
REASONS_MAX = 20


class Severity(StrEnum):
    """`critical`: messages are not delivered, a broker is down, or no failover is possible.
    `warning`: will become so without action. `advice`: a risk; a cluster with advice only is
    healthy."""

    CRITICAL = "critical"
    WARNING = "warning"
    ADVICE = "advice"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class Verdict(StrEnum):
    """The worst severity; without findings, whether all rules were checked."""

    CRITICAL = "critical"
    WARNING = "warning"
    NOT_CHECKED = "not-checked"
    HEALTHY = "healthy"


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """An object of the cluster."""

    kind: ObjectKind
    name: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of one object.

    `values` are the evidence, with units in the names. `since_ms` is the start of the problem where
    the cluster reports one; None: unknown. `as_of_ms` is the time of the evidence when the broker
    does not answer and the evidence is its last one. `related` objects show the finding too.
    """

    rule: str
    severity: Severity
    target: Target
    text: Any
    advice: Any
    values: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    since_ms: int | None = None
    as_of_ms: int | None = None
    related: tuple[Target, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.rule}/{self.target.kind}/{self.target.name}"

    @property
    def name(self) -> str:
        """The unique name for lists and cursors."""
        return self.key

    @property
    def kind(self) -> ObjectKind:
        return self.target.kind

    def concerns(self, target: Target) -> bool:
        return target == self.target or target in self.related


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A part of a rule that could not be checked; `where` names a broker, or is empty."""

    reason: Any
    where: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one rule: findings, findings beyond the maximum, and what was not checked."""

    rule: str
    title: Any
    findings: int
    left_out: int
    not_checked: tuple[NotChecked, ...]

    @property
    def state(self) -> Literal["findings", "not-checked", "passed"]:
        if self.findings:
            return "findings"
        return "not-checked" if self.not_checked else "passed"


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a cluster at `taken_ms`, worst first, and the result of each rule."""

    taken_ms: int
    took_ms: int
    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]
    #: The number of findings by severity, also of those beyond the maximum of a rule.
    counts: Mapping[str, int]

    @property
    def verdict(self) -> Verdict:
        if self.counts[Severity.CRITICAL]:
            return Verdict.CRITICAL
        if self.counts[Severity.WARNING]:
            return Verdict.WARNING
        return Verdict.NOT_CHECKED if self.not_checked else Verdict.HEALTHY

    @property
    def not_checked(self) -> tuple[Check, ...]:
        """The rules that could not be checked, or not on all objects."""
        return tuple(check for check in self.checks if check.not_checked)

    @property
    def left_out(self) -> int:
        return sum(check.left_out for check in self.checks)

    def of(self, target: Target) -> tuple[Finding, ...]:
        """Return the findings that concern an object, worst first."""
        return tuple(finding for finding in self.findings if finding.concerns(target))


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings worst first, then in order of key."""
    return tuple(sorted(findings, key=lambda each: (each.severity.rank, each.key)))
