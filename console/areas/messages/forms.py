"""Forms of message searches. The page address holds the field values."""

from datetime import timedelta
from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.frame.forms import TablerForm, name_zone
from console.gateway import now_ms
from console.gateway.messages.filters import (
    BODY_CHARS_MAX,
    SQL_CHARS_MAX,
    TAGS_CHARS_MAX,
    BodyTest,
    FilterError,
    MessageFilter,
)

SEARCH_CHARS_MAX = 255
#: Rates of a live tail, rows per second.
RATES = (20, 100, 500)
RATE = 100
TOPIC_CHARS_MAX = 255
QUEUE_CHARS_MAX = 300
_MOMENTS = ["%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"]


#: Time ranges that end now, offered as chips.
SPANS = {
    "5m": timedelta(minutes=5),
    "1h": timedelta(hours=1),
    "1d": timedelta(days=1),
}


class MomentField(forms.DateTimeField):
    """A time in the console's zone; cleaned to milliseconds since the epoch, or None."""

    widget = forms.DateTimeInput(
        format="%Y-%m-%dT%H:%M:%S", attrs={"type": "datetime-local", "step": "1"}
    )
    input_formats = _MOMENTS

    def clean(self, value: Any) -> int | None:
        moment = super().clean(value)
        return None if moment is None else int(moment.timestamp() * 1000)


def code_field(**attrs: Any) -> forms.TextInput:
    """A text field for names and expressions, without spell check and completion by the browser."""
    return forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", **attrs})


class FilterForm(TablerForm):
    """Which messages of a topic pass. The names are those of addresses and of the API."""

    topic = forms.CharField(
        label=_("Topic"),
        max_length=TOPIC_CHARS_MAX,
        widget=code_field(**{"list": "topics", "data-focus": "/"}),
    )
    queue = forms.CharField(
        label=_("Queue"),
        max_length=QUEUE_CHARS_MAX,
        required=False,
        widget=code_field(list="queues", placeholder=_("all, or broker-a:3")),
    )
    tags = forms.CharField(
        label=_("Tag"),
        max_length=TAGS_CHARS_MAX,
        required=False,
        widget=code_field(placeholder="paid || refunded"),
    )
    sql = forms.CharField(
        label=_("SQL92 over properties"),
        max_length=SQL_CHARS_MAX,
        required=False,
        widget=code_field(placeholder="region = 'eu' AND amount > 100"),
    )
    body_test = forms.ChoiceField(
        label=_("Body"),
        required=False,
        choices=[
            (BodyTest.TEXT.value, _("contains")),
            (BodyTest.REGEX.value, _("matches (RE2)")),
            (BodyTest.JSON.value, _("JSON path")),
        ],
    )
    body = forms.CharField(
        label=_("Text, expression or path"),
        max_length=BODY_CHARS_MAX,
        required=False,
        widget=code_field(placeholder="$.order.total > 100"),
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        message_filter = MessageFilter(
            cleaned.get("tags", ""),
            cleaned.get("sql", ""),
            cleaned.get("body", ""),
            BodyTest(cleaned.get("body_test") or BodyTest.TEXT),
        )
        try:
            message_filter.compiled()
        except FilterError as wrong:
            self.add_error(wrong.field, wrong.detail)
        cleaned["filter"] = message_filter
        return cleaned


class BrowseForm(FilterForm):
    """Messages of a topic: recent messages, messages of a time range, or all messages."""

    begin = MomentField(label=_("From"), required=False)
    end = MomentField(label=_("To"), required=False)
    last = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("begin", "end"):
            name_zone(self.fields[name])

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        begin, end = cleaned.get("begin"), cleaned.get("end")
        if begin is not None and end is not None and begin > end:
            self.add_error("end", _("The end is before the start."))
        span = SPANS.get(cleaned.get("last", ""))
        if begin is None and end is None and span is not None:
            cleaned["begin"] = now_ms() - span // timedelta(milliseconds=1)
        return cleaned


class TailForm(FilterForm):
    """Topic, filter and row rate of a live tail."""

    rate = forms.TypedChoiceField(
        label=_("Rate limit"),
        choices=[(rate, format_lazy(_("{rate} msg/s"), rate=rate)) for rate in RATES],
        coerce=int,
        required=False,
    )

    def clean_rate(self) -> int:
        return self.cleaned_data["rate"] or RATE


class FindForm(TablerForm):
    """Search for a message by id, key or position."""

    q = forms.CharField(
        label=_("Message ID or key"),
        max_length=SEARCH_CHARS_MAX,
        widget=code_field(placeholder=_("message ID, key or topic/queue/offset")),
    )
    topic = forms.CharField(
        label=_("Topic"),
        max_length=TOPIC_CHARS_MAX,
        required=False,
        widget=code_field(),
    )
