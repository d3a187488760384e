"""Forms of the alarms' pages; `rules.py`, `receivers.py` and `silences.py` check the values."""

from typing import Any, Final

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.frame.forms import TablerForm
from console.services.alarms.models import (
    NAME_CHARS_MAX,
    NOTE_CHARS_MAX,
    OBJECT_CHARS_MAX,
    AlarmRule,
    Comparison,
    Function,
    Receiver,
    ReceiverKind,
    Source,
)
from console.services.alarms.observing import UNITS
from console.services.alarms.receivers import SECRET_CHARS_MAX, URL_CHARS_MAX, Draft
from console.services.alarms.rules import FOR_S_MAX, rules_of
from console.services.alarms.series import WINDOW_S_MAX
from console.services.alarms.titles import title_of
from console.services.findings.listing import KIND_TITLES, SEVERITIES
from console.services.findings.rules import RULES
from console.services.history.metrics import METRICS

SCOPE_TITLES: Final = {
    "cluster": _("Cluster"),
    "topic": _("Topic"),
    "group": _("Group"),
    "broker": _("Broker"),
}
KINDS: Final = {**KIND_TITLES, "cluster": _("Cluster")}
LANGUAGES: Final = [("en", "English"), ("zh-hans", "简体中文")]
DURATIONS: Final = [
    ("3600", _("1 hour")),
    ("14400", _("4 hours")),
    ("86400", _("1 day")),
    ("604800", _("7 days")),
    ("2592000", _("30 days")),
]


def metric_choices() -> list[tuple[str, Any]]:
    """Return the metrics as `scope.metric`, with unit."""
    return [
        (
            f"{each.scope}.{each.name}",
            format_lazy(
                _("{scope}: {label} ({unit})"),
                scope=SCOPE_TITLES[each.scope],
                label=each.label,
                unit=UNITS.get(each.unit, each.unit),
            ),
        )
        for each in METRICS
    ]


