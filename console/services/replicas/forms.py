"""The form of an election: the typed name of the replica set."""

from django.utils.translation import gettext_lazy as _

from console.frame.forms import TypedNameForm


class ElectForm(TypedNameForm):
    """Confirms an election by the typed broker name; carries the etag of the set."""

    refusal = _("This is not the name. Nothing was changed.")
