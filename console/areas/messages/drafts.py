"""Messages to send: the form with the API's field names, and drafts of stored messages (resend)."""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.areas.messages.body import sent_body
from console.areas.messages.forms import TOPIC_CHARS_MAX, MomentField, code_field
from console.frame.forms import TablerForm
from console.gateway.messages.send import (
    BODY_BYTES_MAX,
    COUNT_MAX,
    PRODUCER_GROUP,
    PROPERTIES_MAX,
    Draft,
    MessageType,
    SendChoices,
    TransactionOutcome,
)
from core_broker.message.model import MessageExt
from core_broker.message.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_SHARDING_KEY,
    RESERVED_PROPERTIES,
)

NAME_CHARS_MAX = 255
KEYS_CHARS_MAX = 2_000
PROPERTIES_CHARS_MAX = 32_000
#: Maximum body length in the form, characters. Base64 has four characters for three bytes, plus
#: line ends.
BODY_CHARS_MAX = BODY_BYTES_MAX * 3 // 2
BODY_ENCODINGS = {"text": _("Text (UTF-8)"), "base64": _("Base64")}


class DraftForm(TablerForm):
    """Form of a message. Fields of other message types are ignored."""

    topic = forms.CharField(
        label=_("Topic"), max_length=TOPIC_CHARS_MAX, widget=code_field(list="topics")
    )
    type = forms.ChoiceField(
        label=_("Type"),
        choices=[
            (MessageType.NORMAL.value, _("Normal")),
            (MessageType.DELAY.value, _("Delayed")),
            (MessageType.FIFO.value, _("FIFO (ordered)")),
            (MessageType.TRANSACTION.value, _("Transaction")),
        ],
    )
    body = forms.CharField(
        label=_("Body"),
        max_length=BODY_CHARS_MAX,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false"}),
    )
    body_encoding = forms.ChoiceField(
        label=_("Body encoding"), choices=list(BODY_ENCODINGS.items()), required=False
    )
    tags = forms.CharField(
        label=_("Tag"), max_length=NAME_CHARS_MAX, required=False, widget=code_field()
    )
    keys = forms.CharField(
        label=_("Keys"),
        max_length=KEYS_CHARS_MAX,
        required=False,
        help_text=_("Separated by spaces; every key finds the message."),
        widget=code_field(),
    )
    properties = forms.CharField(
        label=_("Properties"),
        max_length=PROPERTIES_CHARS_MAX,
        required=False,
        help_text=_("One name=value per line, or a JSON object of strings."),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )
    queue = forms.ChoiceField(label=_("Queue"), required=False)
    delay_level = forms.TypedChoiceField(label=_("Delay"), coerce=int, required=False)
    deliver_at = MomentField(
        label=_("Deliver at"),
        required=False,
        help_text=_("Replaces the delay level; requires brokers of RocketMQ 5."),
    )
    message_group = forms.CharField(
        label=_("Message group"),
        max_length=NAME_CHARS_MAX,
        required=False,
        help_text=_("Messages of a message group go to one queue, in order."),
        widget=code_field(),
    )
    outcome = forms.ChoiceField(
        label=_("Transaction outcome"),
        required=False,
        choices=[
            (TransactionOutcome.COMMIT.value, _("commit: deliver the message")),
            (TransactionOutcome.ROLLBACK.value, _("rollback: discard the message")),
            (TransactionOutcome.UNKNOWN.value, _("unknown: the broker checks with producers")),
        ],
    )
    producer_group = forms.CharField(
        label=_("Producer group"), max_length=NAME_CHARS_MAX, required=False, widget=code_field()
    )
    count = forms.IntegerField(
        label=_("Number of messages"), min_value=1, max_value=COUNT_MAX, required=False, initial=1
    )
    trace = forms.BooleanField(label=_("Write a trace record"), required=False)

    def offer(self, choices: SendChoices) -> None:
        """Offer the queues and delay levels of the topic."""
        queue, level = self.fields["queue"], self.fields["delay_level"]
        assert isinstance(queue, forms.ChoiceField)
        assert isinstance(level, forms.ChoiceField)
        queue.choices = [
            ("", _("any")),
            *((queue_name, queue_name) for queue_name in choices.queues),
        ]
        level.choices = [("", "—")] + [
            (str(number), format_lazy("{number} · {delay}", number=number, delay=delay))
            for number, delay in enumerate(choices.delay_levels, 1)
        ]

    def clean_properties(self) -> dict[str, str]:
        return read_properties(self.cleaned_data["properties"])

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if "body" in cleaned:
            # Browsers send CR LF for every line end.
            text = cleaned["body"].replace("\r\n", "\n")
            try:
                cleaned["body_bytes"] = read_body(text, cleaned.get("body_encoding", ""))
            except ValueError as wrong:
                self.add_error("body", str(wrong))
        return cleaned

    def draft(self) -> Draft:
        fields = self.cleaned_data
        return draft_of(
            {**fields, "deliver_ms": fields["deliver_at"]},
            body=fields["body_bytes"],
            keys=fields["keys"].split(),
        )


