"""The area `schemas`: schemas of message bodies and their rules."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class SchemasConfig(AreaConfig):
    name = "console.services.schemas"
    label = "schemas"
    title = _("Body schemas")
    icon = "file-text"
    in_navigation = False
