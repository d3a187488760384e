"""The area of offset resets; group pages link to the area."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class OffsetsConfig(AreaConfig):
    name = "console.areas.offsets"
    label = "offsets"
    name_arguments = ("group",)
    title = _("Offset resets")
    icon = "arrow-back-up"
    parent = "groups"
    in_navigation = False
    start = "wizard"
