"""The form of definitions: a file, a text, or another cluster."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from console.frame.forms import TablerForm
from core_broker.definitions.model import DOCUMENT_BYTES_MAX


class DefinitionsForm(TablerForm):
    """Exactly one of the fields; `sources` are the clusters that the user may read."""

    file = forms.FileField(
        label=_("YAML file"),
        required=False,
        widget=forms.ClearableFileInput(attrs={"accept": ".yaml,.yml,.json"}),
    )
    text = forms.CharField(
        label=_("or text"),
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 8, "spellcheck": "false", "class": "mono", "autocomplete": "off"}
        ),
    )
    source = forms.ChoiceField(label=_("or the definitions of cluster"), required=False)

    def __init__(self, *args: Any, sources: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        source: Any = self.fields["source"]
        source.choices = [("", "—"), *((name, name) for name in sources)]

    def clean_file(self) -> bytes:
        file = self.cleaned_data.get("file")
        if not file:
            return b""
        content: bytes = file.read(DOCUMENT_BYTES_MAX + 1)
        return content

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        chosen = [cleaned.get(name) for name in ("file", "text", "source")]
        if not self.errors and sum(map(bool, chosen)) != 1:
            raise ValidationError(_("Choose a file, a text or a cluster: exactly one of them."))
        return cleaned
