"""The area `topics`."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class TopicsConfig(AreaConfig):
    name = "console.areas.topics"
    label = "topics"
    name_arguments = ("topic", "name")
    title = _("Topics")
    icon = "stack-2"

    def ready(self) -> None:
        from console.areas.topics import export
        from console.services.exports import tables

        tables.register(export.TABLE)
