"""The filter form of delayed messages."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from console.areas.messages.forms import (
    SEARCH_CHARS_MAX,
    TOPIC_CHARS_MAX,
    MomentField,
    code_field,
)
from console.frame.forms import TablerForm
from console.gateway.pending.delayed import DelayFilter
from core_broker.message.delays import LEVELS_MAX


class DelayedForm(TablerForm):
    topic = forms.CharField(
        label=_("Topic"),
        max_length=TOPIC_CHARS_MAX,
        required=False,
        widget=code_field(**{"list": "topics", "data-focus": "/"}),
    )
    q = forms.CharField(
        label=_("Message ID or key"),
        max_length=SEARCH_CHARS_MAX,
        required=False,
        widget=code_field(),
    )
    kind = forms.ChoiceField(
        label=_("Kind"),
        required=False,
        choices=[
            ("", _("all")),
            ("sends", _("delayed sends")),
            ("retries", _("retries of groups")),
        ],
    )
    due_from = MomentField(label=_("Due from"), required=False)
    due_to = MomentField(label=_("Due to"), required=False)
    level = forms.IntegerField(
        required=False, min_value=1, max_value=LEVELS_MAX, widget=forms.HiddenInput
    )

    @property
    def filter(self) -> DelayFilter:
        """The filter of the valid fields."""
        fields: dict[str, Any] = getattr(self, "cleaned_data", {})
        return DelayFilter(
            fields.get("topic") or "",
            fields.get("q") or "",
            fields.get("level"),
            fields.get("due_from"),
            fields.get("due_to"),
            {"sends": False, "retries": True}.get(fields.get("kind") or ""),
        )
