"""The form of a rule."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from console.frame.forms import TablerForm
from console.gateway.messages.masks import EXPRESSION_CHARS_MAX
from console.services.masking.models import (
    KIND_TITLES,
    NAME_CHARS_MAX,
    NOTE_CHARS_MAX,
    TOPIC_CHARS_MAX,
    MaskingRule,
)
from console.services.masking.preview import SAMPLE_CHARS_MAX
from console.services.masking.rules import Draft


def _code(rows: int = 0) -> forms.Widget:
    attributes = {"autocomplete": "off", "spellcheck": "false", "class": "mono"}
    if rows:
        return forms.Textarea(attrs={**attributes, "rows": rows})
    return forms.TextInput(attrs=attributes)


class MaskingForm(TablerForm):
    """A rule, and what its preview reads."""

    name = forms.CharField(label=_("Name"), max_length=NAME_CHARS_MAX)
    topic = forms.CharField(
        label=_("Topics"),
        max_length=TOPIC_CHARS_MAX,
        widget=_code(),
        help_text=_(
            "A topic, or a pattern with “*”. Retry, dead-letter, delayed and half messages follow "
            "the original topic."
        ),
    )
    kind = forms.ChoiceField(label=_("What is masked"), choices=KIND_TITLES)
    expression = forms.CharField(
        label=_("Expression"),
        max_length=EXPRESSION_CHARS_MAX,
        required=False,
        widget=_code(),
        help_text=_(
            "JSON path: $.card.number, $.items[*].iban, or $..card at any depth. Regular "
            "expression: RE2; with groups, only the groups are masked. Property: a name, or a "
            "pattern with “*”."
        ),
    )
    note = forms.CharField(label=_("Note"), max_length=NOTE_CHARS_MAX, required=False)
    all_clusters = forms.BooleanField(label=_("In all clusters"), required=False)
    enabled = forms.BooleanField(label=_("Enabled"), required=False, initial=True)
    sample = forms.CharField(
        label=_("Sample body for the preview"),
        max_length=SAMPLE_CHARS_MAX,
        required=False,
        strip=False,
        widget=_code(4),
    )
    sample_topic = forms.CharField(
        label=_("Topic for the preview"),
        max_length=TOPIC_CHARS_MAX,
        required=False,
        widget=_code(),
    )

    def draft(self) -> Draft:
        given = self.cleaned_data
        names = ("name", "topic", "kind", "expression", "note", "enabled", "all_clusters")
        return Draft(**{name: given[name] for name in names})


def initial_of(rule: MaskingRule) -> dict[str, Any]:
    names = ("name", "topic", "kind", "expression", "note", "enabled")
    return {
        **{name: getattr(rule, name) for name in names},
        "all_clusters": not rule.cluster,
        "sample_topic": "" if "*" in rule.topic else rule.topic,
    }
