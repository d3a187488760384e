"""The area `definitions`."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class DefinitionsConfig(AreaConfig):
    name = "console.areas.definitions"
    label = "definitions"
    title = _("Definitions")
    icon = "file-text"
    need = "admin"
    parent = "clusters"
    in_navigation = False
    start = "page"

    def ready(self) -> None:
        from console.areas.definitions import alarms, labels, masking, protection, sections

        sections.register(alarms.KIND.section)
        sections.register(labels.SECTION)
        sections.register(masking.KIND.section)
        sections.register(protection.SECTION)
