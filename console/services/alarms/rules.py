"""Rules of alarms: validation and changes, shared by pages and REST requests; preview."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.frame.formats import duration
from console.frame.versions import locked, version_of
from console.gateway import Cluster, NotAllowedNow, NotFound, now_ms
from console.gateway.changes import check_unchanged
from console.services.alarms.evaluation import end_all
from console.services.alarms.feed import announce
from console.services.alarms.models import AlarmRule, Function, Receiver, Source
from console.services.alarms.observing import Observation, View, amount, observe
from console.services.alarms.series import WINDOW_S_MAX
from console.services.alarms.titles import default_name
from console.services.findings.listing import SEVERITIES
from console.services.findings.reports import latest_report
from console.services.findings.rules import RULES
from console.services.history.metrics import BY_NAME

RULES_MAX: Final = 200
#: Longest `for` and `clear for`, seconds.
FOR_S_MAX: Final = 24 * 3600
WINDOW_S_MIN: Final = 60
THRESHOLD_MAX: Final = 1e15
#: Maximum number of objects in a preview.
PREVIEW_MAX: Final = 50
#: Fields that decide what a rule sees: after a change, the open episodes of the rule end.
CONDITION: Final = (
    *("source", "cluster", "pattern", "scope", "metric", "function", "window_s", "comparison"),
    *("threshold", "clear_threshold", "finding_rule", "finding_severity"),
)
FIELDS: Final = (*CONDITION, "name", "enabled", "for_s", "clear_for_s", "severity", "note")
GONE: Final = gettext_lazy("There is no such rule for this cluster.")
FINDING_RULES: Final = tuple(rule.id for rule in RULES)
#: What a function compares with the threshold.
OF_WINDOW: Final[Mapping[str, Any]] = {
    Function.AVERAGE: gettext_lazy("%(metric)s: average of %(window)s"),
    Function.GROWTH: gettext_lazy("%(metric)s: growth within %(window)s"),
    Function.DROP: gettext_lazy("%(metric)s: drop below the average of %(window)s"),
}


def rules_of(cluster: str) -> list[AlarmRule]:
    """Return the rules that apply to a cluster, by name."""
    rules = AlarmRule.objects.filter(cluster__in=["", cluster])
    return list(rules.prefetch_related("receivers").order_by("name"))


def rule_numbered(cluster: str, number: int) -> AlarmRule:
    found = AlarmRule.objects.filter(cluster__in=["", cluster], pk=number).first()
    if found is None:
        raise NotFound(GONE)
    return found


def checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a rule; fields of the other source are reset. Raises ValidationError."""
    found = {**{name: getattr(AlarmRule(), name) for name in FIELDS}, **values}
    problems: dict[str, str] = {}
    if found["source"] == Source.METRIC:
        _check_metric(found, problems)
        found |= {"finding_rule": "", "finding_severity": "warning"}
    else:
        if found["finding_rule"] not in ("", *FINDING_RULES):
            problems["finding_rule"] = _("There is no such rule of the findings.")
        found |= {"scope": "", "metric": "", "function": Function.LAST, "window_s": 300}
        found |= {"comparison": "above", "threshold": 0.0, "clear_threshold": None}
    if found["cluster"] not in ("", *settings.CONSOLE_CLUSTERS):
        problems["cluster"] = _("This console does not know the cluster.")
    if problems:
        raise ValidationError(problems)
    return found


def _check_metric(found: Mapping[str, Any], problems: dict[str, str]) -> None:
    if (found["scope"], found["metric"]) not in BY_NAME:
        problems["metric"] = _("Select a metric.")
    if not WINDOW_S_MIN <= found["window_s"] <= WINDOW_S_MAX:
        problems["window_s"] = _("The window must have 60 to 3600 seconds.")
    for name in ("threshold", "clear_threshold"):
        value = found[name]
        if value is not None and (not math.isfinite(value) or abs(value) > THRESHOLD_MAX):
            problems[name] = _("The number is too large.")
    clear, threshold = found["clear_threshold"], found["threshold"]
    if clear is not None and "threshold" not in problems:
        is_above = found["comparison"] == "above"
        if (clear > threshold) if is_above else (clear < threshold):
            problems["clear_threshold"] = _(
                "The value at which the alarm resolves is on the side of the alarm."
            )


def version(rule: AlarmRule) -> str:
    """Return the version of a rule for forms and as ETag."""
    return version_of(state_of(rule))


