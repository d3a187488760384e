"""What is asked before a group is moved, as it stands in the address of the page."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.areas.messages.forms import TOPIC_CHARS_MAX, MomentField
from console.frame.forms import TablerForm
from console.gateway.offsets.plan import Key, ResetRequest, ResetTarget
from console.gateway.offsets.positions import QUEUES_MAX
from console.gateway.offsets.reset import OFFSET_MAX

GROUP_CHARS_MAX = 255
#: broker:queue, and in the confirmation broker:queue:offset.
QUEUE_CHARS_MAX = 300

_GOALS = [
    (ResetTarget.LATEST, _("the end: skip what waits")),
    (ResetTarget.EARLIEST, _("the beginning: consume all of it again")),
    (ResetTarget.TIME, _("the first message stored at a time or later")),
    (ResetTarget.EXACT, _("an offset, the same in each queue")),
    (ResetTarget.SHIFT, _("so many messages on (or back: a negative number)")),
    (ResetTarget.COPY, _("where another group is")),
]
_NEEDS = {
    ResetTarget.TIME: "time",
    ResetTarget.EXACT: "offset",
    ResetTarget.SHIFT: "by",
    ResetTarget.COPY: "group",
}


class WishForm(TablerForm):
    """Where a group is to go in one topic, in all queues or some."""

    topic = forms.CharField(
        label=_("Topic"),
        max_length=TOPIC_CHARS_MAX,
        widget=forms.TextInput(
            attrs={"list": "topics", "autocomplete": "off", "spellcheck": "false"}
        ),
    )
    to = forms.ChoiceField(
        label=_("Go to"), choices=_GOALS, initial=ResetTarget.LATEST, widget=forms.RadioSelect
    )
    time = MomentField(label=_("Time"), required=False)
    offset = forms.IntegerField(
        label=_("Offset"), required=False, min_value=0, max_value=OFFSET_MAX
    )
    by = forms.IntegerField(
        label=_("Shift by"), required=False, min_value=-OFFSET_MAX, max_value=OFFSET_MAX
    )
    group = forms.CharField(label=_("Copy from group"), required=False, max_length=GROUP_CHARS_MAX)
    queues = forms.CharField(
        label=_("Only these queues"),
        required=False,
        max_length=QUEUE_CHARS_MAX * 32,
        help_text=_("Broker:queue, separated by spaces, such as broker-a:0. Empty: all of them."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zone = timezone.get_current_timezone_name()
        field = self.fields["time"]
        field.label = format_lazy("{label} ({zone})", label=field.label, zone=zone)

    def clean_queues(self) -> tuple[Key, ...]:
        words = str(self.cleaned_data["queues"]).replace(",", " ").split()
        try:
            return tuple(read_queue(word) for word in words)
        except ValueError as fault:
            raise forms.ValidationError(str(fault)) from None

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        needed = _NEEDS.get(cleaned.get("to", ""))
        if needed and needed not in self.errors and cleaned.get(needed) in (None, ""):
            self.add_error(needed, _("This is needed for it."))
        return cleaned

    @property
    def wish(self) -> ResetRequest:
        given = self.cleaned_data
        return ResetRequest(
            topic=given["topic"].strip(),
            goal=ResetTarget(given["to"]),
            time_ms=given["time"],
            offset=given["offset"],
            by=given["by"],
            group=given["group"].strip(),
            queues=given["queues"],
        )


def read_queue(word: str) -> Key:
    """`broker-a:3`; raises ValueError with a sentence."""
    broker, _colon, number = word.rpartition(":")
    if not broker or not (number.isascii() and number.isdecimal() and len(number) <= 9):
        raise ValueError(str(_("Not a queue, such as broker-a:0:")) + f" {word[:60]}")
    return broker, int(number)


def read_each(words: Sequence[str]) -> tuple[tuple[Key, int], ...]:
    """`broker-a:3:1234` of the confirmation; raises ValueError."""
    if len(words) > QUEUES_MAX:
        raise ValueError(str(_("Too many queues.")))
    found = []
    for word in words:
        place, _colon, number = word.rpartition(":")
        if not (number.isascii() and number.isdecimal() and len(number) <= 19):
            raise ValueError(str(_("Not an offset of a queue:")) + f" {word[:60]}")
        found.append((read_queue(place), int(number)))
    return tuple(found)
