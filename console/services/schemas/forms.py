"""Forms of schemas and rules."""

from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from console.frame.forms import TablerForm
from console.gateway.messages.schemas.bounds import SCHEMA_BYTES_MAX
from console.gateway.messages.schemas.decoder import Format
from console.gateway.messages.schemas.framing import Framing
from console.services.schemas.models import (
    NAME_CHARS_MAX,
    TOPIC_CHARS_MAX,
    TYPE_CHARS_MAX,
    BodyRule,
)
from console.services.schemas.stored import RuleDraft, schemas_of

FRAMINGS: Final = [
    (Framing.RAW.value, _("none: the body is one message")),
    (Framing.DELIMITED.value, _("length-delimited (writeDelimitedTo)")),
    (Framing.CONFLUENT.value, _("Confluent header (0x00, schema ID)")),
]
#: Value of the form for a source of Protobuf.
SOURCE: Final = "source"
UPLOADS: Final = [
    (Format.PROTOBUF.value, _("Protobuf: descriptor set of protoc")),
    (SOURCE, _("Protobuf: source (.proto, or .zip of several)")),
    (Format.AVRO.value, _("Avro: schema in JSON (.avsc)")),
]
_PLAIN: Final = {"autocomplete": "off", "spellcheck": "false"}


class SchemaForm(TablerForm):
    """A schema file."""

    name = forms.CharField(
        label=_("Name"), max_length=NAME_CHARS_MAX, widget=forms.TextInput(attrs=_PLAIN)
    )
    format = forms.ChoiceField(label=_("Format"), choices=UPLOADS)
    content = forms.FileField(
        label=_("File"),
        help_text=_(
            "Descriptor set: from protoc --include_imports --descriptor_set_out=FILE. "
            "Source: compiled by the console; files of an archive import each other by path."
        ),
    )

    @property
    def is_source(self) -> bool:
        return bool(self.cleaned_data["format"] == SOURCE)

    @property
    def kind(self) -> str:
        return Format.PROTOBUF.value if self.is_source else self.cleaned_data["format"]

    def clean_content(self) -> bytes:
        content: bytes = self.cleaned_data["content"].read(SCHEMA_BYTES_MAX + 1)
        return content


class RuleForm(TablerForm):
    """A rule; the schemas are those of the cluster."""

    topic = forms.CharField(
        label=_("Topic"),
        max_length=TOPIC_CHARS_MAX,
        widget=forms.TextInput(attrs=_PLAIN),
        help_text=_("A topic, or a pattern with “*”. The most specific pattern decides."),
    )
    schema = forms.ChoiceField(label=_("Body schema"))
    type_name = forms.CharField(
        label=_("Message type"),
        max_length=TYPE_CHARS_MAX,
        required=False,
        widget=forms.TextInput(attrs={**_PLAIN, "placeholder": "shop.v1.Order"}),
        help_text=_("Full name, with package. Empty: the Avro schema as a whole."),
    )
    framing = forms.ChoiceField(label=_("Framing"), choices=FRAMINGS)

    def __init__(self, *args: Any, cluster: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["schema"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(each.name, each.name) for each in schemas_of(cluster)]

    def draft(self) -> RuleDraft:
        given = self.cleaned_data
        return RuleDraft(given["topic"], given["schema"], given["type_name"], given["framing"])


def initial_of(rule: BodyRule) -> dict[str, Any]:
    """Return a rule as initial values of the form."""
    return {
        "topic": rule.topic,
        "schema": rule.schema.name,
        "type_name": rule.type_name,
        "framing": rule.framing,
    }
