"""What is asked before dead letters are sent again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from console.forms import TablerForm
from console.gateway.resends import RESEND_MESSAGES_MAX, Target

ID_CHARS_MAX = 56


class ResendForm(TablerForm):
    """Which dead letters, and where to. The ids come from the check boxes of the list."""

    target = forms.ChoiceField(
        label=_("Send to"),
        choices=[
            (Target.RETRY, _("this group only (its retry topic)")),
            (Target.ORIGIN, _("every group (the topic it came from)")),
        ],
        initial=Target.RETRY,
        widget=forms.RadioSelect,
    )
    again = forms.BooleanField(label=_("Also what was sent before"), required=False, initial=False)

    def __init__(self, *args: Any, ids: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ids = list(dict.fromkeys(ids))

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.ids:
            raise forms.ValidationError(_("Select at least one dead letter."))
        if len(self.ids) > RESEND_MESSAGES_MAX:
            raise forms.ValidationError(
                _("At most %(most)d dead letters can be sent again at once."),
                params={"most": RESEND_MESSAGES_MAX},
            )
        if any(not each or len(each) > ID_CHARS_MAX for each in self.ids):
            raise forms.ValidationError(_("One of the ids is not a message id."))
        return cleaned
