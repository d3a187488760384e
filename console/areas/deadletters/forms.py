"""Forms of dead letters: filter, resend target, edit, replay."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from console.areas.deadletters.states import DeadLetterState
from console.areas.messages.body import is_text
from console.areas.messages.forms import SEARCH_CHARS_MAX, TOPIC_CHARS_MAX, MomentField
from console.frame.forms import TablerForm, name_zone
from console.gateway.dead_letters.edits import (
    BODY_BYTES_MAX,
    KEYS_CHARS_MAX,
    TAGS_CHARS_MAX,
    Edit,
)
from console.gateway.dead_letters.resend import RESEND_MESSAGES_MAX, Target
from core_broker.errors import ProtocolError
from core_broker.message.model import MessageExt
from core_broker.message.properties import KEY_SEPARATOR, RESERVED_PROPERTIES

ID_CHARS_MAX = 56
RATE_MAX = 5_000
RATE_DEFAULT = 100
PROPERTIES_CHARS_MAX = 32_768

_TARGETS = [
    (Target.RETRY, _("Retry topic of this group")),
    (Target.ORIGIN, _("Original topic (all groups)")),
    (Target.TOPIC, _("Another topic:")),
]


class FilterForm(TablerForm):
    """Filter of dead letters. The URL holds the filter, so a view can be shared."""

    begin = MomentField(label=_("Dead-lettered from"), required=False)
    end = MomentField(label=_("to"), required=False)
    key = forms.CharField(label=_("Key or id"), max_length=SEARCH_CHARS_MAX, required=False)
    tag = forms.CharField(label=_("Tag"), max_length=TAGS_CHARS_MAX, required=False)
    topic = forms.CharField(label=_("Original topic"), max_length=TOPIC_CHARS_MAX, required=False)
    text = forms.CharField(
        label=_("Text in body or properties"), max_length=SEARCH_CHARS_MAX, required=False
    )
    state = forms.ChoiceField(
        label=_("State"),
        required=False,
        choices=[
            ("", _("all")),
            (DeadLetterState.OPEN, _("open")),
            (DeadLetterState.RESENT, _("resent")),
            (DeadLetterState.DISCARDED, _("discarded")),
        ],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name_zone(self.fields["begin"])
        for name in ("key", "tag", "topic", "text"):
            self.fields[name].widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        begin, end = cleaned.get("begin"), cleaned.get("end")
        if begin is not None and end is not None and begin > end:
            self.add_error("end", _("The end lies before the beginning."))
        return cleaned

    @property
    def asked(self) -> dict[str, Any]:
        """The filter as request parameters."""
        given = self.cleaned_data
        named = {name: given.get(name) or "" for name in ("key", "tag", "topic", "text", "state")}
        return {
            "begin_ms": given.get("begin"),
            "end_ms": given.get("end"),
            **{name: value for name, value in named.items() if value},
        }


class TargetForm(TablerForm):
    """Target of a resend."""

    target = forms.ChoiceField(
        label=_("Resend to"), choices=_TARGETS, initial=Target.RETRY, widget=forms.RadioSelect
    )
    to_topic = forms.CharField(
        label=_("Other topic"),
        max_length=TOPIC_CHARS_MAX,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    again = forms.BooleanField(label=_("Include already resent"), required=False, initial=False)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if cleaned.get("target") == Target.TOPIC and not cleaned.get("to_topic"):
            self.add_error("to_topic", _("Enter a topic."))
        return cleaned

    @property
    def asked(self) -> dict[str, Any]:
        """The target as request parameters."""
        given = self.cleaned_data
        return {
            "target": given["target"],
            "topic": given["to_topic"] if given["target"] == Target.TOPIC else "",
            "again": given["again"],
        }


class ResendForm(TargetForm):
    """Selected dead letters and the target. Ids come from the check boxes of the list."""

    def __init__(self, *args: Any, ids: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ids = list(dict.fromkeys(ids))

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        problem = id_problem(self.ids)
        if problem is not None:
            raise problem
        return cleaned


class EditForm(TablerForm):
    """Fields of one dead letter; changed fields become the edit of the resend."""

    tags = forms.CharField(label=_("Tag"), max_length=TAGS_CHARS_MAX, required=False)
    keys = forms.CharField(
        label=_("Keys"),
        max_length=KEYS_CHARS_MAX,
        required=False,
        help_text=_("Separated by spaces."),
    )
    properties = forms.CharField(
        label=_("Properties"),
        max_length=PROPERTIES_CHARS_MAX,
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "mono"}),
        help_text=_("One name=value per line. Delete a line to remove the property."),
    )
    body = forms.CharField(
        label=_("Body"),
        max_length=BODY_BYTES_MAX,
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "class": "mono"}),
    )

    def __init__(
        self, *args: Any, message: MessageExt, masked: bool = False, **kwargs: Any
    ) -> None:
        self.message = message
        self.text = None if masked else text_body(message)
        initial = {
            "tags": message.tags or "",
            "keys": KEY_SEPARATOR.join(message.keys),
            "properties": "\n".join(f"{k}={v}" for k, v in own_properties(message).items()),
            "body": self.text or "",
        }
        super().__init__(*args, initial=initial, **kwargs)
        if self.text is None:
            self.fields["body"].disabled = True
            self.fields["body"].help_text = (
                _("Fields are masked for you. The resent message has the stored body and values.")
                if masked
                else _("The body is binary. The API accepts a new body as Base64.")
            )

    def clean_properties(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in str(self.cleaned_data["properties"]).splitlines():
            if not line.strip():
                continue
            name, equals, value = line.partition("=")
            if not equals or not name.strip():
                raise forms.ValidationError(
                    _("“%(line)s” is not name=value."), params={"line": line[:80]}
                )
            found[name.strip()] = value
        return found

    @property
    def edit(self) -> Edit:
        """The changed fields."""
        given, before = self.cleaned_data, own_properties(self.message)
        wanted: dict[str, str] = given["properties"]
        # Browsers submit CRLF line ends.
        body = str(given["body"]).replace("\r\n", "\n")
        keys = tuple(str(given["keys"]).split())
        same_body = self.text is None or body == self.text.replace("\r\n", "\n")
        return Edit(
            body=None if same_body else body.encode(),
            tags=None if given["tags"] == (self.message.tags or "") else given["tags"],
            keys=None if keys == tuple(self.message.keys) else keys,
            properties=tuple(
                (name, value) for name, value in wanted.items() if before.get(name) != value
            ),
            removed=tuple(name for name in before if name not in wanted),
        )


class ReplayForm(TargetForm):
    """Target and rate of a replay."""

    rate = forms.IntegerField(
        label=_("Maximum rate, messages/s"),
        min_value=1,
        max_value=RATE_MAX,
        initial=RATE_DEFAULT,
    )


def text_body(message: MessageExt) -> str | None:
    """The body as text; None for a binary body."""
    try:
        body = message.decompressed_body()
    except ProtocolError:
        return None
    return body.decode() if is_text(body) else None


def own_properties(message: MessageExt) -> dict[str, str]:
    """Properties set by the application."""
    return {
        name: value
        for name, value in message.properties.items()
        if name not in RESERVED_PROPERTIES and not _is_broker_property(name)
    }


def _is_broker_property(name: str) -> bool:
    return name.startswith(("DLQ_ORIGIN_", "__")) or name in {"RESENT_FROM", "INNER_NUM"}


def id_problem(ids: list[str]) -> forms.ValidationError | None:
    """The error of an invalid selection; None for a valid one."""
    if not ids:
        return forms.ValidationError(_("Select at least one dead letter."))
    if len(ids) > RESEND_MESSAGES_MAX:
        return forms.ValidationError(
            _("At most %(most)d dead letters can be resent at once."),
            params={"most": RESEND_MESSAGES_MAX},
        )
    if any(not each or len(each) > ID_CHARS_MAX for each in ids):
        return forms.ValidationError(_("The selection contains an invalid message ID."))
    return None
