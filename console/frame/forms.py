"""What every form shares: Tabler's look for fields, the choice of brokers, the typed name."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.renderers import TemplatesSetting
from django.utils.translation import gettext_lazy as _


class TablerRenderer(TemplatesSetting):
    """Forms and fields are drawn by `console/templates/forms/`."""

    form_template_name = "forms/form.html"
    field_template_name = "forms/field.html"


class TablerForm(forms.Form):
    """A form whose widgets carry Tabler's classes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            dress(field)


def dress(field: forms.Field) -> None:
    """Give the field's widget the class its kind wants."""
    widget = field.widget
    if isinstance(widget, forms.CheckboxInput | forms.RadioSelect | forms.CheckboxSelectMultiple):
        kind = "form-check-input"
    elif isinstance(widget, forms.Select):
        kind = "form-select"
    else:
        kind = "form-control"
    widget.attrs["class"] = f"{widget.attrs.get('class', '')} {kind}".strip()


class BrokersForm(TablerForm):
    """A form about something that lives on brokers: which of them is a change for?"""

    brokers = forms.MultipleChoiceField(label=_("Brokers"), widget=forms.CheckboxSelectMultiple)

    def offer_brokers(self, names: Sequence[str]) -> None:
        """Offer these, all of them chosen from the start."""
        field = self.fields["brokers"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = [(name, name) for name in names]
        field.initial = list(names)


class TypedNameForm(TablerForm):
    """Asks for a name to be typed before something is deleted, and carries the state it was in."""

    typed_name = forms.CharField(label=_("Type the name to confirm"), required=False)
    etag = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, expected: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.expected = expected
        self.fields["typed_name"].widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}

    def clean_typed_name(self) -> str:
        typed: str = self.cleaned_data["typed_name"]
        if typed != self.expected:
            raise ValidationError(_("This is not the name. Nothing was deleted."))
        return typed
