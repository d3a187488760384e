"""Base classes of forms: field styles of Tabler, selection of brokers, confirmation by name."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.renderers import TemplatesSetting
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _


class TablerRenderer(TemplatesSetting):
    """Renders forms and fields with the templates in `console/frame/templates/forms/`."""

    form_template_name = "forms/form.html"
    field_template_name = "forms/field.html"


class TablerForm(forms.Form):
    """A form whose widgets carry Tabler's classes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            dress(field)


def name_zone(field: forms.Field) -> None:
    """Add the zone of the page's times to the label of a field with a time."""
    zone = timezone.get_current_timezone_name()
    field.label = format_lazy("{label} ({zone})", label=field.label, zone=zone)


def dress(field: forms.Field) -> None:
    """Set the CSS class of the field's widget."""
    widget = field.widget
    if isinstance(widget, forms.CheckboxInput | forms.RadioSelect | forms.CheckboxSelectMultiple):
        kind = "form-check-input"
    elif isinstance(widget, forms.Select):
        kind = "form-select"
    else:
        kind = "form-control"
    widget.attrs["class"] = f"{widget.attrs.get('class', '')} {kind}".strip()


class BrokersForm(TablerForm):
    """A form for a change of objects on brokers, with a selection of brokers."""

    brokers = forms.MultipleChoiceField(label=_("Brokers"), widget=forms.CheckboxSelectMultiple)

    def offer_brokers(self, names: Sequence[str]) -> None:
        """Set the selectable brokers, all selected initially."""
        field = self.fields["brokers"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = [(name, name) for name in names]
        field.initial = list(names)


class TypedNameForm(TablerForm):
    """Confirms a change by the typed name of the object; carries the etag of the object."""

    #: Error text for another name.
    refusal: Any = _("This is not the name. Nothing was deleted.")
    typed_name = forms.CharField(label=_("Type the name to confirm"), required=False)
    etag = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, expected: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.expected = expected
        self.fields["typed_name"].widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}

    def clean_typed_name(self) -> str:
        typed: str = self.cleaned_data["typed_name"]
        if typed != self.expected:
            raise ValidationError(self.refusal)
        return typed
