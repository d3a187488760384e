"""The form of an election: the typed name of the replica set."""

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from console.frame.forms import TablerForm


class ElectForm(TablerForm):
    """Confirms an election by the typed broker name; carries the etag of the set."""

    typed_name = forms.CharField(label=_("Type the broker name to confirm"), required=False)
    etag = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)

    def __init__(self, *args: object, expected: str, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.expected = expected
        self.fields["typed_name"].widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}

    def clean_typed_name(self) -> str:
        typed: str = self.cleaned_data["typed_name"]
        if typed != self.expected:
            raise ValidationError(_("This is not the broker name. Nothing was changed."))
        return typed