def draft_of(fields: Mapping[str, Any], *, body: bytes, keys: list[str]) -> Draft:
    """The draft of validated fields, from the form or the API."""
    return Draft(
        topic=fields["topic"].strip(),
        body=body,
        type=MessageType(fields["type"]),
        tags=fields["tags"].strip(),
        keys=tuple(keys),
        properties=tuple(fields["properties"].items()),
        queue=fields["queue"],
        delay_level=fields["delay_level"] or 0,
        deliver_ms=fields["deliver_ms"],
        message_group=fields["message_group"].strip(),
        outcome=TransactionOutcome(fields["outcome"] or TransactionOutcome.COMMIT),
        producer_group=fields["producer_group"].strip() or PRODUCER_GROUP,
        count=fields["count"] or 1,
        trace=fields["trace"],
    )


def read_body(text: str, encoding: str) -> bytes:
    """The bytes of a body; raises ValueError for invalid Base64."""
    if encoding != "base64":
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error as fault:
        raise ValueError(str(_("Invalid Base64."))) from fault


def read_properties(text: str) -> dict[str, str]:
    """Properties by name, from lines or from a JSON object."""
    if text.lstrip().startswith("{"):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as fault:
            raise ValidationError(_("Invalid JSON object.")) from fault
        if not all(isinstance(value, str) for value in found.values()):
            raise ValidationError(_("Property values must be strings in quotes."))
    else:
        found = {}
        for line in filter(None, map(str.strip, text.splitlines())):
            name, sign, value = line.partition("=")
            if not sign:
                raise ValidationError(
                    _("Expected name=value, got “%(line)s”."), params={"line": line[:60]}
                )
            found[name.strip()] = value.strip()
    if len(found) > PROPERTIES_MAX:
        raise ValidationError(_("At most %(most)s properties."), params={"most": PROPERTIES_MAX})
    return found


def again(message: MessageExt) -> dict[str, Any]:
    """Initial form values to resend a stored message: the fields set by the application."""
    body, _compression, _problem = sent_body(message)
    try:
        text, encoding = body.decode(), "text"
    except UnicodeDecodeError:
        text = ""
    if not text or "\r" in text or "\x00" in text:
        text, encoding = base64.encodebytes(body).decode(), "base64"
    own = {
        name: value
        for name, value in message.properties.items()
        if name not in RESERVED_PROPERTIES and name != PROPERTY_SHARDING_KEY and value.strip()
    }
    group = message.properties.get(PROPERTY_SHARDING_KEY, "")
    level = message.properties.get(PROPERTY_DELAY_TIME_LEVEL, "")
    kind = MessageType.FIFO if group else MessageType.DELAY if level else MessageType.NORMAL
    return {
        "topic": message.topic,
        "type": kind.value,
        "body": text,
        "body_encoding": encoding,
        "tags": message.tags or "",
        "keys": " ".join(message.keys),
        "properties": _properties_text(own),
        "message_group": group,
        "delay_level": level,
    }


def _properties_text(own: Mapping[str, str]) -> str:
    """Properties as lines; as JSON when lines cannot represent a value exactly."""
    lines = "\n".join(f"{name}={value}" for name, value in own.items())
    try:
        if read_properties(lines) == own:
            return lines
    except ValidationError:
        pass
    return json.dumps(own, ensure_ascii=False, indent=2)
