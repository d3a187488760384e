"""What a rule sees of a cluster: the objects whose condition is met, held, cleared or unknown."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, override

from console.frame import formats
from console.services.alarms.conditions import Condition, Seen
from console.services.alarms.models import AlarmRule, Source
from console.services.alarms.series import Series, Wanted
from console.services.findings.finding import Finding, Report, Severity
from console.services.findings.stored import Text, in_all_languages
from console.services.history.store import STORE_ERRORS

log = logging.getLogger(__name__)

#: Maximum number of objects of a rule with an open episode.
OBJECTS_PER_RULE_MAX: Final = 500
#: Units as words of a sentence.
UNITS: Final = {
    "messages": gettext_lazy("messages"),
    "clients": gettext_lazy("clients"),
    "msg/s": gettext_lazy("msg/s"),
}


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """An object of a cluster. `detail` is the rule of a finding."""

    kind: str
    name: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """An object whose value is known now."""

    key: ObjectKey
    seen: Seen
    severity: str
    value: float | None
    #: The problem, by language; empty unless the condition is met.
    text: Mapping[str, str]

    @property
    def sentence(self) -> str:
        """The problem in the language of the reader."""
        return str(Text(self.text))


@dataclass(frozen=True, slots=True)
class View:
    """The cluster now: samples and the report of the findings, None when there is none."""

    series: Series
    report: Report | None

    @classmethod
    def of(cls, home: Path, cluster: str, report: Report | None, now_ms: int) -> "View":
        return cls(Series(home, cluster, now_ms), report)


@dataclass(frozen=True, slots=True)
class Observed:
    """The objects with a known value; `unseen` is what an object without one is."""

    by_key: Mapping[ObjectKey, Observation]
    unseen: Seen
    #: Rules of the findings with parts that were not checked, or with findings left out.
    unsure: frozenset[str] = frozenset()

    def of(self, key: ObjectKey) -> Seen:
        known = self.by_key.get(key)
        if known is not None:
            return known.seen
        return Seen.UNKNOWN if key.detail in self.unsure else self.unseen

    @property
    def met(self) -> list[Observation]:
        return [each for each in self.by_key.values() if each.seen is Seen.MET]


def observe(rule: AlarmRule, view: View) -> Observed:
    """Return what the rule sees."""
    if rule.source == Source.FINDING:
        return _findings(rule, view.report)
    return Observed({each.key: each for each in _metrics(rule, view.series)}, Seen.UNKNOWN)


def _findings(rule: AlarmRule, report: Report | None) -> Observed:
    """A finding that a complete report lacks has cleared."""
    if report is None:
        return Observed({}, Seen.UNKNOWN)
    found = {}
    for each in report.findings:
        if _concerns(rule, each):
            key = ObjectKey(each.kind, each.target.name, each.rule)
            text = in_all_languages(each.text)
            found[key] = Observation(key, Seen.MET, rule.severity, None, text)
    unsure = frozenset(one.rule for one in report.checks if one.not_checked or one.left_out)
    return Observed(found, Seen.CLEAR, unsure)


def _concerns(rule: AlarmRule, finding: Finding) -> bool:
    return (
        rule.finding_rule in ("", finding.rule)
        and finding.severity.rank <= Severity(rule.finding_severity).rank
        and matches(rule.pattern, finding.target.name)
    )


def _metrics(rule: AlarmRule, series: Series) -> Iterator[Observation]:
    wanted = Wanted.of(rule.scope, rule.metric, rule.function, rule.window_s)
    if wanted is None:
        return
    try:
        values = series.values(wanted)
    except STORE_ERRORS:
        log.warning("the history cannot be read for alarms", exc_info=True)
        return
    condition = Condition(rule.comparison, rule.threshold, rule.clear_threshold)
    for name, value in values.items():
        if not matches(rule.pattern, name):
            continue
        seen = condition.seen(value)
        text = metric_text(rule, wanted, value) if seen is Seen.MET else {}
        key = ObjectKey(rule.scope, object_name(rule.scope, name))
        yield Observation(key, seen, rule.severity, value, text)


def matches(pattern: str, name: str) -> bool:
    """Return whether a name matches a pattern with `*` and `?`; an empty one matches all."""
    return not pattern or fnmatchcase(name, pattern)


def object_name(scope: str, name: str) -> str:
    """Return the name of an object as findings name it: a slave is `<broker>:<id>`."""
    return name.replace("#", ":", 1) if scope == "broker" else name


def metric_text(rule: AlarmRule, wanted: Wanted, value: float) -> dict[str, str]:
    """Return the sentence about a value, by language."""
    sentences = {}
    for language, _title in settings.LANGUAGES:
        with override(language):
            sentences[language] = _sentence(rule, wanted, value)
    return sentences


def _sentence(rule: AlarmRule, wanted: Wanted, value: float) -> str:
    unit = "%" if rule.function == "drop" else wanted.metric.unit
    sides: Mapping[str, Any] = {
        "metric": wanted.metric.label,
        "value": amount(value, unit),
        "threshold": amount(rule.threshold, unit),
        "window": formats.duration(rule.window_s * 1_000),
    }
    if rule.function == "growth":
        return (
            _("%(metric)s grew by %(value)s within %(window)s (threshold %(threshold)s).") % sides
        )
    if rule.function == "drop":
        return (
            _(
                "%(metric)s dropped by %(value)s below the average of %(window)s "
                "(threshold %(threshold)s)."
            )
            % sides
        )
    if rule.function == "average":
        return (
            _("%(metric)s: %(value)s on average of %(window)s (threshold %(threshold)s).") % sides
        )
    return _("%(metric)s: %(value)s (threshold %(threshold)s).") % sides


def amount(value: float, unit: str) -> str:
    """Return a value with its unit."""
    if unit == "ratio":
        return f"{value * 100:.1f} %"
    if unit == "%":
        return f"{value:.0f} %"
    if unit == "s":
        return formats.duration(value * 1_000)
    number = formats.number(round(value)) if abs(value) >= 10 else f"{value:g}"
    return f"{number} {UNITS.get(unit, unit)}"