def save(
    rule: AlarmRule | None,
    values: Mapping[str, Any],
    receivers: Sequence[Receiver],
    user: Any,
    expected: str | None = None,
) -> AlarmRule:
    """Create or change a rule. Open episodes of a changed condition end with a resolved notice.

    Raises ValidationError for values, NotAllowedNow beyond RULES_MAX, PreconditionFailed when the
    rule has another version than `expected`.
    """
    found = checked(values)
    with transaction.atomic():
        if rule is None and AlarmRule.objects.count() >= RULES_MAX:
            text = gettext_lazy("At most {most} rules are possible.")
            raise NotAllowedNow(format_lazy(text, most=RULES_MAX))
        same_name = AlarmRule.objects.filter(name=found["name"]).exclude(
            pk=0 if rule is None else rule.pk
        )
        if same_name.exists():
            raise ValidationError({"name": _("Another rule has this name.")})
        row = AlarmRule() if rule is None else locked(rule, GONE)
        if rule is not None:
            check_unchanged(expected, version(row))
            is_other = any(getattr(row, name) != found[name] for name in CONDITION)
            if is_other or not found["enabled"]:
                end_all(row, now_ms(), "rule-changed" if found["enabled"] else "rule-off")
        for name in FIELDS:
            setattr(row, name, found[name])
        if row.default_key and row.name != default_name(row):
            row.default_key = ""
        row.changed_ms, row.changed_by = now_ms(), str(user)
        _store(row)
        row.receivers.set(receivers)
        announce(row.cluster, "rules")
    return row


def _store(row: AlarmRule) -> None:
    """Raises ValidationError when another request has stored the name since the check."""
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise ValidationError({"name": _("Another rule has this name.")}) from None


def switch(rule: AlarmRule, user: Any, *, on: bool) -> None:
    """Switch a rule on or off; off ends its open episodes."""
    with transaction.atomic():
        row = locked(rule, GONE)
        if not on:
            end_all(row, now_ms(), "rule-off")
        AlarmRule.objects.filter(pk=rule.pk).update(
            enabled=on, changed_ms=now_ms(), changed_by=str(user), left_out=0
        )
        announce(rule.cluster, "rules")


def delete(rule: AlarmRule, expected: str | None = None) -> None:
    """Delete a rule; its open episodes end with a resolved notice.

    Raises PreconditionFailed when the rule has another version than `expected`.
    """
    with transaction.atomic():
        row = locked(rule, GONE)
        check_unchanged(expected, version(row))
        end_all(row, now_ms(), "rule-deleted")
        row.delete()
        announce(rule.cluster, "rules")


def state_of(rule: AlarmRule) -> dict[str, Any]:
    """Return the values of a rule, for the audit log and forms."""
    return {name: getattr(rule, name) for name in FIELDS} | {
        "receivers": sorted(each.name for each in rule.receivers.all())
    }


@dataclass(frozen=True, slots=True)
class Preview:
    """The objects that meet the condition of a rule now, and how many objects have a value."""

    met: tuple[Observation, ...]
    total: int
    observed: int
    #: False: no evaluation of the findings, or no samples, in the last minute.
    has_data: bool


def preview(cluster: Cluster, values: Mapping[str, Any]) -> Preview:
    """Return what a rule sees now, without changes. Raises ValidationError."""
    rule = AlarmRule(**{name: value for name, value in checked(values).items() if name in FIELDS})
    report = latest_report(cluster) if rule.source == Source.FINDING else None
    observed = observe(rule, View.of(settings.GANTRY_HOME, cluster.name, report, now_ms()))
    met = sorted(observed.met, key=lambda each: (-(each.value or 0), each.key))
    has_data = report is not None if rule.source == Source.FINDING else bool(observed.by_key)
    return Preview(tuple(met[:PREVIEW_MAX]), len(met), len(observed.by_key), has_data)


def summary_of(rule: AlarmRule) -> str:
    """Return the condition of a rule as a sentence."""
    if rule.source == Source.FINDING:
        severity = SEVERITIES[rule.finding_severity]
        which = rule.finding_rule or _("all rules")
        return _("Findings of at least %(severity)s: %(which)s") % {
            "severity": severity,
            "which": which,
        }
    metric = BY_NAME.get((rule.scope, rule.metric))  # type: ignore[arg-type]
    if metric is None:
        return f"{rule.scope} {rule.metric}"
    unit = "%" if rule.function == Function.DROP else metric.unit
    measured = OF_WINDOW.get(rule.function, "%(metric)s") % {
        "metric": metric.label,
        "window": duration(rule.window_s * 1000),
    }
    sign = ">" if rule.comparison == "above" else "<"
    return f"{measured} {sign} {amount(rule.threshold, unit)}"
