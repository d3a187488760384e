"""Columns, filters and links of the list of findings, shared by page and API."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from console.frame.formats import size
from console.frame.tables import Column, Columns
from console.services.findings.finding import Finding, Severity, Target, Verdict

#: Decimals of a fraction in the evidence, such as hours until a disk is full.
FRACTION_DIGITS: Final = 3
SEVERITIES: Mapping[str, Any] = {
    Severity.CRITICAL: _("critical"),
    Severity.WARNING: _("warning"),
    Severity.ADVICE: _("advice"),
}
KIND_TITLES: Mapping[str, Any] = {
    "group": _("Group"),
    "topic": _("Topic"),
    "broker": _("Broker"),
    "name-server": _("Name server"),
    "controller": _("Controller"),
    "setting": _("Setting"),
    "console": _("Console"),
}
VERDICTS: Mapping[str, Any] = {
    Verdict.CRITICAL: _("Critical"),
    Verdict.WARNING: _("Warnings"),
    Verdict.NOT_CHECKED: _("No problem found, but not everything was checked"),
    Verdict.HEALTHY: _("Healthy"),
}
#: Rules whose remedy is on another page than the page of the object: URL name and parameter.
REMEDIES: Mapping[str, tuple[str, str]] = {
    "dead-letters-growing": ("deadletters:group", "group"),
    "replica-set-without-master": ("replicas:set", "broker"),
}
PAGES: Mapping[str, tuple[str, str]] = {
    "group": ("groups:detail", "group"),
    "topic": ("topics:detail", "topic"),
}

COLUMNS: Columns[Finding] = Columns(
    Column("severity", _("Severity"), lambda finding: finding.severity.rank),
    Column("rule", _("Rule"), lambda finding: finding.rule),
    Column("kind", _("Kind"), lambda finding: finding.kind),
    Column("name", _("Object"), lambda finding: finding.key),
    Column("since_ms", _("Since"), lambda finding: finding.since_ms),
)


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter chip: the value, its label and the number of findings."""

    value: str
    label: Any
    count: int


def passing(
    findings: Iterable[Finding],
    *,
    severity: str = "",
    kind: str = "",
    rule: str = "",
    target: str = "",
) -> list[Finding]:
    """Return the findings of a severity, kind of object, rule and object; "" stands for all."""
    return [
        each
        for each in findings
        if severity in ("", each.severity)
        and kind in ("", each.kind)
        and rule in ("", each.rule)
        and target in ("", each.target.name)
    ]


def severity_chips(findings: Sequence[Finding]) -> list[Chip]:
    return [
        Chip(value, label, sum(each.severity == value for each in findings))
        for value, label in SEVERITIES.items()
    ]


def kind_chips(findings: Sequence[Finding]) -> list[Chip]:
    return [
        Chip(value, label, sum(each.kind == value for each in findings))
        for value, label in KIND_TITLES.items()
    ]


def page_of(cluster: str, target: Target) -> str:
    """Return the URL of the page of an object."""
    if target.kind in PAGES:
        name, parameter = PAGES[target.kind]
        return reverse(name, kwargs={"cluster": cluster, parameter: target.name})
    if target.kind == "broker":
        # A slave is `<name>:<broker id>`.
        name, colon, number = target.name.rpartition(":")
        is_slave = bool(colon) and number.isdecimal()
        broker = name if is_slave else target.name
        url = reverse("clusters:broker", kwargs={"cluster": cluster, "broker": broker})
        return f"{url}?{urlencode({'id': number})}" if is_slave else url
    if target.kind == "console":
        return reverse("clusters:overview", kwargs={"cluster": cluster})
    if target.kind == "controller":
        return reverse("replicas:list", kwargs={"cluster": cluster})
    if target.kind == "setting":
        url = reverse("clusters:settings", kwargs={"cluster": cluster})
        return f"{url}?{urlencode({'q': target.name})}"
    return reverse("clusters:name-servers", kwargs={"cluster": cluster})


def link_of(cluster: str, finding: Finding) -> str:
    """Return the URL of the page where an operator acts on the finding."""
    remedy = REMEDIES.get(finding.rule)
    if remedy is None:
        return page_of(cluster, finding.target)
    name, parameter = remedy
    return reverse(name, kwargs={"cluster": cluster, parameter: finding.target.name})


def evidence_of(finding: Finding) -> list[tuple[str, str]]:
    """Return the evidence as texts: names with commas, bytes with units, fractions with
    FRACTION_DIGITS, other lists and tables as JSON."""
    return [(name, _shown(name, value)) for name, value in finding.values.items()]


def _shown(name: str, value: Any) -> str:
    if name.endswith("_bytes") and isinstance(value, int):
        return size(value)
    if isinstance(value, float):
        # A value that rounds to 0 keeps its significant digits: it is not 0.
        rounded = round(value, FRACTION_DIGITS)
        return str(rounded) if rounded or not value else f"{value:.{FRACTION_DIGITS}g}"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
