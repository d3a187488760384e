"""The form of an offset reset. The page address holds the field values."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.areas.messages.forms import TOPIC_CHARS_MAX, MomentField
from console.frame.forms import TablerForm, name_zone
from console.gateway.offsets.plan import Key, ResetRequest, ResetTarget
from console.gateway.offsets.positions import QUEUES_MAX
from console.gateway.offsets.reset import OFFSET_MAX

GROUP_CHARS_MAX = 255
#: Maximum length of `broker:queue`, and of `broker:queue:offset` in the confirmation, characters.
QUEUE_CHARS_MAX = 300

_TARGETS = [
    (ResetTarget.LATEST, _("latest: skip all unconsumed messages")),
    (ResetTarget.EARLIEST, _("earliest: consume all stored messages again")),
    (ResetTarget.TIME, _("timestamp: first message stored at this time or later")),
    (ResetTarget.EXACT, _("offset: the same offset in every queue")),
    (ResetTarget.SHIFT, _("shift by N messages (negative: backwards)")),
    (ResetTarget.COPY, _("offsets of another group")),
]
_REQUIRED_FIELDS = {
    ResetTarget.TIME: "time",
    ResetTarget.EXACT: "offset",
    ResetTarget.SHIFT: "by",
    ResetTarget.COPY: "group",
}


class WordsInput(forms.TextInput):
    """One field of words, sent as a text or as several check boxes."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        found = data.getlist(name) if hasattr(data, "getlist") else None
        return super().value_from_datadict(data, files, name) if found is None else " ".join(found)


class ResetForm(TablerForm):
    """Target of a group in one topic, for all queues or some queues."""

    topic = forms.CharField(
        label=_("Topic"),
        max_length=TOPIC_CHARS_MAX,
        widget=forms.TextInput(
            attrs={"list": "topics", "autocomplete": "off", "spellcheck": "false"}
        ),
    )
    to = forms.ChoiceField(
        label=pgettext_lazy("offsets", "Target"),
        choices=_TARGETS,
        initial=ResetTarget.LATEST,
        widget=forms.RadioSelect,
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
        widget=WordsInput,
        help_text=_("Broker:queue, separated by spaces, such as broker-a:0. Empty: all queues."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name_zone(self.fields["time"])

    @property
    def choices(self) -> list[tuple[Any, Any]]:
        """Each target's radio button with the field that the target needs, or None."""
        return [
            (radio, self[_REQUIRED_FIELDS[target]] if target in _REQUIRED_FIELDS else None)
            for radio, (target, _label) in zip(self["to"], _TARGETS, strict=True)
        ]

    def clean_queues(self) -> tuple[Key, ...]:
        words = str(self.cleaned_data["queues"]).replace(",", " ").split()
        try:
            return tuple(read_queue(word) for word in words)
        except ValueError as fault:
            raise forms.ValidationError(str(fault)) from None

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        needed = _REQUIRED_FIELDS.get(cleaned.get("to", ""))
        if needed and needed not in self.errors and cleaned.get(needed) in (None, ""):
            self.add_error(needed, _("Required for this target."))
        return cleaned

    @property
    def reset_request(self) -> ResetRequest:
        fields = self.cleaned_data
        return ResetRequest(
            topic=fields["topic"].strip(),
            goal=ResetTarget(fields["to"]),
            time_ms=fields["time"],
            offset=fields["offset"],
            by=fields["by"],
            group=fields["group"].strip(),
            queues=fields["queues"],
        )


def read_queue(word: str) -> Key:
    """The key of `broker-a:3`; raises ValueError with a message for users."""
    broker, _colon, number = word.rpartition(":")
    if not broker or not (number.isascii() and number.isdecimal() and len(number) <= 9):
        raise ValueError(
            str(_("Invalid queue; expected broker:queue, such as broker-a:0:")) + f" {word[:60]}"
        )
    return broker, int(number)


def read_queue_offsets(words: Sequence[str]) -> tuple[tuple[Key, int], ...]:
    """Keys and offsets of `broker-a:3:1234`, as in the confirmation; raises ValueError."""
    if len(words) > QUEUES_MAX:
        raise ValueError(str(_("Too many queues.")))
    offsets = []
    for word in words:
        queue, _colon, number = word.rpartition(":")
        if not (number.isascii() and number.isdecimal() and len(number) <= 19):
            raise ValueError(
                str(_("Invalid offset; expected broker:queue:offset, such as broker-a:0:42:"))
                + f" {word[:60]}"
            )
        offsets.append((read_queue(queue), int(number)))
    return tuple(offsets)