class RuleForm(TablerForm):
    """A rule. The fields of the source that is not selected are ignored."""

    name = forms.CharField(label=_("Name"), max_length=NAME_CHARS_MAX)
    severity = forms.ChoiceField(label=_("Severity"), choices=list(SEVERITIES.items()))
    source = forms.ChoiceField(label=_("Source"), choices=Source.choices)
    metric = forms.ChoiceField(label=_("Metric"), choices=metric_choices, required=False)
    function = forms.ChoiceField(label=_("Function"), choices=Function.choices, required=False)
    window_s = forms.IntegerField(
        label=_("Window, seconds"),
        min_value=60,
        max_value=WINDOW_S_MAX,
        required=False,
        help_text=_("For average, growth and drop."),
    )
    comparison = forms.ChoiceField(
        label=_("Comparison"), choices=Comparison.choices, required=False
    )
    threshold = forms.FloatField(
        label=_("Threshold"),
        required=False,
        help_text=_("In the unit of the metric; a ratio of 0.85 is 85 %."),
    )
    clear_threshold = forms.FloatField(
        label=_("Resolves at"),
        required=False,
        help_text=_("Empty: at the threshold. Another value prevents flapping."),
    )
    finding_rule = forms.ChoiceField(
        label=_("Rule of the findings"),
        choices=lambda: [("", _("all rules")), *((each.id, each.title) for each in RULES)],
        required=False,
    )
    finding_severity = forms.ChoiceField(
        label=_("Findings of at least"), choices=list(SEVERITIES.items()), required=False
    )
    pattern = forms.CharField(
        label=_("Objects"),
        max_length=OBJECT_CHARS_MAX,
        required=False,
        help_text=_("Names with * and ?, for example orders-*; empty: all."),
    )
    for_s = forms.IntegerField(
        label=_("Fires after, seconds"),
        min_value=0,
        max_value=FOR_S_MAX,
        help_text=_("The condition must be met for this time."),
    )
    clear_for_s = forms.IntegerField(
        label=_("Resolves after, seconds"),
        min_value=0,
        max_value=FOR_S_MAX,
        help_text=_("The condition must not be met for this time."),
    )
    receivers = forms.MultipleChoiceField(
        label=_("Receivers, beside those of all rules"),
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )
    note = forms.CharField(
        label=_("Note in each notice"),
        max_length=NOTE_CHARS_MAX,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    all_clusters = forms.BooleanField(label=_("For all clusters"), required=False)
    enabled = forms.BooleanField(label=_("Enabled"), required=False)

    #: Fields of one source.
    METRIC: Final = (
        *("metric", "function", "window_s", "comparison", "threshold", "clear_threshold"),
    )
    FINDING: Final = ("finding_rule", "finding_severity")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["receivers"]
        assert isinstance(field, forms.MultipleChoiceField)
        rows = Receiver.objects.order_by("name")
        field.choices = [(str(each.pk), each.name) for each in rows]
        if not rows:
            del self.fields["receivers"]

    @property
    def head_fields(self) -> list[Any]:
        return [self[name] for name in ("name", "severity", "source")]

    @property
    def metric_fields(self) -> list[Any]:
        return [self[name] for name in self.METRIC]

    @property
    def finding_fields(self) -> list[Any]:
        return [self[name] for name in self.FINDING]

    @property
    def tail_fields(self) -> list[Any]:
        used = {"name", "severity", "source", *self.METRIC, *self.FINDING}
        return [self[name] for name in self.fields if name not in used]

    def values(self, cluster: str) -> dict[str, Any]:
        """Return the values of the rule, for `rules.save`."""
        given = dict(self.cleaned_data)
        given.pop("receivers", None)
        scope, _dot, metric = given.pop("metric").partition(".")
        given |= {"scope": scope, "metric": metric}
        given["cluster"] = "" if given.pop("all_clusters") else cluster
        given["window_s"] = given["window_s"] or 300
        given["threshold"] = given["threshold"] or 0.0
        given["function"] = given["function"] or Function.LAST
        given["comparison"] = given["comparison"] or Comparison.ABOVE
        given["finding_severity"] = given["finding_severity"] or "warning"
        return given

    def chosen_receivers(self) -> list[Receiver]:
        return list(Receiver.objects.filter(pk__in=self.cleaned_data.get("receivers", [])))


def initial_of(rule: AlarmRule) -> dict[str, Any]:
    """Return a rule as initial values of the form."""
    columns = {field.name for field in AlarmRule._meta.concrete_fields}
    values = {name: getattr(rule, name) for name in columns & RuleForm.base_fields.keys()}
    return values | {
        "name": title_of(rule),
        "metric": f"{rule.scope}.{rule.metric}",
        "receivers": [str(each.pk) for each in rule.receivers.all()] if rule.pk else [],
        "all_clusters": not rule.cluster,
    }


class ReceiverForm(TablerForm):
    """A receiver. Empty URL and secret of a stored receiver: unchanged."""

    name = forms.CharField(label=_("Name"), max_length=NAME_CHARS_MAX)
    kind = forms.ChoiceField(label=_("Kind"), choices=ReceiverKind.choices)
    url = forms.CharField(
        label=_("URL"),
        max_length=URL_CHARS_MAX,
        required=False,
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "data-private": ""}
        ),
        help_text=_("Of a webhook or chat robot; stored encrypted and not shown again."),
    )
    secret = forms.CharField(
        label=_("Secret"),
        max_length=SECRET_CHARS_MAX,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Signs the requests of webhooks and DingTalk; stored encrypted."),
    )
    recipients = forms.CharField(
        label=_("Mail addresses"),
        max_length=4_000,
        required=False,
        help_text=_("Of the kind Mail; separated by commas."),
    )
    language = forms.ChoiceField(label=_("Language"), choices=LANGUAGES)
    all_rules = forms.BooleanField(label=_("Gets the notices of every rule"), required=False)
    enabled = forms.BooleanField(label=_("Enabled"), required=False)

    def draft(self) -> Draft:
        given = dict(self.cleaned_data)
        given["url"] = given["url"] or None
        given["secret"] = given["secret"] or None
        return Draft(**given)


class SilenceForm(TablerForm):
    """A silence that begins now."""

    rule = forms.ChoiceField(label=_("Rule"), required=False)
    kind = forms.ChoiceField(
        label=_("Kind of object"),
        choices=lambda: [("", _("all kinds")), *KINDS.items()],
        required=False,
    )
    pattern = forms.CharField(
        label=_("Objects"),
        max_length=OBJECT_CHARS_MAX,
        required=False,
        help_text=_("Names with * and ?; empty: all."),
    )
    duration_s = forms.ChoiceField(label=_("Duration"), choices=DURATIONS)
    reason = forms.CharField(label=_("Reason"), max_length=NOTE_CHARS_MAX)
    all_clusters = forms.BooleanField(label=_("For all clusters"), required=False)

    def __init__(self, cluster: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["rule"]
        assert isinstance(field, forms.ChoiceField)
        rows = rules_of(cluster)
        field.choices = [("", _("all rules")), *((str(each.pk), title_of(each)) for each in rows)]
        self.cluster = cluster

    def values(self) -> dict[str, Any]:
        """Return the values for `silences.create`."""
        given = dict(self.cleaned_data)
        rule = AlarmRule.objects.filter(pk=given["rule"]).first() if given["rule"] else None
        cluster = "" if given.pop("all_clusters") else self.cluster
        return {**given, "rule": rule, "cluster": cluster, "duration_s": int(given["duration_s"])}


class AcknowledgeForm(TablerForm):
    note = forms.CharField(label=_("Note"), max_length=NOTE_CHARS_MAX, required=False)
