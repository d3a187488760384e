"""What can be asked about messages, as it stands in the address of the page."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from console.forms import TablerForm

SEARCH_CHARS_MAX = 255
TOPIC_CHARS_MAX = 255
_MOMENTS = ["%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"]


class MomentField(forms.DateTimeField):
    """A time in the console's zone; cleaned to milliseconds since the epoch, or None."""

    widget = forms.DateTimeInput(
        format="%Y-%m-%dT%H:%M:%S", attrs={"type": "datetime-local", "step": "1"}
    )
    input_formats = _MOMENTS

    def clean(self, value: Any) -> int | None:
        moment = super().clean(value)
        return None if moment is None else int(moment.timestamp() * 1000)


class BrowseForm(TablerForm):
    """Messages of a topic, within a time or all of them."""

    topic = forms.CharField(label=_("Topic"), max_length=TOPIC_CHARS_MAX)
    begin = MomentField(label=_("From"), required=False)
    end = MomentField(label=_("To"), required=False)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        begin, end = cleaned.get("begin"), cleaned.get("end")
        if begin is not None and end is not None and begin > end:
            self.add_error("end", _("The end lies before the beginning."))
        return cleaned


class FindForm(TablerForm):
    """One message by whatever is known of it."""

    q = forms.CharField(
        label=_("Id or key"),
        max_length=SEARCH_CHARS_MAX,
        help_text=_("A message id, an offset message id or a key, from a log or a client."),
    )
    topic = forms.CharField(
        label=_("Topic"),
        max_length=TOPIC_CHARS_MAX,
        required=False,
        help_text=_("Without it, every topic is looked through."),
    )
